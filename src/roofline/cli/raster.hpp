// SVG as PNG or PDF, by librsvg and cairo where they are installed. They are loaded when they are used: the program is
// built and runs without them.
#pragma once

#include <string>

#include "roofline/core/problem.hpp"

namespace roofline::cli {

/// PNGs are twice as large as the chart says, for screens with small dots.
Result<std::string> png_of(const std::string& svg);
Result<std::string> pdf_of(const std::string& svg);

}  // namespace roofline::cli
