#include "roofline/core/dtype.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace roofline {
namespace {

const Format& format(const char* name) {
    const Format* found = find_format(name);
    EXPECT_NE(found, nullptr) << name;
    static const Format none;
    return found != nullptr ? *found : none;
}

double bits_of(const char* name) {
    return bits_per_element(format(name));
}

TEST(Format, PlainTypesTakeTheBitsInTheirName) {
    EXPECT_EQ(bits_of("fp64"), 64.0);
    EXPECT_EQ(bits_of("fp32"), 32.0);
    EXPECT_EQ(bits_of("bf16"), 16.0);
    EXPECT_EQ(bits_of("fp16"), 16.0);
    EXPECT_EQ(bits_of("fp8"), 8.0);
    EXPECT_EQ(bits_of("fp8_e4m3"), 8.0);
    EXPECT_EQ(bits_of("fp8_e5m2"), 8.0);
}

TEST(Format, Tf32IsStoredAsFp32) {
    EXPECT_EQ(bits_of("tf32"), 32.0);
    EXPECT_EQ(bits(DType::tf32), 32);
}

TEST(Format, MicroscaledFormatsCarryAnEightBitScalePerGroup) {
    EXPECT_EQ(bits_of("nvfp4"), 4.5);   // 4 + 8/16: an e4m3 scale for 16 numbers
    EXPECT_EQ(bits_of("mxfp4"), 4.25);  // 4 + 8/32: an e8m0 scale for 32 numbers
    EXPECT_EQ(bits_of("mxfp8"), 8.25);  // 8 + 8/32
}

TEST(Format, AwqAndGptqCarryAScaleAndAZeroPointPerGroup) {
    // 16-bit scale and 4-bit zero point for 128 weights: 4 + 20/128
    EXPECT_EQ(bits_of("awq"), 4.15625);
    EXPECT_EQ(bits_of("gptq"), 4.15625);
    EXPECT_EQ(bits_of("int4"), 4.15625);
    // symmetric, groups of 32: 4 + 16/32
    EXPECT_EQ(bits_of("int4_g32"), 4.5);
}

TEST(Format, BlockScaledFp8CarriesOneFp32For128x128) {
    // 8 + 32/(128 x 128) = 8 + 32/16384 = 8.001953125
    EXPECT_EQ(bits_of("fp8_block"), 8.001953125);
}

TEST(Format, ChannelScalesVanishInALongRow) {
    EXPECT_EQ(bits_of("int8"), 8.0);
}

struct GgufBlock {
    const char* name;
    double bytes;  // of a block, summed from the fields of its struct in ggml-common.h
    double numbers;
};

TEST(Format, GgufTypesTakeTheirBlockBytes) {
    // d, m: 2-byte halves; qs: payload; scales of a K-quant: 6 bits each unless said otherwise.
    const GgufBlock blocks[] = {
        {"q4_0", 2 + 16, 32},                  // d, 32 x 4 bit
        {"q4_1", 2 + 2 + 16, 32},              // d, m, 32 x 4 bit
        {"q5_0", 2 + 4 + 16, 32},              // d, 32 high bits, 32 x 4 bit
        {"q5_1", 2 + 2 + 4 + 16, 32},          // d, m, 32 high bits, 32 x 4 bit
        {"q8_0", 2 + 32, 32},                  // d, 32 x 8 bit
        {"q8_1", 2 + 2 + 32, 32},              // d, s, 32 x 8 bit
        {"q2_k", 16 + 64 + 2 + 2, 256},        // 16 scales and mins of 4+4 bit, 256 x 2 bit, d, dmin
        {"q3_k", 32 + 64 + 12 + 2, 256},       // 256 high bits, 256 x 2 bit, 16 x 6 bit scales, d
        {"q4_k", 2 + 2 + 12 + 128, 256},       // d, dmin, 8 scales and mins of 6 bit, 256 x 4 bit
        {"q5_k", 2 + 2 + 12 + 32 + 128, 256},  // and 256 high bits
        {"q6_k", 128 + 64 + 16 + 2, 256},      // 256 x 4 bit, 256 x 2 bit, 16 x 8 bit scales, d
        {"q8_k", 4 + 256 + 32, 256},           // fp32 d, 256 x 8 bit, 16 sums of 16 bit
        {"iq1_s", 2 + 32 + 16, 256},           // d, 32 x 8 bit, 8 x 16 bit
        {"iq1_m", 32 + 16 + 8, 256},           // 32 x 8 bit, 16 x 8 bit, 8 bytes of scales
        {"iq2_xxs", 2 + 64, 256},              // d, 32 x 16 bit
        {"iq2_xs", 2 + 64 + 8, 256},           // and 8 bytes of scales
        {"iq2_s", 2 + 64 + 8 + 8, 256},        // d, 64, 8 high, 8 scales
        {"iq3_xxs", 2 + 96, 256},              // d, 3 x 256/8 bytes
        {"iq3_s", 2 + 64 + 8 + 32 + 4, 256},   // d, qs, qh, signs, scales
        {"iq4_nl", 2 + 16, 32},                // d, 32 x 4 bit
        {"iq4_xs", 2 + 2 + 4 + 128, 256},      // d, scales high, scales low, 256 x 4 bit
        {"tq1_0", 48 + 4 + 2, 256},            // 240 trits at 5 a byte, 16 at 4 a byte, d
        {"tq2_0", 64 + 2, 256},                // 256 x 2 bit, d
        {"mxfp4", 1 + 16, 32},                 // e8m0, 32 x 4 bit: GGUF's own block is the same format
    };
    for (const GgufBlock& block : blocks) {
        EXPECT_EQ(bits_of(block.name), block.bytes * 8.0 / block.numbers) << block.name;
    }
}

TEST(Format, GgufTypesAreUnpackedBeforeTheyAreMultiplied) {
    for (const char* name : {"q4_0", "q8_0", "q4_k", "q6_k", "iq4_xs", "q4_k_m", "q5_k_m", "awq", "gptq", "int4"}) {
        EXPECT_TRUE(format(name).weight_only) << name;
    }
    for (const char* name : {"bf16", "fp8", "fp8_block", "mxfp8", "mxfp4", "nvfp4", "int8"}) {
        EXPECT_FALSE(format(name).weight_only) << name;
    }
}

TEST(Format, FileMixesLieBetweenTheTypesTheyMix) {
    // Q4_K_M is Q4_K (4.5) with some tensors in Q6_K (6.5625); _S has fewer of those than _M.
    EXPECT_GT(bits_of("q4_k_s"), 4.5);
    EXPECT_GT(bits_of("q4_k_m"), bits_of("q4_k_s"));
    EXPECT_LT(bits_of("q4_k_m"), 6.5625);
    EXPECT_GT(bits_of("q5_k_s"), 5.5);
    EXPECT_GT(bits_of("q5_k_m"), bits_of("q5_k_s"));
    EXPECT_LT(bits_of("q5_k_m"), 6.5625);
    EXPECT_GT(bits_of("q3_k_s"), 3.4375);
    EXPECT_GT(bits_of("q3_k_l"), bits_of("q3_k_m"));
    EXPECT_GT(bits_of("q3_k_m"), bits_of("q3_k_s"));
    EXPECT_FALSE(format("q4_k_m").note.empty()) << "an average must say that it is one";
}

TEST(Format, EveryNameIsFoundAndFoundOnce) {
    std::set<std::string> names;
    for (const Format& each : all_formats()) {
        EXPECT_TRUE(names.insert(std::string(each.name)).second) << each.name;
        EXPECT_EQ(find_format(each.name), &each) << each.name;
        EXPECT_GT(bits_per_element(each), 1.0) << each.name;
    }
}

TEST(Format, NamesOfOtherProgramsMeanTheSame) {
    EXPECT_EQ(format("half").name, "fp16");
    EXPECT_EQ(format("bfloat16").name, "bf16");
    EXPECT_EQ(format("BF16").name, "bf16");
    EXPECT_EQ(format("Q4_K_M").name, "q4_k_m");
    EXPECT_EQ(format("fp8-e4m3").name, "fp8_e4m3");
    EXPECT_EQ(format("float8_e4m3fn").name, "fp8_e4m3");
    EXPECT_EQ(format("int4_awq").name, "awq");
    EXPECT_EQ(format("fp4").name, "nvfp4");
    EXPECT_EQ(find_format("bf17"), nullptr);
    EXPECT_EQ(find_format(""), nullptr);
}

TEST(Format, ABareTypeIsStoredInItsUsualContainer) {
    EXPECT_EQ(plain_format(DType::bf16).name, "bf16");
    EXPECT_EQ(plain_format(DType::fp4).name, "nvfp4");
    EXPECT_EQ(plain_format(DType::int4).name, "int4");
    for (const DType type : all_dtypes) EXPECT_EQ(plain_format(type).value, type) << name(type);
}

TEST(DType, NamesParseBack) {
    for (const DType type : all_dtypes) EXPECT_EQ(parse_dtype(name(type)), type) << name(type);
    EXPECT_EQ(parse_dtype("bfloat16"), DType::bf16);
    EXPECT_FALSE(parse_dtype("fp7").has_value());
}

TEST(MatrixBytes, PlainMatricesAreRowsTimesColumns) {
    EXPECT_EQ(matrix_bytes(format("bf16"), 4096, 6144).value, 4096.0 * 6144.0 * 2.0);
    EXPECT_EQ(matrix_bytes(format("fp32"), 3, 5).value, 60.0);
    EXPECT_EQ(matrix_bytes(format("bf16"), 0, 5).value, 0.0);
}

TEST(MatrixBytes, ChannelScalesAreOnePerColumn) {
    // 100 x 7 bytes and 7 fp32 scales
    EXPECT_EQ(matrix_bytes(format("int8"), 100, 7).value, 700.0 + 28.0);
}

TEST(MatrixBytes, WholeGroupsTakeTheBitsPerElement) {
    EXPECT_EQ(matrix_bytes(format("nvfp4"), 4096, 100).value, 4096.0 * 100.0 * 4.5 / 8.0);
    EXPECT_EQ(matrix_bytes(format("awq"), 4096, 100).value, 4096.0 * 100.0 * 4.15625 / 8.0);
    EXPECT_EQ(matrix_bytes(format("fp8_block"), 512, 256).value, 512.0 * 256.0 * 8.001953125 / 8.0);
}

TEST(MatrixBytes, ARaggedGroupStillHasItsScale) {
    // 130 rows = one group of 128 and one of 2: two scales of 20 bits per column.
    // (130 x 3 x 4 + 2 x 3 x 20) / 8 = (1560 + 120) / 8 = 210
    EXPECT_EQ(matrix_bytes(format("awq"), 130, 3).value, 210.0);
    // 17 rows of nvfp4: two scales. (17 x 8 x 4 + 2 x 8 x 8) / 8 = 68 + 16 = 84
    EXPECT_EQ(matrix_bytes(format("nvfp4"), 17, 8).value, 84.0);
}

TEST(MatrixBytes, RaggedBlocksAreRaggedBothWays) {
    // 129 x 257 in blocks of 128 x 128: 2 x 3 scales of 4 bytes beside 129 x 257 = 33153 bytes
    EXPECT_EQ(matrix_bytes(format("fp8_block"), 129, 257).value, 33153.0 + 24.0);
}

TEST(MatrixBytes, GroupsRunAlongTheInnerDimension) {
    // 16 x 32: one group per column, 32 scales. 32 x 16: two groups per column, 32 scales. 8 x 32: 32 scales for half
    // the payload.
    EXPECT_EQ(matrix_bytes(format("nvfp4"), 8, 32).value, 8.0 * 32.0 / 2.0 + 32.0);
    EXPECT_EQ(matrix_bytes(format("nvfp4"), 32, 8).value, 8.0 * 32.0 / 2.0 + 16.0);
}

TEST(Wider, TakesTheWiderOfTwoTypes) {
    EXPECT_EQ(wider(DType::int4, DType::bf16), DType::bf16);
    EXPECT_EQ(wider(DType::bf16, DType::int4), DType::bf16);
    EXPECT_EQ(wider(DType::fp8, DType::bf16), DType::bf16);
    EXPECT_EQ(wider(DType::fp4, DType::fp8), DType::fp8);
    EXPECT_EQ(wider(DType::fp8, DType::fp8), DType::fp8);
    EXPECT_EQ(wider(DType::fp32, DType::bf16), DType::fp32);
}

TEST(Wider, IsNeverNarrowerThanEither) {
    for (const DType a : all_dtypes) {
        for (const DType b : all_dtypes) {
            EXPECT_GE(bits(wider(a, b)), bits(a));
            EXPECT_GE(bits(wider(a, b)), bits(b));
            EXPECT_TRUE(wider(a, b) == a || wider(a, b) == b);
        }
    }
}

}  // namespace
}  // namespace roofline
