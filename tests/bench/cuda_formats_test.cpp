// What the bits of weights and caches mean, which every answer of the CUDA kernels is checked against.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "roofline/bench/cuda/formats.hpp"

namespace roofline::cuda::kernels {
namespace {

TEST(CudaFormats, E4m3HasItsLandmarks) {
    EXPECT_EQ(decode_e4m3(0x38), 1.0);  // exponent 7 is the bias: 2^0
    EXPECT_EQ(decode_e4m3(0xB8), -1.0);
    EXPECT_EQ(decode_e4m3(0x7E), 448.0);   // 1.75 x 2^8, the largest
    EXPECT_EQ(decode_e4m3(0x08), 0x1p-6);  // the smallest with a leading one
    EXPECT_EQ(decode_e4m3(0x01), 0x1p-9);  // the smallest of all: 1/8 x 2^-6
    EXPECT_EQ(decode_e4m3(0x07), 0x7p-9);
    EXPECT_TRUE(std::isnan(decode_e4m3(0x7F)));
    EXPECT_TRUE(std::isnan(decode_e4m3(0xFF)));
}

TEST(CudaFormats, E4m3RisesWithItsBits) {
    for (int i = 1; i < 0x7F; ++i) {
        EXPECT_LT(decode_e4m3(static_cast<std::uint8_t>(i - 1)), decode_e4m3(static_cast<std::uint8_t>(i))) << i;
    }
}

TEST(CudaFormats, Bf16IsTheUpperHalfOfAFloat) {
    EXPECT_EQ(decode_bf16(0x3F80), 1.0);
    EXPECT_EQ(decode_bf16(0xC000), -2.0);
    EXPECT_EQ(decode_bf16(0x3F81), 1.0078125);  // 1 + 2^-7
}

TEST(CudaFormats, Int4TakesTheLowNibbleFirstAndLessEight) {
    const std::vector<std::uint8_t> row = {0xF0, 0x18};
    EXPECT_EQ(decode(row.data(), 0, Format::int4), -8.0);
    EXPECT_EQ(decode(row.data(), 1, Format::int4), 7.0);
    EXPECT_EQ(decode(row.data(), 2, Format::int4), 0.0);
    EXPECT_EQ(decode(row.data(), 3, Format::int4), -7.0);
}

TEST(CudaFormats, Int8IsTwosComplement) {
    const std::vector<std::uint8_t> row = {0x7F, 0x80, 0xFF};
    EXPECT_EQ(decode(row.data(), 0, Format::int8), 127.0);
    EXPECT_EQ(decode(row.data(), 1, Format::int8), -128.0);
    EXPECT_EQ(decode(row.data(), 2, Format::int8), -1.0);
}

// 2 rows of 256: 512 values. bf16: 1,024 B. fp8, int8: 512 B and a float a row, 8 B. int4: 256 B and a bf16 scale for
// each 128 values, 4 of them, 8 B.
TEST(CudaFormats, ScalesCountAmongTheBytesOfWeights) {
    EXPECT_EQ(weight_bytes(Format::bf16, 2, 256), 1024.0);
    EXPECT_EQ(weight_bytes(Format::fp8, 2, 256), 520.0);
    EXPECT_EQ(weight_bytes(Format::int8, 2, 256), 520.0);
    EXPECT_EQ(weight_bytes(Format::int4, 2, 256), 264.0);
}

}  // namespace
}  // namespace roofline::cuda::kernels
