// Windows made by hand, figures worked out on paper.
#include "roofline/measure/estimate.hpp"

#include <gtest/gtest.h>

namespace roofline::measure {
namespace {

TEST(Estimate, NoWindowsGiveNoRate) {
    EXPECT_EQ(estimate({}).rate, 0.0);
    EXPECT_FALSE(estimate({}).agreed);
}

TEST(Estimate, TheThreeFastestThatAgreeAreAveraged) {
    // 100, 99, 98.5 lie within 2%: (100 + 99 + 98.5) / 3 = 99.1666...; the rest is slower and does not matter.
    const std::vector<double> rates = {50.0, 98.5, 100.0, 70.0, 99.0};
    const Estimate found = estimate(rates);
    EXPECT_TRUE(found.agreed);
    EXPECT_DOUBLE_EQ(found.rate, 297.5 / 3.0);
    EXPECT_DOUBLE_EQ(found.spread, 0.015);
}

TEST(Estimate, AWindowFasterThanAllOthersIsAnErrorOfTheClock) {
    const std::vector<double> rates = {100.0, 100.0, 99.0, 250.0};
    const Estimate found = estimate(rates);
    EXPECT_TRUE(found.agreed);
    EXPECT_DOUBLE_EQ(found.rate, 299.0 / 3.0);
}

TEST(Estimate, ExactlyTwoPercentApartStillAgree) {
    EXPECT_TRUE(estimate(std::vector<double>{100.0, 99.0, 98.0}).agreed);
    EXPECT_FALSE(estimate(std::vector<double>{100.0, 99.0, 97.9}).agreed);
}

TEST(Estimate, ManySlowWindowsThatAgreeAreNotTheFigure) {
    // A busy machine: three fast windows that differ, then a crowd at half the speed. More than two would have to be
    // passed over to get to the crowd, so the fastest three count, and the spread says how little they agree.
    const std::vector<double> rates = {100.0, 95.0, 90.0, 50.0, 50.0, 50.0, 50.0};
    const Estimate found = estimate(rates);
    EXPECT_FALSE(found.agreed);
    EXPECT_DOUBLE_EQ(found.rate, 95.0);
    EXPECT_DOUBLE_EQ(found.spread, 0.1);
}

TEST(Estimate, FewerThanThreeWindowsNeverAgree) {
    const Estimate found = estimate(std::vector<double>{100.0, 100.0});
    EXPECT_FALSE(found.agreed);
    EXPECT_DOUBLE_EQ(found.rate, 100.0);
}

TEST(Settled, TenMoreWindowsThatGainNothingSettleIt) {
    std::vector<double> rates = {100.0, 100.0, 100.0};
    EXPECT_FALSE(settled(rates));
    for (int i = 0; i < 9; ++i) rates.push_back(90.0);
    EXPECT_FALSE(settled(rates));  // nine more
    rates.push_back(90.0);
    EXPECT_TRUE(settled(rates));
}

TEST(Settled, AGainOfMoreThanAPercentAmongTheLastTenKeepsItOpen) {
    std::vector<double> rates = {100.0, 100.0, 100.0};
    for (int i = 0; i < 7; ++i) rates.push_back(90.0);
    for (int i = 0; i < 3; ++i) rates.push_back(101.5);
    EXPECT_FALSE(settled(rates));
    for (int i = 0; i < 10; ++i) rates.push_back(101.6);  // 101.6 over 101.5 gains a tenth of a percent
    EXPECT_TRUE(settled(rates));
}

std::vector<SweepPoint> sweep_of(const std::vector<std::pair<double, double>>& points) {
    std::vector<SweepPoint> sweep;
    for (const auto& [kib, rate] : points) sweep.push_back({kib * 1024.0, rate});
    return sweep;
}

TEST(Plateaus, KneesAreWhereTheRateFallsBelowThePlateau) {
    // 48 KiB, 1 MiB, 32 MiB, drawn with a slope of one octave after each knee.
    const auto sweep =
        sweep_of({{8, 200},    {16, 200},   {32, 199},   {48, 198},   {64, 150},    {96, 110},   {128, 100},
                  {256, 100},  {512, 100},  {1024, 98},  {1448, 60},  {2048, 42},   {4096, 40},  {8192, 40},
                  {16384, 40}, {32768, 38}, {46341, 20}, {65536, 11}, {131072, 10}, {262144, 10}});
    const auto levels = plateaus(sweep);
    ASSERT_EQ(levels.size(), 4U);
    EXPECT_EQ(levels[0].knee, 48.0 * 1024.0);
    EXPECT_EQ(levels[1].knee, 1024.0 * 1024.0);
    EXPECT_EQ(levels[2].knee, 32768.0 * 1024.0);
    EXPECT_EQ(levels[3].knee, 262144.0 * 1024.0);  // the largest that was tried
    EXPECT_NEAR(levels[0].rate, 200.0, 1e-9);
    EXPECT_NEAR(levels[1].rate, 110.0, 1e-9);  // at its start, still a little helped by the level above
    EXPECT_NEAR(levels[3].rate, 10.0, 1.0);
}

TEST(Plateaus, ASlowPointInTheMiddleIsNoKnee) {
    // A larger working set is never read faster, so 100 at 512 KiB proves that 256 KiB was only disturbed.
    const auto sweep = sweep_of({{64, 100}, {128, 100}, {256, 30}, {512, 100}, {1024, 10}, {2048, 10}, {4096, 10}});
    const auto levels = plateaus(sweep);
    ASSERT_EQ(levels.size(), 2U);
    EXPECT_EQ(levels[0].knee, 512.0 * 1024.0);
}

TEST(Plateaus, AFlatSweepIsOneLevel) {
    const auto levels = plateaus(sweep_of({{8, 10}, {16, 10}, {32, 9.8}, {64, 9.9}, {128, 9.7}}));
    ASSERT_EQ(levels.size(), 1U);
    EXPECT_EQ(levels[0].knee, 128.0 * 1024.0);
    EXPECT_TRUE(plateaus({}).empty());
}

}  // namespace
}  // namespace roofline::measure
