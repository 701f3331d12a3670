// A comparison as bars: what each later side does how many times better than the first.
#pragma once

#include <string>
#include <vector>

#include "roofline/assess/compare.hpp"

namespace roofline::cli {

/// As SVG, a chart for each later side (of many, the first three): whole stages and what differs most, better and worse
/// things as one reads them from a table. A side that differs nowhere has none.
std::vector<std::string> compare_charts(const assess::Comparison& comparison);

}  // namespace roofline::cli
