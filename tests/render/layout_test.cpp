#include "roofline/render/chart/layout.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "roofline/render/chart/text_width.hpp"

namespace roofline::render::chart {
namespace {

Box mark_of(const Label& label) {
    const double r = label.radius * 0.9;
    return {label.target.x - r, label.target.y - r, label.target.x + r, label.target.y + r};
}

TEST(Labels, NeverOverlapEachOtherAMarkOrTheEdgeHoweverPointsLie) {
    std::mt19937 random(7);
    const auto between = [&](int low, int high) {
        return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
    };
    const Box within{0.0, 0.0, 900.0, 500.0};
    int placed_in_all = 0;
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<Label> labels;
        const int count = between(1, 40);
        const int spread = between(5, 450);  // from a heap to all over the place
        for (int i = 0; i < count; ++i) {
            const Point target{450.0 + between(-spread, spread), 250.0 + between(-spread, spread) * 0.5};
            labels.push_back({target, static_cast<double>(between(3, 18)),
                              std::string(static_cast<std::size_t>(between(1, 20)), 'm'), 12.0, between(0, 9) * 1.0,
                              false});
        }
        const std::vector<Box> taken = {{0.0, 0.0, 200.0, 30.0}, {500.0, 100.0, 520.0, 400.0}};
        const auto placed = place_labels(labels, taken, within);
        ASSERT_EQ(placed.size(), labels.size());
        for (std::size_t i = 0; i < placed.size(); ++i) {
            if (!placed[i]) continue;
            ++placed_in_all;
            const Box& box = placed[i]->box;
            EXPECT_TRUE(box.inside(within));
            EXPECT_GE(box.width() + 1e-9, text_width(labels[i].text, 12.0));
            for (const Box& other : taken) EXPECT_FALSE(box.overlaps(other));
            for (const Label& other : labels) EXPECT_FALSE(box.overlaps(mark_of(other)));
            for (std::size_t j = 0; j < i; ++j) {
                if (!placed[j]) continue;
                EXPECT_FALSE(box.overlaps(placed[j]->box)) << trial << ": " << i << " and " << j;
            }
        }
    }
    EXPECT_GT(placed_in_all, 1000);  // leaving all of them out would be too easy
}

TEST(Labels, ThatAreNeededAreAllPlacedAsLongAsThereIsRoom) {
    std::vector<Label> labels;
    for (int i = 0; i < 60; ++i) {  // a heap of points, each with a name
        labels.push_back({{400.0 + i % 8 * 6.0, 300.0 + i / 8 * 6.0}, 5.0, "device-1234", 11.0, 0.0, false, true});
    }
    const Box within{0.0, 0.0, 900.0, 600.0};
    const auto placed = place_labels(labels, {}, within);
    for (std::size_t i = 0; i < placed.size(); ++i) {
        ASSERT_TRUE(placed[i]) << i;
        EXPECT_TRUE(placed[i]->box.inside(within));
        for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(placed[i]->box.overlaps(placed[j]->box)) << i << " and " << j;
        for (const Label& other : labels) EXPECT_FALSE(placed[i]->box.overlaps(mark_of(other)));
    }
    for (Label& label : labels) label.needed = false;
    const auto unneeded = place_labels(labels, {}, within);
    EXPECT_TRUE(std::any_of(unneeded.begin(), unneeded.end(), [](const auto& label) { return !label; }));
}

TEST(Labels, ThoseThatMatterMostGetTheBestPlace) {
    const Point target{100.0, 100.0};
    const auto placed =
        place_labels({{target, 5.0, "first", 12.0, 1.0, false}, {target, 5.0, "second", 12.0, 2.0, false}}, {},
                     {0.0, 0.0, 200.0, 200.0});
    ASSERT_TRUE(placed[0] && placed[1]);
    EXPECT_DOUBLE_EQ(placed[1]->box.left, 108.0);  // 5 of the mark and 3 beside it
    EXPECT_LT(placed[0]->box.right, 100.0);        // the next best side
}

TEST(Labels, AreLeftOutWhereThereIsNoRoom) {
    const auto placed = place_labels({{{50.0, 10.0}, 5.0, "a long name that has no room", 12.0, 1.0, false}}, {},
                                     {0.0, 0.0, 100.0, 20.0});
    EXPECT_FALSE(placed[0]);
}

}  // namespace
}  // namespace roofline::render::chart
