// Colours and letters of every chart, as one style sheet of classes: light, dark where the reader's system is dark, and
// for print. The palette is Okabe and Ito's, which readers with any colour vision can tell apart; what has a colour has
// a shape or a name beside it as well. No custom properties: not every renderer knows them.
#pragma once

#include <string_view>

#include "roofline/core/record.hpp"

namespace roofline::render::chart {

std::string_view style_sheet();

/// "g-attention"; a class of the style sheet.
std::string_view group_class(Group group);
/// The class of words that stand on that colour: white on the dark ones.
std::string_view words_on(Group group);

/// Classes of things told apart by number: reports, devices, series. Eight, then from the beginning.
std::string_view series_class(std::size_t number);

inline constexpr double title_size = 19.0;
inline constexpr double text_size = 12.0;
inline constexpr double small_size = 11.0;

}  // namespace roofline::render::chart
