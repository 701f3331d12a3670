// The measured tables the program carries: data/measured/*.csv at build time, each with its source in its rows.
#pragma once

#include <span>
#include <string_view>

namespace roofline::assess {

struct ShippedTable {
    std::string_view name;  // "data/measured/h200_kernels.csv"
    std::string_view text;
};

/// Sorted by name. Implemented by generated code; see cmake/Embed.cmake.
std::span<const ShippedTable> shipped_tables();

}  // namespace roofline::assess
