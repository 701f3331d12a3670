// A file too large to hold in memory, written whole or not at all.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "roofline/core/problem.hpp"

namespace roofline::cli {

using TakeBytes = std::function<bool(std::span<const std::byte>)>;

/// To a file beside it first, then renamed. `fill` gets a function that takes the next bytes and says whether to go on;
/// where it returns false or a write fails, nothing is left behind.
Result<void> write_streamed(const std::string& path, const std::function<bool(const TakeBytes&)>& fill);

}  // namespace roofline::cli
