#include "roofline/core/quantile.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace roofline {
namespace {

TEST(Quantile, OfPlainValuesIsBetweenTheTwoNearest) {
    const std::vector<Weighted> values = {{1.0}, {2.0}, {4.0}, {8.0}, {16.0}};
    EXPECT_EQ(quantile(values, 0.0), 1.0);
    EXPECT_EQ(quantile(values, 0.5), 4.0);
    EXPECT_DOUBLE_EQ(quantile(values, 0.9), 12.8);  // place 3.6 of 0 to 4: 8 + 0.6 x 8
    EXPECT_EQ(quantile(values, 1.0), 16.0);
}

TEST(Quantile, AValueCountsAsOftenAsItsWeightSays) {
    // 1 1 1 5 5: the middle is the last 1, three quarters the first 5.
    const std::vector<Weighted> values = {{1.0, 3.0}, {5.0, 2.0}};
    EXPECT_EQ(quantile(values, 0.5), 1.0);
    EXPECT_EQ(quantile(values, 0.75), 5.0);
    EXPECT_DOUBLE_EQ(quantile(values, 0.625), 3.0);
    // Weights need not be whole: 2.5 + 1.5 make places up to 3, of which 1.5 to 2.5 lie between the two.
    EXPECT_DOUBLE_EQ(quantile(std::vector<Weighted>{{1.0, 2.5}, {5.0, 1.5}}, 2.0 / 3.0), 3.0);
}

TEST(Quantile, OfOneValueIsThatValue) {
    for (const double part : {0.0, 0.3, 1.0}) EXPECT_EQ(quantile(std::vector<Weighted>{{7.0}}, part), 7.0);
}

}  // namespace
}  // namespace roofline
