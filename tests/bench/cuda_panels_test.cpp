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

TEST(CudaTurns, GiveEveryTileToEveryPanelOnce) {
    for (const int tiles : {1, 3, 16, 112}) {
        for (const int panels : {1, 2, 15, 16, 17, 64, 70}) {
            std::vector<int> times(static_cast<std::size_t>(tiles * panels), 0);
            for (int number = 0; number < tiles * panels; ++number) {
                const Turn turn = grouped_turn(number, tiles, panels);
                ASSERT_TRUE(turn.panel >= 0 && turn.panel < panels && turn.tile >= 0 && turn.tile < tiles);
                ++times[static_cast<std::size_t>(turn.panel * tiles + turn.tile)];
            }
            for (const int count : times) EXPECT_EQ(count, 1) << tiles << " tiles, " << panels << " panels";
        }
    }
    // 132 blocks side by side read few tiles: nine of 16 panels each, where 64 panels in order would be two or three.
    EXPECT_EQ(grouped_turn(131, 112, 64).tile, 8);
    EXPECT_EQ(grouped_turn(131, 112, 64).panel, 3);
}

TEST(CudaTurns, OfABlockAreOfThreePanelsAtMost) {
    for (const int blocks : {16, 114, 132}) {
        for (const int tiles : {1, 48, 96, 1792}) {
            for (const int panels : {1, 8, blocks, 2 * blocks}) {
                const int all = tiles * panels;
                EXPECT_EQ(first_turn(all, 0, blocks), 0);
                EXPECT_EQ(first_turn(all, blocks, blocks), all);
                for (int block = 0; block < blocks; ++block) {
                    const int begin = first_turn(all, block, blocks);
                    const int end = first_turn(all, block + 1, blocks);
                    ASSERT_LE(begin, end);
                    if (begin < end) {
                        EXPECT_LE((end - 1) / tiles - begin / tiles + 1, 3) << blocks << " " << tiles;
                    }
                }
            }
        }
    }
    EXPECT_EQ(first_turn(1792 * 20000, 131, 132), 35568484);  // by way of 4.7e9
}

TEST(CudaTurns, PutGatesBesideWhatTheyGate) {
    for (const int n : {16, 48, 1536}) {
        std::vector<int> times(static_cast<std::size_t>(n), 0);
        for (int row = 0; row < n; ++row) {
            const int of_weights = gated_row(row, n);
            ASSERT_TRUE(of_weights >= 0 && of_weights < n);
            ++times[static_cast<std::size_t>(of_weights)];
            if (row % 16 < 8) {
                EXPECT_EQ(gated_row(row + 8, n), n / 2 + of_weights);
            }
        }
        for (const int count : times) EXPECT_EQ(count, 1);
    }
    EXPECT_EQ(gated_row(23, 48), 15);  // the eighth gate of the second tile
    EXPECT_EQ(gated_row(31, 48), 24 + 15);
}

}  // namespace
}  // namespace roofline::cuda::kernels
