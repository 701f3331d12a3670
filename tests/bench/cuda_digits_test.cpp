// Activations as two digits, which is how our CUDA kernels multiply them by weights of eight bits and fewer.
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "roofline/bench/cuda/digits.hpp"
#include "roofline/bench/cuda/formats.hpp"

namespace roofline::cuda::kernels {
namespace {

double as_int8(std::uint32_t byte) {
    return static_cast<double>(static_cast<std::int8_t>(static_cast<std::uint8_t>(byte)));
}

/// What a bf16 of a group with this power is after it was cut and put together again.
double recovered(std::uint16_t value, int power) {
    const auto scaled = static_cast<float>(decode_bf16(value)) * power_of_two(IntegerDigits::top - power);
    const Digits cut = IntegerDigits::cut(scaled);
    const double unit = static_cast<double>(power_of_two(power - IntegerDigits::unit));
    return unit * (as_int8(cut.high) + static_cast<double>(IntegerDigits::low_weight) * as_int8(cut.low));
}

// Every bf16 with the largest's power of two, and those down to 2^-6 of it, has its 8 bits within the 15 of two digits.
TEST(IntegerDigits, AreExactDownToASixtyFourthOfTheLargest) {
    for (const int power : {-3, 0, 9}) {
        for (int exponent = power - 6; exponent <= power; ++exponent) {
            for (std::uint32_t mantissa = 0; mantissa < 128; ++mantissa) {
                for (const std::uint32_t sign : {0U, 0x8000U}) {
                    const auto value =
                        static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(127 + exponent) << 7 | mantissa);
                    EXPECT_EQ(recovered(value, power), decode_bf16(value)) << value << " in 2^" << power;
                }
            }
        }
    }
}

// Rounding to 2^-13 of the power loses half of that at most.
TEST(IntegerDigits, LoseNoMoreThanTwoToTheMinusFourteenOfThePower) {
    std::mt19937 random(5);
    for (int i = 0; i < 20000; ++i) {
        const auto value = static_cast<std::uint16_t>(random() % 0x3F80U | (random() % 2) << 15);  // below 1 in size
        EXPECT_LE(std::fabs(recovered(value, 0) - decode_bf16(value)), 0x1p-14) << value;
    }
}

TEST(GroupPower, IsThatOfTheLargestAndStaysWithinAFloat) {
    EXPECT_EQ(group_power(0x3F80), 0);  // 1
    EXPECT_EQ(group_power(0x3FFF), 0);  // just below 2
    EXPECT_EQ(group_power(0x4000), 1);
    EXPECT_EQ(group_power(0x0000), -100);
    EXPECT_EQ(group_power(0x0001), -100);
    EXPECT_GT(power_of_two(IntegerDigits::top - group_power(0)), 0.0F);
    EXPECT_TRUE(std::isfinite(power_of_two(IntegerDigits::top - group_power(0))));
    EXPECT_GT(power_of_two(IntegerDigits::top - group_power(0x7F7F)), 0.0F);  // the largest bf16
}

}  // namespace
}  // namespace roofline::cuda::kernels
