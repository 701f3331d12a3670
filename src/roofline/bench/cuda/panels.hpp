// Rows of a step in a mixture of experts, as products see them: expert after expert, each row there as often as it has
// experts (its places), and cut into panels of as many rows as a kernel multiplies at once.
#pragma once

#include <algorithm>
#include <vector>

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

}  // namespace roofline::cuda::kernels
