// How wide a text will be, without a font: the advance widths that the usual sans-serif faces share. A little generous,
// because the face that is really there may be wider.
#pragma once

#include <string>
#include <string_view>

namespace roofline::render::chart {

double text_width(std::string_view text, double size, bool bold = false);

/// Code points, not bytes.
std::size_t length_of(std::string_view text);

/// Cut at the end, with an ellipsis, so that it is no wider.
std::string shortened(std::string_view text, double width, double size, bool bold = false);

}  // namespace roofline::render::chart
