// What other verbs measured, as rows. A report of `bench` or `analyze` (io/account_json.hpp) has operators and whole
// steps of a model with measured times, and `bench` says beside them what each backend took:
//
//   "bench": { "stages": [ { "stage", "dtype", "batch", "tokens", "context",
//                            "steps": [ { "backend", "launch"?, "time_s" } | { "backend", "problem" } ],
//                            "results": [ { "name", "backend", "time_s" } | { "name", "backend", "problem" } ] } ] }
//
// The stages stand in the order of the report's own. A device file of `measure` (io/device_file.hpp) has ceilings.
#pragma once

#include <string>
#include <string_view>

#include "roofline/assess/measured.hpp"
#include "roofline/io/fields.hpp"

namespace roofline::assess {

/// Operators become kernels and stages become steps, predicted anew where the program knows the model; elsewhere what
/// the report expected is held against what it measured. `json` is the text, parsed.
Result<void> read_report(std::string_view text, const io::Json& json, const std::string& file, Measurements& into);

/// Ceilings against those of the built-in device of that name: the times of one FLOP or byte. Nothing is fitted to
/// them.
Result<void> read_ceilings(std::string_view text, const std::string& file, Measurements& into);

}  // namespace roofline::assess
