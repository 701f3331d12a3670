// Where the time goes: each stage as a bar, cut into groups and, inside them, operators; stages beside each other.
#pragma once

#include <span>
#include <string>

#include "roofline/core/account.hpp"

namespace roofline::render::chart {

/// As SVG. Bars are as long as each other, because a prompt takes a hundred times as long as a step; their times are
/// written beside them.
std::string time_bars_chart(std::span<const Account> accounts);

}  // namespace roofline::render::chart
