// Reports as JSON, as other programs read them: the keys of schema/*.schema.json. Keys end in their unit.
#pragma once

#include <string>

#include "roofline/io/fields.hpp"
#include "roofline/io/model_file.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::io {

struct RunInfo {
    std::string command;
    std::string time;  // ISO 8601, or empty
};

/// The report as `predict --format json` prints it. `load`: what a deployment does under it, or null.
std::string report_text(const predict::Scenario& scenario, const predict::Report& report, const RunInfo& run,
                        const OrderedJson& load = nullptr);

/// A device with its ridges, for `devices show`.
OrderedJson device_json(const Device& device);

/// Counts and sizes of a model, for `models show`.
OrderedJson model_json(const ModelFile& model, const model::Lowered& lowered);

/// Indented text with a newline at the end. Bytes that are not UTF-8 (file names may hold any) become replacement
/// marks.
std::string dump(const OrderedJson& json);

/// JSON has no infinity: what is infinite or unknown is null.
OrderedJson finite(double value);

}  // namespace roofline::io
