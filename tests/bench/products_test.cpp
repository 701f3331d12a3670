// Products by every instruction set that this processor has, at toy size, against fp64.
#include "roofline/bench/kernels/products.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "bench/tasks.hpp"
#include "bench/team.hpp"
#include "roofline/bench/backend.hpp"
#include "roofline/bench/kernels/fp8.hpp"
#include "roofline/bench/kernels/rowwise.hpp"
#include "roofline/bench/kernels/side_by_side.hpp"

namespace roofline::bench {
namespace {

using testing::product;
using testing::team;

std::vector<const ProductKernels*> all_products() {
    std::vector<const ProductKernels*> kernels = {&portable_products()};
    for (const ProductKernels* more : {neon_products(), neon_dot_products(), avx2_products(), avx512_products(),
                                       avx512_vnni_products(), amx_products()}) {
        if (more != nullptr) kernels.push_back(more);
    }
#if defined(__x86_64__)
    // What is taken beside AVX-512 without arithmetic of 16 bits.
    if (avx512_products() != nullptr) {
        static const ProductKernels without_halves = [] {
            ProductKernels some = *avx512_products();
            some.name = "AVX-512 without FP16";
            some.fp8 = avx512_fp8;
            return some;
        }();
        kernels.push_back(&without_halves);
    }
#endif
    return kernels;
}

TEST(Products, EveryInstructionSetAgreesWithFp64InEveryTypeAndSize) {
    const auto threads = team();
    for (const ProductKernels* kernels : all_products()) {
        for (const WeightFormat type :
             {WeightFormat::fp32, WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4, WeightFormat::mxfp4,
              WeightFormat::nvfp4, WeightFormat::fp8, WeightFormat::fp8_block, WeightFormat::q4_0, WeightFormat::q8_0,
              WeightFormat::q4_k, WeightFormat::q5_k, WeightFormat::q6_k}) {
            // One row, a pair, a part of a panel, whole panels and a rest; rows of W that fill no tile (a few, not a
            // lone one: an output may be near zero by itself, and errors are told in parts of the typical one); a
            // depth beyond what is worked on at once; int4 in whole eights of groups, in eights and a rest, and in an
            // odd number, so that rows begin in the middle of a byte of zero points; blocks of 256 one, two, three,
            // five and eight to a row; stretches and a rest of rows, several tiles of int4 after each other with an
            // even and an odd number of groups; rows that end in the middle of a line; rows of W beyond what is packed,
            // or passed over, at once.
            for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{1, 13, 256},
                                                                                  {2, 8, 128},
                                                                                  {3, 21, 384},
                                                                                  {8, 64, 256},
                                                                                  {17, 43, 1408},
                                                                                  {1, 3, 128},
                                                                                  {1, 40, 2048},
                                                                                  {1, 9, 1152},
                                                                                  {1, 71, 1280},
                                                                                  {1, 214, 512},
                                                                                  {1, 90, 640},
                                                                                  {1, 11, 80},
                                                                                  {3, 9, 48},
                                                                                  {6, 27, 272},
                                                                                  {20, 150, 256},
                                                                                  {37, 101, 320},
                                                                                  {4, 4200, 256},
                                                                                  {5, 23, 768}}) {
                if (k % grain_of(type) != 0) continue;
                auto operands = make_operands(product(m, n, k, type), 0, *threads);
                ASSERT_TRUE(operands);
                Activations activations;
                if (kernels->in_tiles(type)) {
                    auto tiles = operands->weights[0].in_tiles(kernels->tiles, *threads);
                    ASSERT_TRUE(tiles);
                    operands->weights[0] = std::move(*tiles);
                }
                ProductCall call{
                    .m = m, .n = n, .k = k, .weights = operands->weights[0].view(), .y = operands->y.data()};
                activations.prepare(operands->x.data(), call, *kernels, *threads);
                multiply(call, *kernels, *threads);
                const double error = largest_error(reference(*operands), operands->y);
                EXPECT_LE(error, tolerance(operands->task))
                    << kernels->name << " " << name(type) << " " << m << " x " << n << " x " << k;
            }
        }
    }
}

TEST(Products, EveryNumberOfE4m3IsWhatItsBitsSay) {
    // s eeee mmm: 2^(e - 7) (1 + m / 8), and below 2^-6 m / 8 of that.
    const std::vector<std::pair<std::uint8_t, float>> known = {
        {0x00, 0.0F},   {0x01, 0x1p-9F},  {0x07, 7 * 0x1p-9F},   {0x08, 0x1p-6F},  {0x0F, 15 * 0x1p-9F},
        {0x30, 0.5F},   {0x38, 1.0F},     {0x3D, 1.625F},        {0x47, 3.75F},    {0x78, 256.0F},
        {0x7E, 448.0F}, {0x81, -0x1p-9F}, {0x87, -0.013671875F}, {0x88, -0x1p-6F}, {0xB8, -1.0F},
        {0xC7, -3.75F}, {0xFE, -448.0F}};
    constexpr std::int64_t k = 256;
    const auto n = static_cast<std::int64_t>(known.size());
    // One at a place of its own in each row, scales that differ by blocks of columns, x that is its column's power.
    std::vector<std::uint8_t> w(static_cast<std::size_t>(n * k));
    for (std::int64_t row = 0; row < n; ++row)
        w[static_cast<std::size_t>(row * k + 15 * row)] = known[static_cast<std::size_t>(row)].first;
    std::vector<float> x(k, 2.0F);
    std::vector<float> scales = {1.0F, 4.0F};
    std::vector<float> y(static_cast<std::size_t>(n));
    for (const ProductKernels* kernels : all_products()) {
        ProductCall call{.m = 1, .n = n, .k = k, .weights = {}, .x = x.data(), .y = y.data()};
        call.weights.type = WeightFormat::fp8_block;
        call.weights.values = w.data();
        call.weights.block_scales = scales.data();
        kernels->fp8(call, 0, n);
        for (std::int64_t row = 0; row < n; ++row) {
            const auto& [bits, value] = known[static_cast<std::size_t>(row)];
            EXPECT_EQ(y[static_cast<std::size_t>(row)], value * 2.0F * (15 * row < 128 ? 1.0F : 4.0F))
                << kernels->name << " " << static_cast<int>(bits);
        }
    }
}

// Numbers of 16 bits end at 65504 and near 2^-24: kernels that meet weights with such have to keep x and sums within.
TEST(Products, WeightsInFp8MeetLargeAndSmallNumbers) {
    constexpr std::int64_t k = 400;
    const std::vector<std::uint8_t> w(k, 0x7E);  // 448, the largest
    const float scale = 0.5F;
    float y = 0.0F;
    for (const ProductKernels* kernels : all_products()) {
        for (const float size : {3.9F, 1e30F, 1e-30F, 0.0F}) {
            // All alike: sums that are as large as they can be. Then one beside others a thousandth of it.
            for (const float others : {1.0F, 0.001F}) {
                std::vector<float> x(k, others * size);
                x[77] = size;
                ProductCall call{.m = 1, .n = 1, .k = k, .weights = {}, .x = x.data(), .y = &y};
                call.weights.type = WeightFormat::fp8;
                call.weights.values = w.data();
                call.weights.row_scales = &scale;
                kernels->fp8(call, 0, 1);
                const double expected = 224.0 * size * (1.0 + 399.0 * others);
                EXPECT_NEAR(y, expected, 1e-3 * expected) << kernels->name << " " << size << " " << others;
            }
        }
    }
}

// Products of bytes are added up in 16 bits by some: where all are as large as they can be, of one sign, none may be
// lost.
TEST(Products, TheLargestWeightsMeetTheLargestNumbers) {
    const auto threads = team(1);
    constexpr std::int64_t k = 256;
    constexpr std::int64_t n = 9;
    const std::vector<float> x(5 * k, 1.0F);
    const std::vector<float> ones(n, 1.0F);
    const std::vector<Bf16> group_scales(n * k / int4_group, to_bf16(1.0F));
    const std::vector<std::uint8_t> powers(n * k / small_group, 127);
    const std::vector<std::uint8_t> small_scales(n * k / nvfp4_group, 0x38);
    const std::vector<std::uint16_t> halves(n * k / small_group, 0x3C00);  // 1 in fp16
    // d = 1 and e = 2, all scales and what is taken off 63; d = 1 and all scales -128.
    std::vector<std::uint8_t> q4_k_headers;
    std::vector<std::uint8_t> q6_k_headers;
    for (std::int64_t block = 0; block < n * k / k_block; ++block) {
        for (const int byte : {0x00, 0x3C, 0x00, 0x40}) q4_k_headers.push_back(static_cast<std::uint8_t>(byte));
        q4_k_headers.insert(q4_k_headers.end(), 12, 0xFF);
        for (const int byte : {0x00, 0x3C}) q6_k_headers.push_back(static_cast<std::uint8_t>(byte));
        q6_k_headers.insert(q6_k_headers.end(), 16, 0x80);
    }
    std::vector<float> y(5 * n);
    Activations activations;
    // Bytes of weights, zero points of int4, and what a weight is.
    for (const auto& [type, byte, zeros, weight] : {std::tuple{WeightFormat::int8, 127, 0, 127.0},
                                                    {WeightFormat::int8, -127, 0, -127.0},
                                                    {WeightFormat::int4, 0xFF, 0x00, 15.0},
                                                    {WeightFormat::int4, 0x00, 0xFF, -15.0},
                                                    {WeightFormat::mxfp4, 0x77, 0, 6.0},
                                                    {WeightFormat::mxfp4, 0xFF, 0, -6.0},
                                                    {WeightFormat::nvfp4, 0x77, 0, 6.0},
                                                    {WeightFormat::nvfp4, 0xFF, 0, -6.0},
                                                    {WeightFormat::q4_0, 0xFF, 0, 7.0},
                                                    {WeightFormat::q4_0, 0x00, 0, -8.0},
                                                    {WeightFormat::q8_0, 127, 0, 127.0},
                                                    {WeightFormat::q8_0, -127, 0, -127.0},
                                                    {WeightFormat::q4_k, 0xFF, 0, 15.0 * 63.0 - 2.0 * 63.0},
                                                    {WeightFormat::q4_k, 0x00, 0, -2.0 * 63.0},
                                                    {WeightFormat::q5_k, 0xFF, 0, 31.0 * 63.0 - 2.0 * 63.0},
                                                    {WeightFormat::q5_k, 0x00, 0, -2.0 * 63.0},
                                                    {WeightFormat::q6_k, 0xFF, 0, -31.0 * 128.0},
                                                    {WeightFormat::q6_k, 0x00, 0, 32.0 * 128.0}}) {
        const std::vector<std::uint8_t> values(n * k, static_cast<std::uint8_t>(byte));
        const std::vector<std::uint8_t> group_zeros(n * k / int4_group, static_cast<std::uint8_t>(zeros));
        Weights weights;
        weights.type = type;
        weights.values = values.data();
        weights.row_scales = ones.data();
        weights.group_scales = group_scales.data();
        weights.group_zeros = group_zeros.data();
        weights.group_powers = type == WeightFormat::mxfp4 ? powers.data() : nullptr;
        weights.small_scales = type == WeightFormat::nvfp4 ? small_scales.data() : nullptr;
        weights.half_scales = halves.data();
        weights.headers = type == WeightFormat::q6_k ? q6_k_headers.data() : q4_k_headers.data();
        for (const ProductKernels* kernels : all_products()) {
            if (kernels->in_tiles(type)) continue;
            for (const std::int64_t m : {1, 5}) {
                ProductCall call{.m = m, .n = n, .k = k, .weights = weights, .y = y.data()};
                activations.prepare(x.data(), call, *kernels, *threads);
                multiply(call, *kernels, *threads);
                for (std::int64_t i = 0; i < m * n; ++i)
                    ASSERT_NEAR(y[static_cast<std::size_t>(i)], weight * k, 1e-4 * std::fabs(weight) * k)
                        << kernels->name << " " << name(type) << " " << byte << " " << i;
            }
        }
    }
}

// What takes turns from layer to layer, or is several matrices in one, has its last rows in another format.
TEST(Products, AMatrixOfTwoFormatsIsOne) {
    const auto threads = team(2);
    for (const std::int64_t m : {1, 6}) {
        Task task = product(m, 45, 512, WeightFormat::q4_k);
        task.others = {WeightFormat::q6_k, 14};
        EXPECT_EQ(describe(task), m == 1 ? "1 x 45 x 512 q4_k + q6_k" : "6 x 45 x 512 q4_k + q6_k");
        auto operands = make_operands(task, 0, *threads);
        ASSERT_TRUE(operands);
        // 512 are two blocks of 144 bytes, or of 210.
        EXPECT_EQ(WeightMatrix::bytes(45, 512, StoredAs{task.weights, task.others}),
                  31 * 2 * 144 + 14 * 2 * 210 + (64 - 31 * 2 * 16 % 64) % 64 + (64 - 14 * 2 * 18 % 64) % 64);
        const auto expected = reference(*operands);
        for (const ProductKernels* kernels : all_products()) {
            operands->poison();
            Activations activations;
            ProductCall call{
                .m = m, .n = 45, .k = 512, .weights = operands->weights[0].view(), .y = operands->y.data()};
            activations.prepare(operands->x.data(), call, *kernels, *threads);
            multiply(call, *kernels, *threads);
            EXPECT_LE(largest_error(expected, operands->y), tolerance(task)) << kernels->name << " " << m;
        }
    }
}

// By hand, of each format of GGUF a few weights whose bits are spread over its bytes.
TEST(Products, WeightsOfGgufAreWhatTheirBitsSay) {
    const auto threads = team(1);
    constexpr std::int64_t k = 256;
    std::vector<std::uint8_t> values(k, 0);
    std::vector<std::uint8_t> header(18, 0);
    std::vector<std::uint16_t> halves(8, 0);
    Weights weights;
    weights.values = values.data();
    weights.headers = header.data();
    weights.half_scales = halves.data();
    // The weights one by one: x is one at a place of its own.
    Activations activations;
    const auto weight_at = [&](const ProductKernels& kernels, std::int64_t column) {
        std::vector<float> x(k, 0.0F);
        x[static_cast<std::size_t>(column)] = 1.0F;
        float y = 0.0F;
        ProductCall call{.m = 1, .n = 1, .k = k, .weights = weights, .y = &y};
        activations.prepare(x.data(), call, kernels, *threads);
        multiply(call, kernels, *threads);
        return y;
    };
    const auto expect = [&](std::int64_t column, float weight) {
        for (const ProductKernels* kernels : all_products())
            EXPECT_NEAR(weight_at(*kernels, column), weight, 1e-5F * std::fabs(weight))
                << kernels->name << " " << name(weights.type) << " " << column;
    };
    // q4_0: byte 3 of group 2 (16 bytes each) is 0xB5; its low half is weight 2 x 32 + 3, 5 - 8 = -3, its high half
    // weight 2 x 32 + 19, 11 - 8 = 3; the scale 0x4500 is 5.
    weights.type = WeightFormat::q4_0;
    values[2 * 16 + 3] = 0xB5;
    halves[2] = 0x4500;
    expect(67, -15.0F);
    expect(83, 15.0F);
    expect(68, -40.0F);  // 0 - 8
    expect(99, 0.0F);    // no scale
    // q8_0: weight 67 is byte 67.
    weights.type = WeightFormat::q8_0;
    values[67] = 0x9C;  // -100
    expect(67, -500.0F);
    // q4_k: group 2 has s = 0b10'0110 = 38 and o = 0b01'1001 = 25: the byte 0x96, and 0b0110 at bits 8 to 11 of the
    // last four bytes; group 5 has s = 3 x 16 = 48: 0b0011 at bits 20 to 23. d = 0.5, e = 2.
    weights.type = WeightFormat::q4_k;
    const std::vector<std::uint8_t> q4_k = {0x00, 0x38, 0x00, 0x40, 0, 0, 0x96, 0, 0, 0, 0, 0, 0x00, 0x06, 0x30, 0x00};
    std::copy(q4_k.begin(), q4_k.end(), header.begin());
    values[5 * 16 + 15] = 0x72;
    expect(67, 5.0F * 38 * 0.5F - 25 * 2.0F);
    expect(68, -50.0F);
    expect(5 * 32 + 15, 2.0F * 48 * 0.5F);
    expect(5 * 32 + 31, 7.0F * 48 * 0.5F);
    // q5_k: of byte 35 (2 x 16 + 3) the fifth bit of the low half is bit 35, of the high half bit 64 + 35; of byte 95
    // (5 x 16 + 15), 31 in the second 64, they are bits 128 + 31 and 192 + 31. Set are 35 and 223: byte 4, bit 3, and
    // byte 27, bit 7.
    weights.type = WeightFormat::q5_k;
    values[128 + 4] = 0x08;
    values[128 + 27] = 0x80;
    expect(67, 21.0F * 38 * 0.5F - 25 * 2.0F);
    expect(83, 11.0F * 38 * 0.5F - 25 * 2.0F);
    expect(5 * 32 + 15, 2.0F * 48 * 0.5F);
    expect(5 * 32 + 31, 23.0F * 48 * 0.5F);
    // q6_k: byte 2 x 16 + 3 = 35 (weights 67 and 83) has its upper bits in byte 128 + 35: 0b01 for its low half, 0b10
    // for its high half; byte 99 (6 x 16 + 3, weights 195 and 211) 0b11 and 0b00. Together 0b00'11'10'01.
    weights.type = WeightFormat::q6_k;
    std::fill(values.begin(), values.end(), 0);
    values[35] = 0xB5;
    values[99] = 0x4E;
    values[128 + 35] = 0x39;
    std::fill(header.begin(), header.end(), 0);
    header[1] = 0x3C;          // 1
    header[2 + 2] = 0xFD;      // the first half of group 2: -3
    header[2 + 8 + 2] = 2;     // its second
    header[2 + 6] = 4;         // of group 6
    header[2 + 8 + 6] = 0x80;  // -128
    expect(67, (16 + 5 - 32) * -3.0F);
    expect(83, (32 + 11 - 32) * 2.0F);
    expect(195, (48 + 14 - 32) * 4.0F);
    expect(211, (4 - 32) * -128.0F);
    expect(66, -32 * -3.0F);
}

TEST(Products, NumbersForWholeBytesAreWithinHalfAUnit) {
    const auto threads = team(1);
    std::vector<float> x(256);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = random_value(i);
    x[3] = 2.0F;  // the largest of the first group, beside a neighbour that takes a sixteenth off or adds it
    x[19] = -2.0F;
    std::vector<std::int8_t> y(x.size());
    std::array<float, 2> scales = {};
    std::array<float, 2> sums = {};
    narrow_for_whole_bytes(x.data(), y.data(), scales.data(), sums.data(), 256, 0, *threads);
    // A byte l + 16 h meets L and H as (16 l) L + (l + 16 h) H: l is multiplied by 16 L + H and h by 16 H.
    std::array<double, 2> all = {};
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t group = i / 128;
        const double sixteenths = i % 32 < 16 ? 16.0 * y[i] + y[i + 16] : 16.0 * y[i];
        EXPECT_LE(std::fabs(sixteenths * scales[group] - x[i]), 8.01 * scales[group]) << i;
        all[group] += sixteenths;
    }
    EXPECT_EQ(all[0], sums[0]);
    EXPECT_EQ(all[1], sums[1]);
    // The same as bytes that begin at zero.
    std::vector<std::int8_t> larger(x.size());
    std::array<float, 2> same = {};
    narrow_for_whole_bytes(x.data(), larger.data(), scales.data(), same.data(), 256, 128, *threads);
    EXPECT_EQ(same, sums);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(static_cast<std::uint8_t>(larger[i]), y[i] + 128) << i;
    EXPECT_FLOAT_EQ(scales[0], 2.0F / 119.0F / 16.0F);
}

TEST(Products, PlacesThatReadSideBySideDoNotCrowdInOnePartOfACache) {
    // Rows of 2 KiB in ways of 16: 256 rows on, places would fall on the same lines; 255 on, 2 KiB from each other.
    EXPECT_EQ(spread_stretch(256, 2048, 16384), 255);
    EXPECT_EQ(spread_stretch(255, 2048, 16384), 255);
    // Rows of 8 KiB and a line: 127 of them are 64 ways less a line, 126 are 63.5 ways less two.
    EXPECT_EQ(spread_stretch(128, 8256, 16384), 126);
    EXPECT_EQ(spread_stretch(64, 8256, 16384), 63);
    EXPECT_EQ(spread_stretch(1, 2048, 16384), 1);
    EXPECT_EQ(spread_stretch(0, 2048, 16384), 0);
    for (const std::int64_t last : {1, 7, 8, 40, 41, 64}) {
        std::vector<int> times(static_cast<std::size_t>(last), 0);
        side_by_side<8>(0, last, spread_stretch(last / 8, 64, 16384), [&](const std::int64_t(&rows)[8]) {
            for (const std::int64_t row : rows) ++times[static_cast<std::size_t>(row)];
        });
        for (const int count : times) EXPECT_GE(count, 1) << last;
    }
}

TEST(Products, TilesHoldTheSameWeights) {
    const auto threads = team(2);
    // A tile that is not full; an even and an odd number of groups; every type.
    for (const auto& [tiling, k, type] : {std::tuple{Tiles::eights, 256, WeightFormat::int4},
                                          {Tiles::fours, 384, WeightFormat::int4},
                                          {Tiles::eights, 48, WeightFormat::bf16},
                                          {Tiles::eights, 48, WeightFormat::int8},
                                          {Tiles::fours, 48, WeightFormat::fp32},
                                          {Tiles::fours, 48, WeightFormat::bf16},
                                          {Tiles::fours, 48, WeightFormat::int8}}) {
        const auto rows = WeightMatrix::random(7, k, type, 3, *threads);
        ASSERT_TRUE(rows);
        const auto tiles = rows->in_tiles(tiling, *threads);
        ASSERT_TRUE(tiles);
        for (std::int64_t row = 0; row < 7; ++row) {
            for (std::int64_t column = 0; column < k; ++column)
                EXPECT_EQ(tiles->at(row, column), rows->at(row, column)) << row << " " << column;
        }
    }
    // Byte 21 of row 6 in rows of 48: of the second tile (192 on) the second 16 bytes' third pair (6 and 7, the second
    // pair: 32), the first eight (0), row 6 of 6 and 7 (0), byte 5; by fours line 5 of 16 bytes, the third row, byte 1.
    EXPECT_EQ(tile_place(Tiles::eights, 6, 21, 48), 192 + 64 + 32 + 0 + 0 + 5);
    EXPECT_EQ(tile_place(Tiles::fours, 6, 21, 48), 192 + 5 * 16 + 2 * 4 + 1);
    // Row 6 is the third of the second tile; column 70 lies in run 2, the second four of its sixteen; a tile has 4 x
    // 384 / 2 bytes and a line, 4 x 3 scales and, three groups being two pairs, 4 x 2 bytes of zero points.
    const Int4Tiles lie(384);
    EXPECT_EQ(lie.value_place(6, 70), 768 + 64 + 2 * 64 + 16 + 2 * 4 + 2);
    EXPECT_EQ(lie.scale_place(6, 2), 12 + 2 * 4 + 2);
    EXPECT_EQ(lie.zero_place(6, 2), 8 + 4 + 2);
}

TEST(Products, Int4ByFoursKnowsWhatUnsignedActivationsAreOffBy) {
    const auto threads = team(1);
    const auto rows = WeightMatrix::random(6, 256, WeightFormat::int4, 5, *threads);
    ASSERT_TRUE(rows);
    const auto tiles = rows->in_tiles(Tiles::fours, *threads);
    ASSERT_TRUE(tiles);
    // A byte l + 16 h meets two numbers that are larger by 128 as (16 l) L + (l + 16 h) H: 128 x (17 l + 16 h) too
    // much.
    const auto* bytes = static_cast<const std::uint8_t*>(rows->view().values);
    for (std::int64_t row = 0; row < 6; ++row) {
        for (std::int64_t group = 0; group < 2; ++group) {
            int sum = 0;
            for (std::int64_t i = 0; i < 64; ++i) {
                const int byte = bytes[row * 128 + group * 64 + i];
                sum += 17 * (byte % 16) + 16 * (byte / 16);
            }
            EXPECT_EQ(tiles->view().group_sums[Int4Tiles(256).scale_place(row, group)], -sum) << row << " " << group;
        }
    }
}

TEST(Products, ARowThatWasNeverWrittenIsFound) {
    const auto threads = team(1);
    auto operands = make_operands(product(1, 16, 128, WeightFormat::fp32), 0, *threads);
    ASSERT_TRUE(operands);
    EXPECT_EQ(largest_error(reference(*operands), operands->y), std::numeric_limits<double>::infinity());
}

TEST(Products, Int4WeightsAreTheirHalfByteLessTheZeroPointTimesTheScale) {
    const auto threads = team(1);
    const auto matrix = WeightMatrix::random(2, 128, WeightFormat::int4, 1, *threads);
    ASSERT_TRUE(matrix);
    const Weights view = matrix->view();
    const auto* bytes = static_cast<const std::uint8_t*>(view.values);
    // Row 1, column 20: run 0 of the row (bytes 64 ...), place 20 - 16 = 4 of the high halves; group 1 of all.
    const double expected = (static_cast<double>(bytes[64 + 4] >> 4) - view.group_zero(1)) * view.group_scale(1);
    EXPECT_DOUBLE_EQ(matrix->at(1, 20), expected);
    // 128 half bytes, a 16-bit scale and a 4-bit zero point: 66.5 bytes a group, as predict counts an int4 group.
    EXPECT_NEAR(matrix_bytes(*find_format("int4"), 128.0, 2.0).value, 2.0 * 66.5, 1e-9);
}

}  // namespace
}  // namespace roofline::bench
