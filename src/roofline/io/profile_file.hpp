// Execution profiles: data/profiles/*.json.
//
//   { "schema": "roofline.profile/1", "name", "title", "stacks": ["trtllm", ...], "kernels"?: "ggml_cuda", "step"?:
//   "graph_step",
//     "even_routing"?: true, "elsewhere"?: { "Apple": "llama.cpp-metal" },
//     "operators": { "norm": { "launches": 1, "traffic"?: 1.0 }, "attention.kv_write@decode": { "launches": 2 } } }
//
// An operator is named by its style ("layer_norm", "plain_activation"), the last part of its name, the last two, or its
// kind; "@prefill" and "@decode" bind a line to one stage. What is not named is one kernel that moves what it must.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/device.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/predict/profile.hpp"

namespace roofline::io {

Result<predict::Profile> read_profile(std::string_view text, std::string_view file);
Result<predict::Profile> builtin_profile(std::string_view name);
/// The one that holds on this device: an engine may have other kernels on another vendor's.
Result<predict::Profile> builtin_profile(std::string_view name, const Device& device);
std::vector<std::string> builtin_profile_names();

}  // namespace roofline::io
