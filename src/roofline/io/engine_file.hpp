// How an engine shares out memory, as a JSON file: data/engines/*.json, or a file for --engine.
//
//   { "schema": "roofline.engine/1", "name", "title", "versions"?,
//     "fraction"?:    { "of": "total" | "free_before" | "free_after", "utilisation": FIGURE,
//                       "inside": [ "activations", "graphs" ],
//                       "reserve"?: { "fixed", "per_token", "per_rank", "per_sequence", "least", "least_above": FIGURE
//                       } },
//     "steps"?:       [ { "from": FIGURE, "tokens": FIGURE, "sequences": FIGURE, "except"?: [ "a100" ] } ],  most
//     memory first "overhead"?:    { "context"?, "runtime"?, "collectives"?, "graphs"?, "expert_padding"?: FIGURE },
//     "activations"?: { "sampler"?: FIGURE, "streams"?: FIGURE, "expert_workspace"?: true },
//     "cache":        { "layout": "ideal" | "tables" | "pools", "prints"?: "even" | "concurrency" | "full", "block"?:
//     FIGURE,
//                       "group_slack"?, "steps_in_flight"?, "state_blocks"?, "reserved_blocks"?, "window_ratio"?,
//                       "state_ratio"?: FIGURE },
//     "sources": { ID: { "kind", "title", "date" } } }
//   FIGURE: { "value", "unit"?: "B" | "MiB" | "GiB" ..., "source": ID, "note"? }; without a unit, a plain number
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/predict/engine.hpp"

namespace roofline::io {

Result<predict::EngineRules> read_engine(std::string_view text, std::string_view file);
Result<predict::EngineRules> builtin_engine(std::string_view name);
std::vector<std::string> builtin_engine_names();

}  // namespace roofline::io
