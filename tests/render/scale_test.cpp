#include "roofline/render/chart/scale.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace roofline::render::chart {
namespace {

TEST(Log10, IsRightToFourteenDigitsOverTheWholeRange) {
    for (double value = 1e-290; value < 1e290; value *= 3.7)
        EXPECT_NEAR(log10_of(value), std::log10(value), 1e-13) << value;
    EXPECT_NEAR(log10_of(1.0), 0.0, 1e-16);
    EXPECT_NEAR(log10_of(2.0), 0.30102999566398120, 1e-15);
    EXPECT_NEAR(log10_of(1000.0), 3.0, 1e-15);
}

TEST(Decade, OfAPowerOfTenIsItsExponentAndJustBelowOneLess) {
    for (int exponent = -20; exponent <= 20; ++exponent) {
        const double power = power_of_ten(exponent);
        EXPECT_EQ(decade_of(power), exponent);
        EXPECT_EQ(decade_of(std::nextafter(power, 0.0)), exponent - 1);
        EXPECT_EQ(decade_of(9.99 * power), exponent);
    }
}

TEST(Scale, LogarithmicPutsTheGeometricMeanInTheMiddle) {
    const Scale scale{1.0, 10000.0, 0.0, 400.0, true};
    EXPECT_NEAR(scale.at(100.0), 200.0, 1e-9);
    EXPECT_NEAR(scale.at(1.0), 0.0, 1e-9);
    EXPECT_NEAR(scale.at(10000.0), 400.0, 1e-9);
}

TEST(Scale, MayRunDownwardsAsHeightsOnPaperDo) {
    const Scale scale{0.0, 10.0, 300.0, 100.0, false};
    EXPECT_DOUBLE_EQ(scale.at(0.0), 300.0);
    EXPECT_DOUBLE_EQ(scale.at(2.5), 250.0);
}

TEST(Ticks, OfDecadesHaveNamesAtPowersOfTenOnly) {
    std::string names;
    int minor = 0;
    for (const Tick& tick : log_ticks(1.0, 1e4)) {
        if (tick.label.empty())
            ++minor;
        else
            names += tick.label + " ";
    }
    EXPECT_EQ(names, "1 10 100 1k 10k ");
    EXPECT_EQ(minor, 4 * 8);  // 2 to 9 of each of the four decades
}

TEST(Ticks, OfFewDecadesNameTwosAndFivesToo) {
    std::string names;
    for (const Tick& tick : log_ticks(1.0, 50.0)) names += tick.label.empty() ? "" : tick.label + " ";
    EXPECT_EQ(names, "1 2 5 10 20 50 ");
}

TEST(Ticks, LieInsideTheRangeHoweverItIsChosen) {
    for (double low = 1e-9; low < 1e9; low *= 7.3) {
        for (double factor = 1.01; factor < 1e12; factor *= 9.1) {
            for (const Tick& tick : log_ticks(low, low * factor)) {
                EXPECT_GE(tick.value, low * 0.999999);
                EXPECT_LE(tick.value, low * factor * 1.000001);
            }
        }
    }
}

TEST(Ticks, OfLinearScalesAreOneTwoOrFiveTimesAPowerOfTen) {
    std::string names;
    for (const Tick& tick : linear_ticks(0.0, 10.0)) names += tick.label + " ";
    EXPECT_EQ(names, "0 2 4 6 8 10 ");
    names.clear();
    for (const Tick& tick : linear_ticks(0.0, 2300.0)) names += tick.label + " ";
    EXPECT_EQ(names, "0 500 1k 1.5k 2k ");
}

TEST(Engineering, WritesTheLetterAndNoMoreDigitsThanNeeded) {
    EXPECT_EQ(engineering(0.0), "0");
    EXPECT_EQ(engineering(0.1), "0.1");
    EXPECT_EQ(engineering(1e3), "1k");
    EXPECT_EQ(engineering(5e7), "50M");
    EXPECT_EQ(engineering(1e15), "1P");
    EXPECT_EQ(engineering(-2e6), "-2M");
    EXPECT_EQ(engineering(1e-6), "1e-06");
}

TEST(LogScale, HoldsBothEndsInWholeDecades) {
    const Scale scale = log_scale(3.0, 450.0, 0.0, 1.0);
    EXPECT_DOUBLE_EQ(scale.low, 1.0);
    EXPECT_DOUBLE_EQ(scale.high, 1000.0);
    const Scale one = log_scale(5.0, 5.0, 0.0, 1.0, 2);
    EXPECT_TRUE(one.holds(5.0));
    EXPECT_GE(one.high / one.low, 99.0);
}

TEST(LinearScale, BeginsAtZeroAndEndsAtARoundNumber) {
    const Scale scale = linear_scale(3.0, 87.0, 0.0, 1.0);
    EXPECT_DOUBLE_EQ(scale.low, 0.0);
    EXPECT_DOUBLE_EQ(scale.high, 100.0);
}

}  // namespace
}  // namespace roofline::render::chart
