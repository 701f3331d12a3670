// Reports as JSON, as other programs read them: the keys of schema/*.schema.json. Keys end in their unit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "roofline/io/fields.hpp"
#include "roofline/io/json_text.hpp"
#include "roofline/io/model_file.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::io {

struct RunInfo {
    std::string command;
    std::string time;  // ISO 8601, or empty
};

/// Parts that several reports share: "run" and "workload".
void write_run(JsonText& json, const RunInfo& run);
void write_workload(JsonText& json, const predict::Workload& workload);

/// The report as `predict --format json` prints it, with what `more` adds at its end.
std::string report_text(const predict::Scenario& scenario, const predict::Report& report, const RunInfo& run,
                        const std::function<void(JsonText&)>& more = {});

/// A device with its ridges, for `devices show`; many of them, for `devices`.
std::string device_text(const Device& device);
std::string devices_text(const std::vector<Device>& devices);

/// Counts and sizes of a model, for `models show`; the keys alone, for `models`.
std::string model_text(const ModelFile& model, const model::Lowered& lowered);
void write_model(JsonText& json, const ModelFile& model, const model::Lowered& lowered);

/// Indented text with a newline at the end. Bytes that are not UTF-8 (file names may hold any) become replacement
/// marks.
std::string dump(const OrderedJson& json);

/// JSON has no infinity: what is infinite or unknown is null.
OrderedJson finite(double value);

}  // namespace roofline::io
