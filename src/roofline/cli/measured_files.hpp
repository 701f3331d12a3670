// Measured tables for calibrate and validate: the files named, or those the program carries.
#pragma once

#include <string>
#include <vector>

#include "roofline/assess/measured.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::cli {

/// What the rows are for. Rates of whole engines are judged, but nothing is fitted to them: they are passed over.
enum class For { judging, fitting };

/// Empty: the shipped tables. Folders stand for all .csv files in them.
Result<assess::Measurements> load_measured(const std::vector<std::string>& files, For purpose = For::judging);

}  // namespace roofline::cli
