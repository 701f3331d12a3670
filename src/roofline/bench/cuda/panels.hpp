// Rows of a step in a mixture of experts, as products see them: expert after expert, each row there as often as it has
// experts (its places), and cut into panels of as many rows as a kernel multiplies at once. And whose turn it is: a
// block multiplies a panel with a tile of rows of weights at a time.
#pragma once

#include <algorithm>
#include <vector>

#include "roofline/bench/cuda/both.hpp"

namespace roofline::cuda::kernels {

struct Panel {
    int expert;
    int first;  // place
    int rows;
    int unused = 0;  // 16 bytes: one load
};

/// No more panels than this, however the rows choose: one for each expert that has a row, and one for each
/// `panel_rows` rows.
constexpr int most_panels(int places, int experts, int panel_rows) {
    return std::min(places, experts + places / panel_rows);
}

/// The panels of experts whose rows begin at these places; behind the last one stands the number of places. What
/// routing.cu does on the device.
inline std::vector<Panel> panels_of(const std::vector<int>& begins, int panel_rows) {
    std::vector<Panel> panels;
    for (std::size_t expert = 0; expert + 1 < begins.size(); ++expert) {
        for (int first = begins[expert]; first < begins[expert + 1]; first += panel_rows) {
            panels.push_back({static_cast<int>(expert), first, std::min(panel_rows, begins[expert + 1] - first)});
        }
    }
    return panels;
}

struct Turn {
    int panel;
    int tile;
};

/// Blocks run side by side, so turns near each other should share what they read: 16 panels meet one tile, then the
/// next.
ROOFLINE_BOTH inline Turn grouped_turn(int number, int tiles, int panels) {
    constexpr int group = 16;
    const int before = number / (group * tiles) * group;
    const int together = panels - before < group ? panels - before : group;
    const int within = number - before * tiles;
    return {before + within % together, within / together};
}

/// The first of all turns that a block of so many takes where each takes neighbours, about as many as any other.
ROOFLINE_BOTH inline int first_turn(int all, int block, int blocks) {
    return static_cast<int>(static_cast<long long>(all) * block / blocks);
}

/// Where gates and what they gate are n rows of weights, the gates first: the row that is a tiles' row of this number.
/// Eight gates stand before the eight rows that they gate, so that both are in one tile of 16.
ROOFLINE_BOTH inline int gated_row(int row, int n) {
    return row / 16 * 8 + row % 8 + row / 8 % 2 * (n / 2);
}

}  // namespace roofline::cuda::kernels
