#include "roofline/serving/elementary.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "roofline/serving/random.hpp"

namespace roofline::serving {
namespace {

TEST(Elementary, LogarithmAndExponentialAgreeWithTheLibraryToTheLastDigits) {
    for (double x = 1e-12; x < 1e12; x *= 1.37) {
        EXPECT_NEAR(natural_logarithm(x), std::log(x), 4e-15 * std::max(1.0, std::abs(std::log(x)))) << x;
    }
    for (double x = -700.0; x < 700.0; x += 0.731) EXPECT_NEAR(exponential(x) / std::exp(x), 1.0, 3e-13) << x;
    EXPECT_EQ(natural_logarithm(1.0), 0.0);
    EXPECT_EQ(exponential(0.0), 1.0);
    EXPECT_NEAR(power(0.9, 12.5), std::pow(0.9, 12.5), 1e-14);
    EXPECT_EQ(power(0.0, 2.0), 0.0);
    EXPECT_EQ(power(0.0, 0.0), 1.0);
}

TEST(Elementary, QuantilesOfTheNormalDistributionAreThoseOfTheTables) {
    EXPECT_EQ(normal_quantile(0.5), 0.0);
    EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
    EXPECT_NEAR(normal_quantile(0.9), 1.2815515655446004, 1e-12);
    EXPECT_NEAR(normal_quantile(0.025), -1.959963984540054, 1e-12);
    EXPECT_NEAR(normal_quantile(0.9999), 3.719016485455709, 1e-9);
    EXPECT_LT(normal_quantile(1.0 - 1e-15), 9.0);
}

TEST(Random, GivesTheNumbersThatSplitMix64Gives) {
    // Computed apart, in whole numbers of 64 bits: the state is seed + stream x 0xd1342543de82ef95, one number is
    // thrown away and the next is mixed into the state.
    Random random(1);
    EXPECT_EQ(random.next(), 0x8de95ca79dc4f05fULL);
    EXPECT_EQ(random.next(), 0xbdf79cd38e8bf57cULL);
    EXPECT_EQ(random.next(), 0xa213c97aaf0c4dd3ULL);
    Random other(1, 2);
    EXPECT_EQ(other.next(), 0xb0c539d8082b3adULL);
}

TEST(Random, WaitingTimesHaveTheirMean) {
    Random random(5);
    double sum = 0.0;
    for (int i = 0; i < 20000; ++i) sum += random.waiting_time(3.0);
    EXPECT_NEAR(sum / 20000, 3.0, 0.1);  // standard error 0.021
}

TEST(Elementary, TheNormalDistributionIsThatOfTables) {
    EXPECT_DOUBLE_EQ(normal_below(0.0), 0.5);
    EXPECT_NEAR(normal_below(1.0), 0.8413447460685429, 1e-14);
    EXPECT_NEAR(normal_below(-1.96), 0.0249978951482204, 1e-14);
    EXPECT_NEAR(normal_below(normal_quantile(0.2)), 0.2, 1e-14);
    EXPECT_EQ(normal_below(-9.0), 0.0);
}

}  // namespace
}  // namespace roofline::serving
