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
    // 256 x 512 in blocks of 128 x 128: 131,072 B and 8 floats; without the places that rows of scales leave free. In
    // groups of 32 or 16: 65,536 B and 4,096 or 8,192 bytes of scales.
    EXPECT_EQ(weight_bytes(Format::fp8_block, 256, 512), 131072.0 + 8 * 4);
    EXPECT_EQ(weight_bytes(Format::mxfp4, 256, 512), 65536.0 + 4096);
    EXPECT_EQ(weight_bytes(Format::nvfp4, 256, 512), 65536.0 + 8192);
    EXPECT_EQ(weight_bytes(Format::fp8, 0, 0), 0.0) << "a product that is not there";
}

TEST(CudaFormats, E2m1HasEightSizes) {
    const std::vector<std::uint8_t> row = {0x10, 0x32, 0x54, 0x76, 0xF9};
    const double sizes[] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.5, -6.0};
    for (std::size_t i = 0; i < 10; ++i) {
        EXPECT_EQ(decode(row.data(), i, Format::mxfp4), sizes[i]) << i;
        EXPECT_EQ(decode(row.data(), i, Format::nvfp4), sizes[i]) << i;
    }
}

TEST(CudaFormats, ScalesAreThoseOfTheirGroup) {
    const std::vector<std::uint8_t> powers = {127, 130};  // 2^0, 2^3
    EXPECT_EQ(decode_scale(powers.data(), 31, Format::mxfp4), 1.0);
    EXPECT_EQ(decode_scale(powers.data(), 32, Format::mxfp4), 8.0);
    const std::vector<std::uint8_t> small = {0x38, 0x7E};  // 1, 448
    EXPECT_EQ(decode_scale(small.data(), 15, Format::nvfp4), 1.0);
    EXPECT_EQ(decode_scale(small.data(), 16, Format::nvfp4), 448.0);
    const float blocks[] = {0.5f, 3.0f};
    EXPECT_EQ(decode_scale(reinterpret_cast<const std::uint8_t*>(blocks), 127, Format::fp8_block), 0.5);
    EXPECT_EQ(decode_scale(reinterpret_cast<const std::uint8_t*>(blocks), 128, Format::fp8_block), 3.0);
    EXPECT_EQ(decode_scale(reinterpret_cast<const std::uint8_t*>(blocks), 5000, Format::int8), 0.5) << "one a row";
    EXPECT_EQ(decode_scale(nullptr, 0, Format::bf16), 1.0);
}

// Against all numbers of e4m3, found by decoding every code: between two neighbours the nearer one counts, half-way the
// one whose code is even (its mantissa's last bit is 0).
TEST(CudaFormats, NumbersAreRoundedToTheNearestOfE4m3) {
    EXPECT_EQ(nearest_e4m3(0.0), 0.0);
    for (int code = 0; code < 0x7E; ++code) {
        const double low = decode_e4m3(static_cast<std::uint8_t>(code));
        const double high = decode_e4m3(static_cast<std::uint8_t>(code + 1));
        const double middle = (low + high) / 2.0;
        EXPECT_EQ(nearest_e4m3(low), low);
        EXPECT_EQ(nearest_e4m3(middle * (1.0 - 1e-12)), low);
        EXPECT_EQ(nearest_e4m3(middle * (1.0 + 1e-12)), high);
        EXPECT_EQ(nearest_e4m3(middle), code % 2 == 0 ? low : high) << code;
        EXPECT_EQ(nearest_e4m3(-high), -high);
    }
    EXPECT_EQ(nearest_e4m3(1e9), 448.0);
    EXPECT_EQ(nearest_e4m3(-449.0), -448.0);
}

// Rows of scales of blocks begin at multiples of 16 bytes: 768 values have 6 blocks, and room for 8.
TEST(CudaFormats, ScalesOfBlocksLieWhereTheyCanBeCopied) {
    EXPECT_EQ(blocks_of_row(512), 4);
    EXPECT_EQ(blocks_of_row(768), 8);
    EXPECT_EQ(scale_bytes(Format::fp8_block, 129, 768), 2U * 8 * 4);
    EXPECT_EQ(scale_bytes(Format::mxfp4, 16, 2880), 16U * 90);
    EXPECT_EQ(scale_bytes(Format::nvfp4, 16, 2880), 16U * 180);
    EXPECT_EQ(scale_bytes(Format::int4, 16, 256), 16U * 2 * 2);
    EXPECT_EQ(scale_bytes(Format::int8, 16, 256), 16U * 4);
}

}  // namespace
}  // namespace roofline::cuda::kernels
