// Names as people type them: case, spaces, dashes and underscores do not matter, and a near miss gets a suggestion.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace roofline::io {

/// "H100_SXM" and "h100-sxm" are the same name.
std::string normalised(std::string_view name);

/// The names nearest to what was typed, best first; empty if nothing is near.
std::vector<std::string> nearest(std::string_view typed, std::span<const std::string> names, std::size_t most = 3);

/// "; did you mean a, b or c?" or nothing.
std::string suggestion(std::string_view typed, std::span<const std::string> names);

}  // namespace roofline::io
