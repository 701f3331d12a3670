// An analysis as JSON: an account (io/account_json.hpp) with what only a real run has under "analysis".
//
//   { ...account..., "analysis": { "format", "file", "partial", "events", "layers", "kernel_s", "explained_s",
//       "rank"?: { "number", "of", "collectives_s", "waiting_s", "slowest" },
//       "streams": [ { "name", "wall_s", "attributed_s", "unattributed_s", "idle_s", "kernels" } ],
//       "time_went": [ { "stage", "wall_s", "computing_s", ... } ], "steps": [ ... ], "diagnoses": [ ... ],
//       "unattributed": [ ... ], "joined": [ ... ], "memory_notes": [ ... ] } }
#pragma once

#include <string>

#include "roofline/analyze/analysis.hpp"
#include "roofline/io/report_json.hpp"

namespace roofline::analyze {

/// `by` cuts the records as for people: record, operator, kernel, group.
io::OrderedJson analysis_json(const Analysis& analysis, const std::string& by, const io::RunInfo& run);

}  // namespace roofline::analyze
