// One file that can be mailed: charts, a table of every operator, and a little script to look around with. It loads
// nothing and sends nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/account.hpp"

namespace roofline::render {

/// All charts of the accounts (chart/account_charts.hpp) and their operators. `command`: what gave the answer, shown at
/// the foot; may be empty.
std::string account_page(std::span<const Account> accounts, std::string_view command);

/// Charts alone.
std::string chart_page(const std::vector<std::string>& charts, std::string_view title, std::string_view command);

/// The files beside this one, embedded by the build.
std::string_view page_style();
std::string_view page_script();

}  // namespace roofline::render
