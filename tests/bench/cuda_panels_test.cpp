#include <gtest/gtest.h>

#include "roofline/bench/cuda/panels.hpp"

namespace roofline::cuda::kernels {
namespace {

TEST(CudaPanels, HoldEveryRowOfAnExpertOnceAndNoOthers) {
    const std::vector<int> begins = {0, 3, 3, 19, 20, 28};  // 3, none, 16, 1 and 8 rows
    for (const int panel_rows : {1, 8, 16, 64}) {
        std::vector<int> expert_at(28, -1);
        for (const Panel& panel : panels_of(begins, panel_rows)) {
            EXPECT_GE(panel.rows, 1);
            EXPECT_LE(panel.rows, panel_rows);
            for (int place = panel.first; place < panel.first + panel.rows; ++place) {
                EXPECT_EQ(expert_at[static_cast<std::size_t>(place)], -1) << "place " << place;
                expert_at[static_cast<std::size_t>(place)] = panel.expert;
            }
        }
        for (int place = 0; place < 28; ++place) {
            const int expert = place < 3 ? 0 : place < 19 ? 2 : place < 20 ? 3 : 4;
            EXPECT_EQ(expert_at[static_cast<std::size_t>(place)], expert) << "place " << place;
        }
    }
    EXPECT_EQ(panels_of(begins, 8).size(), 5U);  // 1 + 0 + 2 + 1 + 1
    EXPECT_EQ(panels_of(begins, 16).size(), 4U);
}

TEST(CudaPanels, AreNeverMoreThanThereIsMemoryFor) {
    // Rows of 4 experts in all ways that 12 places can be shared out.
    for (int a = 0; a <= 12; ++a) {
        for (int b = a; b <= 12; ++b) {
            for (int c = b; c <= 12; ++c) {
                for (const int panel_rows : {1, 2, 3, 5, 8}) {
                    const auto panels = panels_of({0, a, b, c, 12}, panel_rows);
                    EXPECT_LE(static_cast<int>(panels.size()), most_panels(12, 4, panel_rows));
                }
            }
        }
    }
    EXPECT_EQ(most_panels(8, 128, 8), 8);        // each place another expert's
    EXPECT_EQ(most_panels(8192, 128, 64), 256);  // 128 full ones, and one that is not for each expert
}

}  // namespace
}  // namespace roofline::cuda::kernels
