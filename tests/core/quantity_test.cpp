#include "roofline/core/quantity.hpp"

#include <type_traits>

#include <gtest/gtest.h>

namespace roofline {
namespace {

template <class A, class B>
concept CanAdd = requires(A a, B b) { a + b; };
template <class A, class B>
concept CanCompare = requires(A a, B b) { a < b; };

TEST(Quantity, AddsAndSubtractsWithinAUnit) {
    EXPECT_EQ((Bytes(3.0) + Bytes(4.0)).value, 7.0);
    EXPECT_EQ((Bytes(3.0) - Bytes(4.0)).value, -1.0);
    Seconds time(1.5);
    time += Seconds(0.25);
    EXPECT_EQ(time.value, 1.75);
    EXPECT_EQ(Flops().value, 0.0);
}

TEST(Quantity, ScalesByPlainNumbersFromBothSides) {
    EXPECT_EQ((Flops(3.0) * 2.0).value, 6.0);
    EXPECT_EQ((2.0 * Flops(3.0)).value, 6.0);
    EXPECT_EQ((Flops(3.0) / 2.0).value, 1.5);
}

TEST(Quantity, DividingFlopsByBytesGivesIntensity) {
    const auto intensity = Flops(12.0) / Bytes(4.0);
    static_assert(std::is_same_v<std::remove_const_t<decltype(intensity)>, FlopsPerByte>);
    EXPECT_EQ(intensity.value, 3.0);
}

TEST(Quantity, BytesOverBandwidthAreSeconds) {
    const auto time = Bytes(16e9) / BytesPerSecond(4e9);
    static_assert(std::is_same_v<std::remove_const_t<decltype(time)>, Seconds>);
    EXPECT_EQ(time.value, 4.0);
}

TEST(Quantity, RatesTimesTimeGiveBackWhatWasDivided) {
    const auto bytes = BytesPerSecond(4e9) * Seconds(4.0);
    static_assert(std::is_same_v<std::remove_const_t<decltype(bytes)>, Bytes>);
    EXPECT_EQ(bytes.value, 16e9);
    const auto tokens = TokensPerSecond(200.0) * Seconds(0.5);
    static_assert(std::is_same_v<std::remove_const_t<decltype(tokens)>, Tokens>);
    EXPECT_EQ(tokens.value, 100.0);
}

TEST(Quantity, TheRidgeIsPeakOverBandwidth) {
    const auto ridge = FlopsPerSecond(1000.0) / BytesPerSecond(4.0);
    static_assert(std::is_same_v<std::remove_const_t<decltype(ridge)>, FlopsPerByte>);
    EXPECT_EQ(ridge.value, 250.0);
}

TEST(Quantity, UnitsThatCancelLeaveAPlainNumber) {
    const auto ratio = Seconds(6.0) / Seconds(4.0);
    static_assert(std::is_same_v<std::remove_const_t<decltype(ratio)>, double>);
    EXPECT_EQ(ratio, 1.5);
    const auto product = FlopsPerByte(4.0) * (Bytes(3.0) / Flops(2.0));
    static_assert(std::is_same_v<std::remove_const_t<decltype(product)>, double>);
    EXPECT_EQ(product, 6.0);
}

TEST(Quantity, ComparesByValue) {
    EXPECT_TRUE(Seconds(1.0) < Seconds(2.0));
    EXPECT_FALSE(Seconds(2.0) < Seconds(2.0));
    EXPECT_TRUE(Seconds(2.0) <= Seconds(2.0));
    EXPECT_TRUE(Seconds(3.0) > Seconds(2.0));
    EXPECT_TRUE(Seconds(3.0) >= Seconds(3.0));
    EXPECT_TRUE(Seconds(3.0) == Seconds(3.0));
    EXPECT_FALSE(Seconds(3.0) == Seconds(4.0));
    EXPECT_EQ(larger(Bytes(2.0), Bytes(5.0)).value, 5.0);
    EXPECT_EQ(larger(Bytes(5.0), Bytes(2.0)).value, 5.0);
}

TEST(Quantity, UnitsDoNotMix) {
    EXPECT_TRUE((CanAdd<Flops, Flops>));
    EXPECT_TRUE((CanCompare<Seconds, Seconds>));
    EXPECT_FALSE((CanAdd<Flops, Bytes>));
    EXPECT_FALSE((CanAdd<Tokens, Seconds>));
    EXPECT_FALSE((CanAdd<Bytes, double>));
    EXPECT_FALSE((CanCompare<Seconds, Bytes>));
    EXPECT_FALSE((CanCompare<Bytes, double>));
    EXPECT_FALSE((std::is_convertible_v<double, Bytes>));
    EXPECT_FALSE((std::is_convertible_v<Bytes, double>));
    EXPECT_FALSE((std::is_convertible_v<FlopsPerByte, Bytes>));
}

}  // namespace
}  // namespace roofline
