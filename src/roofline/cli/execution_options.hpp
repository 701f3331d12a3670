// The flags that say how a model is run: the execution profile, and whose constants the expected times use.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "roofline/core/device.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/predict/execution.hpp"

namespace roofline::cli {

void add_execution_options(CLI::App& app, std::string& profile, std::string& calibration);

/// A profile by name or file, and the built-in constants with those of `calibration` (a file that `calibrate` wrote,
/// may be empty) before them.
Result<predict::Execution> load_execution(const std::string& profile, const std::string& calibration,
                                          const Device& device);

}  // namespace roofline::cli
