// Fitted constants as a file: what `calibrate` writes and every prediction reads.
//
//   { "schema": "roofline.calibration/1", "made_from": [ ... ],
//     "fits": [ { "class": "gemm", "type": "bf16", "stack": "trtllm", "scope": "device", "of": "h200-sxm", "rows": 112,
//                 "error": 0.051, "range": [0.93, 1.08], "constants": { "startup": 3.1, ... } } ] }
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/predict/calibration.hpp"

namespace roofline::io {

Result<predict::Calibration> read_calibration(std::string_view text, std::string_view file);
/// One line a fit, so that a change shows in review. `made_from`: the files and row counts.
std::string write_calibration(const predict::Calibration& calibration, const std::vector<std::string>& made_from);

/// The calibration the program carries; for a device, only what could ever apply to it, which is read much faster.
Result<predict::Calibration> builtin_calibration();
Result<predict::Calibration> builtin_calibration(const Device& device);

}  // namespace roofline::io
