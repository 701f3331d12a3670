// Numbers, times and lists as people type them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"

namespace roofline::ask {

/// A whole number typed by a person, with the range it must lie in.
Result<double> parse_whole(std::string_view option, const std::string& text, double least, double most);
/// A positive number such as 8e9.
Result<double> parse_positive(std::string_view option, const std::string& text);
/// "500ms", "0.5 s", "200us", in seconds: a bare number could mean any of them.
Result<double> parse_duration(std::string_view option, const std::string& text);
/// What stands between separators, empty parts included.
std::vector<std::string> parts_of(const std::string& text, char separator);

}  // namespace roofline::ask
