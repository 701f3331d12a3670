// Predictions of measured rows as a picture: a point a row, a colour a kind of row.
#pragma once

#include <span>
#include <string>

#include "roofline/assess/expect.hpp"
#include "roofline/assess/measured.hpp"

namespace roofline::cli {

/// As SVG. `how` the predictions came about stands under the title.
std::string measured_scatter(std::span<const assess::Measurement> rows, std::span<const assess::Expected> expected,
                             const std::string& how);

}  // namespace roofline::cli
