// Operators on one line, by arithmetic intensity: what lies left of the ridge waits for memory, what lies right of it
// for compute.
#pragma once

#include <span>
#include <string>

#include "roofline/core/account.hpp"

namespace roofline::render::chart {

/// As SVG: a line for each stage of each account.
std::string intensity_line_chart(std::span<const Account> accounts);

}  // namespace roofline::render::chart
