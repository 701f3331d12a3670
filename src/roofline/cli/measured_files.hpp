// Measured tables for calibrate and validate: the files named, or those the program carries.
#pragma once

#include <string>
#include <vector>

#include "roofline/assess/measured.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::cli {

/// Empty: the shipped tables. Folders stand for all .csv files in them.
Result<assess::Measurements> load_measured(const std::vector<std::string>& files);

}  // namespace roofline::cli
