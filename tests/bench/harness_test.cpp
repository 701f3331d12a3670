#include "roofline/bench/harness.hpp"

#include <gtest/gtest.h>

namespace roofline::bench {
namespace {

TEST(Harness, TheMedianOfAnEvenNumberLiesBetweenTheTwoInTheMiddle) {
    // Sorted: 1 2 3 4; the middle of 2 and 3 is 2.5. With three steps between four windows, a tenth is the first.
    const Timing timing = summarise({4.0, 1.0, 3.0, 2.0}, 40);
    EXPECT_DOUBLE_EQ(timing.median, 2.5);
    EXPECT_DOUBLE_EQ(timing.low, 1.0);
    EXPECT_DOUBLE_EQ(timing.high, 4.0);
    EXPECT_EQ(timing.calls, 40);
}

TEST(Harness, OneSlowWindowInElevenMovesNeitherTheMedianNorTheUpperTenth) {
    std::vector<double> windows(10, 1.0);
    windows.push_back(100.0);
    const Timing timing = summarise(windows, 11);
    EXPECT_DOUBLE_EQ(timing.median, 1.0);
    EXPECT_DOUBLE_EQ(timing.high, 1.0);
}

TEST(Harness, ACallOfAMillisecondIsTimedAsOneWhateverTheWindow) {
    double now = 0.0;
    Budget budget;
    budget.seconds = 0.1;
    budget.window = 5e-3;
    const Timing timing = time_calls([&](std::size_t) { now += 1e-3; }, 1, budget, [&] { return now; });
    EXPECT_NEAR(timing.median, 1e-3, 1e-12);
    EXPECT_NEAR(timing.low, 1e-3, 1e-12);
    // 0.1 s in windows of five calls of 1 ms are about 20 windows.
    EXPECT_NEAR(static_cast<double>(timing.calls), 100.0, 10.0);
}

TEST(Harness, CopiesAreUsedInTurn) {
    double now = 0.0;
    std::vector<int> uses(3, 0);
    Budget budget;
    budget.seconds = 0.03;
    (void)time_calls(
        [&](std::size_t copy) {
            ++uses[copy];
            now += 1e-3;
        },
        3, budget, [&] { return now; });
    EXPECT_LE(*std::max_element(uses.begin(), uses.end()) - *std::min_element(uses.begin(), uses.end()), 1);
    EXPECT_GT(uses[0], 5);
}

TEST(Harness, ACallThatOutlastsItsTimeByFarIsRunTwice) {
    double now = 0.0;
    int calls = 0;
    Budget budget;
    budget.seconds = 0.3;
    const Timing timing = time_calls(
        [&](std::size_t) {
            now += 90.0;
            ++calls;
        },
        1, budget, [&] { return now; });
    EXPECT_EQ(calls, 2);  // one to warm up, one that counts
    EXPECT_DOUBLE_EQ(timing.median, 90.0);
}

}  // namespace
}  // namespace roofline::bench
