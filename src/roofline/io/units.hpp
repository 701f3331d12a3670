// Units as datasheets print them. GB is 1e9 bytes and GiB is 2^30, here and everywhere.
#pragma once

#include <optional>
#include <string_view>

namespace roofline::io {

enum class Dimension { flops_per_second, bytes_per_second, bytes, watts, count };

/// The factor to base units, if the unit is of that dimension.
std::optional<double> unit_factor(std::string_view unit, Dimension dimension);

std::string_view expected_units(Dimension dimension);

}  // namespace roofline::io
