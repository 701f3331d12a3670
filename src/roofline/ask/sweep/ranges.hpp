// Lists and ranges as llama-bench takes them: 1,2,4 and 1-64*2 and 128-1024+128 and 1-4, mixed as one likes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"

namespace roofline::ask {

/// The values of a list, in the order they are written, each once. An empty one is refused.
Result<std::vector<std::string>> parse_list(std::string_view option, std::string_view text);

/// The same, with ranges of whole numbers spelt out. What is neither a range nor empty stays as it is typed: the option
/// itself knows what it takes.
Result<std::vector<std::string>> parse_ranges(std::string_view option, std::string_view text);

}  // namespace roofline::ask
