// Every kernel of every instruction set that this processor has, at toy size, against fp64.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "bench/team.hpp"
#include "roofline/bench/backend.hpp"
#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/rowwise.hpp"
#include "roofline/bench/kernels/side_by_side.hpp"

namespace roofline::bench {
namespace {

using testing::team;

std::vector<const ProductKernels*> all_products() {
    std::vector<const ProductKernels*> kernels = {&portable_products()};
    for (const ProductKernels* more :
         {neon_products(), neon_dot_products(), avx2_products(), avx512_products(), amx_products()}) {
        if (more != nullptr) kernels.push_back(more);
    }
    return kernels;
}

Task product(std::int64_t m, std::int64_t n, std::int64_t k, DType type) {
    Task task;
    task.name = "product";
    task.kind = TaskKind::product;
    task.m = m;
    task.n = n;
    task.k = k;
    task.weights = type;
    return task;
}

TEST(Products, EveryInstructionSetAgreesWithFp64InEveryTypeAndSize) {
    const auto threads = team();
    for (const ProductKernels* kernels : all_products()) {
        for (const DType type : {DType::fp32, DType::bf16, DType::int8, DType::int4}) {
            // One row, a pair, a part of a panel, whole panels and a rest; rows of W that fill no tile (a few, not a
            // lone one: an output may be near zero by itself, and errors are told in parts of the typical one); a
            // depth beyond what is worked on at once; int4 in whole eights of groups, in eights and a rest, and in an
            // odd number, so that rows begin in the middle of a byte of zero points; stretches and a rest of rows,
            // several tiles of int4 after each other with an even and an odd number of groups; rows that end in the
            // middle of a line; rows of W beyond what is packed, or passed over, at once.
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
                                                                                  {4, 4200, 256}}) {
                if (type == DType::int4 && k % int4_group != 0) continue;
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
    for (const auto& [tiling, k, type] : {std::tuple{Tiles::eights, 256, DType::int4},
                                          {Tiles::fours, 384, DType::int4},
                                          {Tiles::eights, 48, DType::bf16},
                                          {Tiles::eights, 48, DType::int8},
                                          {Tiles::fours, 48, DType::fp32},
                                          {Tiles::fours, 48, DType::bf16},
                                          {Tiles::fours, 48, DType::int8}}) {
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
    const auto rows = WeightMatrix::random(6, 256, DType::int4, 5, *threads);
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
    auto operands = make_operands(product(1, 16, 128, DType::fp32), 0, *threads);
    ASSERT_TRUE(operands);
    EXPECT_EQ(largest_error(reference(*operands), operands->y), std::numeric_limits<double>::infinity());
}

TEST(Products, Int4WeightsAreTheirHalfByteLessTheZeroPointTimesTheScale) {
    const auto threads = team(1);
    const auto matrix = WeightMatrix::random(2, 128, DType::int4, 1, *threads);
    ASSERT_TRUE(matrix);
    const Weights view = matrix->view();
    const auto* bytes = static_cast<const std::uint8_t*>(view.values);
    // Row 1, column 20: run 0 of the row (bytes 64 ...), place 20 - 16 = 4 of the high halves; group 1 of all.
    const double expected = (static_cast<double>(bytes[64 + 4] >> 4) - view.group_zero(1)) * view.group_scale(1);
    EXPECT_DOUBLE_EQ(matrix->at(1, 20), expected);
    // 128 half bytes, a 16-bit scale and a 4-bit zero point: 66.5 bytes a group, as predict counts an int4 group.
    EXPECT_NEAR(matrix_bytes(*find_format("int4"), 128.0, 2.0).value, 2.0 * 66.5, 1e-9);
}

Task attention(std::int64_t batch, std::int64_t tokens, std::int64_t context, DType kv) {
    Task task;
    task.name = "core";
    task.kind = TaskKind::attention;
    task.prefill = tokens > 1;
    task.batch = batch;
    task.tokens = tokens;
    task.context = context;
    task.query_heads = 6;
    task.kv_heads = 2;
    task.head_dim = 64;
    task.kv = kv;
    return task;
}

std::vector<const AttentionKernels*> all_attention() {
    std::vector<const AttentionKernels*> all = {&portable_attention()};
    for (const AttentionKernels* more :
         {neon_attention(), neon_pairs_attention(), avx2_attention(), avx512_attention(), amx_attention()}) {
        if (more != nullptr) all.push_back(more);
    }
    return all;
}

/// Over a cache that lies as the kernels want it.
void attend(Operands& operands, const AttentionKernels& kernels, Threads& threads) {
    const Task& task = operands.task;
    const HeadWidths widths = head_widths(task);
    const KvLayout layout = kernels.layout(task.kv, widths);
    const std::int64_t room = kv_room(layout, task.context);
    const std::int64_t heads = task.batch * task.kv_heads;
    std::vector<Bf16> keys(static_cast<std::size_t>(heads * room * task.head_dim));
    std::vector<Bf16> values(keys.size());
    const bool laid = layout != KvLayout::rows;
    if (laid) {
        lay_keys(operands.keys[0].as<Bf16>(), keys.data(), layout, heads, task.context, task.head_dim, threads);
        lay_values(operands.values[0].as<Bf16>(), values.data(), layout, heads, task.context, task.head_dim, threads);
    }
    AttentionScratch scratch;
    attend({.batch = task.batch,
            .tokens = task.tokens,
            .query_heads = task.query_heads,
            .kv_heads = task.kv_heads,
            .widths = widths,
            .context = task.context,
            .capacity = room,
            .window = task.window,
            .kv = task.kv,
            .q = operands.x.data(),
            .keys = laid ? static_cast<const void*>(keys.data()) : operands.keys[0].data(),
            .values = laid          ? static_cast<const void*>(values.data())
                      : task.latent ? operands.keys[0].data()
                                    : operands.values[0].data(),
            .sinks = task.sinks ? operands.gain.data() : nullptr,
            .out = operands.y.data()},
           kernels, threads, scratch);
}

TEST(Attention, EveryInstructionSetAgreesWithFp64SplitOrWhole) {
    const auto threads = team();
    for (const AttentionKernels* kernels : all_attention()) {
        for (const DType kv : {DType::bf16, DType::fp32}) {
            // A single entry, a block and a rest, enough for several pieces; prompts of a part of a block and of
            // several; from one query to a KV head to more than are worked on at once; heads whose tiles differ.
            for (const auto& [batch, tokens, context, group, head_dim] :
                 std::vector<std::array<std::int64_t, 5>>{{1, 1, 1, 3, 64},
                                                          {2, 1, 45, 4, 64},
                                                          {1, 1, 700, 8, 64},
                                                          {1, 1, 130, 7, 128},
                                                          {2, 1, 45, 1, 96},
                                                          {1, 1, 1, 2, 128},
                                                          {1, 1, 300, 2, 32},
                                                          {1, 1, 6, 1, 64},
                                                          {1, 1, 150, 4, 256},
                                                          {1, 70, 150, 2, 64},
                                                          {1, 90, 333, 4, 128},
                                                          {1, 5, 5, 1, 128},
                                                          {2, 37, 37, 3, 64},
                                                          {1, 70, 150, 5, 256}}) {
                Task asked = attention(batch, tokens, context, kv);
                asked.query_heads = group * asked.kv_heads;
                asked.head_dim = head_dim;
                auto operands = make_operands(asked, 0, *threads);
                ASSERT_TRUE(operands);
                attend(*operands, *kernels, *threads);
                EXPECT_LE(largest_error(reference(*operands), operands->y), tolerance(operands->task))
                    << kernels->name << " " << name(kv) << " " << batch << " x " << tokens << " of " << context << ", "
                    << group << " queries to a KV head of " << head_dim;
            }
        }
    }
}

TEST(Attention, ATokenOfAPromptSeesNoMoreThanItsWindow) {
    const auto threads = team();
    for (const AttentionKernels* kernels : all_attention()) {
        for (const DType kv : {DType::bf16, DType::fp32}) {
            // Windows of one token, shorter than a block of tokens, of a tile and a rest, of all but the first; what
            // is before a prompt counts too.
            for (const auto& [tokens, context, window, group] :
                 std::vector<std::array<std::int64_t, 4>>{{40, 40, 1, 3},
                                                          {40, 40, 5, 3},
                                                          {150, 150, 64, 2},
                                                          {200, 200, 100, 4},
                                                          {90, 333, 130, 1},
                                                          {70, 70, 69, 8},
                                                          {33, 33, 33, 2}}) {
                Task asked = attention(2, tokens, context, kv);
                asked.window = window;
                asked.query_heads = group * asked.kv_heads;
                auto operands = make_operands(asked, 0, *threads);
                ASSERT_TRUE(operands);
                attend(*operands, *kernels, *threads);
                EXPECT_LE(largest_error(reference(*operands), operands->y), tolerance(operands->task))
                    << kernels->name << " " << name(kv) << " " << describe(asked);
            }
        }
    }
}

TEST(Attention, ASinkTakesItsShareOfTheWeights) {
    const auto threads = team();
    for (const AttentionKernels* kernels : all_attention()) {
        for (const auto& [tokens, context] : {std::pair{1, 1}, {1, 700}, {37, 37}}) {
            Task asked = attention(2, tokens, context, DType::fp32);
            asked.sinks = true;
            auto operands = make_operands(asked, 0, *threads);
            ASSERT_TRUE(operands);
            attend(*operands, *kernels, *threads);
            EXPECT_LE(largest_error(reference(*operands), operands->y), tolerance(asked)) << kernels->name;
            // Above all scores there are: next to nothing is left for values.
            std::fill(operands->gain.begin(), operands->gain.end(), 60.0F);
            attend(*operands, *kernels, *threads);
            for (const float value : operands->y) EXPECT_LT(std::fabs(value), 1e-12F);
        }
    }
}

TEST(Attention, ValuesMayBeNarrowerThanKeysOrTheBeginningOfThem) {
    const auto threads = team();
    for (const AttentionKernels* kernels : all_attention()) {
        for (const DType kv : {DType::bf16, DType::fp32}) {
            for (const bool latent : {false, true}) {
                // Heads of DeepSeek's kind, expanded and latent, and narrow ones; one of them, some and more than are
                // worked on at once; a part of a block, several, enough for several pieces; prompts.
                for (const auto& [tokens, context, group, key, value] :
                     std::vector<std::array<std::int64_t, 5>>{{1, 1, 16, 576, 512},
                                                              {1, 300, 16, 576, 512},
                                                              {1, 70, 21, 288, 256},
                                                              {1, 700, 1, 96, 64},
                                                              {1, 45, 7, 64, 32},
                                                              {1, 130, 40, 160, 160},
                                                              {37, 37, 1, 192, 128},
                                                              {20, 90, 3, 96, 64}}) {
                    if (!latent && key == value) continue;  // as any other
                    Task asked = attention(2, tokens, context, kv);
                    asked.kv_heads = latent ? 1 : 2;
                    asked.query_heads = group * asked.kv_heads;
                    asked.head_dim = key;
                    asked.value_dim = value;
                    asked.latent = latent;
                    auto operands = make_operands(asked, 0, *threads);
                    ASSERT_TRUE(operands);
                    EXPECT_EQ(operands->values.empty(), latent);
                    attend(*operands, *kernels, *threads);
                    EXPECT_LE(largest_error(reference(*operands), operands->y), tolerance(operands->task))
                        << kernels->name << " " << name(kv) << " " << describe(asked);
                }
            }
        }
    }
}

TEST(Attention, ScoresMayLieFurtherApartThanWeightsCan) {
    // Three parts of a context, in each of which all scores are the same: those of the part that counts may come first
    // or last and be e^600 times the others. Queries are 1, -1, 1/2 and 0 times one of them. What is left are means of
    // values, which no rounding of a score changes.
    const auto threads = team();
    for (const AttentionKernels* kernels : all_attention()) {
        for (const auto& parts : std::vector<std::array<double, 3>>{{0.0, 600.0, -600.0},
                                                                    {-300.0, 0.0, 300.0},
                                                                    {300.0, 0.0, -300.0},
                                                                    {0.0, 40.0, 80.0},
                                                                    {-80.0, 0.0, -40.0}}) {
            for (const std::int64_t context : {100, 1000}) {
                Task asked = attention(1, 1, context, DType::bf16);
                asked.query_heads = 4 * asked.kv_heads;
                auto operands = make_operands(asked, 0, *threads);
                ASSERT_TRUE(operands);
                const std::int64_t d = asked.head_dim;
                for (std::int64_t head = 0; head < asked.kv_heads; ++head) {
                    float* query = operands->x.data() + head * 4 * d;
                    double square = 0.0;
                    for (std::int64_t i = 0; i < d; ++i) {
                        square += static_cast<double>(query[i]) * query[i];
                        query[d + i] = -query[i];
                        query[2 * d + i] = 0.5F * query[i];
                        query[3 * d + i] = 0.0F;
                    }
                    Bf16* keys = operands->keys[0].as<Bf16>() + head * context * d;
                    for (std::int64_t position = 0; position < context; ++position) {
                        const double score = parts[static_cast<std::size_t>(3 * position / context)];
                        const double length = score * std::sqrt(static_cast<double>(d)) / square;
                        for (std::int64_t i = 0; i < d; ++i)
                            keys[position * d + i] = to_bf16(static_cast<float>(length * query[i]));
                    }
                }
                attend(*operands, *kernels, *threads);
                EXPECT_LE(largest_error(reference(*operands), operands->y), tolerance(operands->task))
                    << kernels->name << ": " << parts[0] << ", " << parts[1] << ", " << parts[2] << " over " << context;
            }
        }
    }
}

TEST(Attention, TilesHoldEveryElementOfWholeTilesOfPositionsOnce) {
    for (const KvLayout layout : {KvLayout::tiles, KvLayout::pairs}) {
        for (const auto place : {key_place, value_place}) {
            std::vector<int> times(128 * 32, 0);
            for (std::int64_t position = 0; position < 128; ++position) {
                for (std::int64_t i = 0; i < 32; ++i) ++times[static_cast<std::size_t>(place(layout, position, i, 32))];
            }
            EXPECT_EQ(times, std::vector<int>(times.size(), 1));
        }
    }
    // Position 75 is the 12th of its 16, the last of its four: 64 x 32 + 13 / 4 x 64 + the third four's second pair (5)
    // x 8 + the second of that pair x 4 + 1.
    EXPECT_EQ(key_place(KvLayout::tiles, 75, 13, 32), 64 * 32 + 3 * 64 + 5 * 8 + 4 + 1);
    // The 12th of its 64: strip 1 of 16 columns begins 16 x 64 on, 11 / 4 = 2 fours of 64, column 4 x 4, position 3.
    EXPECT_EQ(value_place(KvLayout::tiles, 75, 20, 32), 64 * 32 + (16 + 2) * 64 + 4 * 4 + 3);
    // In pairs: line 13 / 2 of its 16, the 12th of them, the odd one; strip 1 of 32 lines, line 11 / 2, column 4, the
    // odd position.
    EXPECT_EQ(key_place(KvLayout::pairs, 75, 13, 32), 64 * 32 + 6 * 32 + 11 * 2 + 1);
    EXPECT_EQ(value_place(KvLayout::pairs, 75, 20, 32), 64 * 32 + (32 + 5) * 32 + 4 * 2 + 1);
    EXPECT_EQ(kv_room(KvLayout::pairs, 65), 128);
    EXPECT_EQ(kv_room(KvLayout::tiles, 65), 128);
    EXPECT_EQ(kv_room(KvLayout::rows, 65), 65);
}

TEST(Rowwise, TheGateIsThatOfFp64OverAllThatAFloatCanBe) {
    const auto threads = team(2);
    std::vector<float> gates;
    for (float gate = 1e-6F; gate < 1e30F; gate *= 1.07F) {
        gates.push_back(gate);
        gates.push_back(-gate);
    }
    gates.push_back(0.0F);
    const auto width = static_cast<std::int64_t>(gates.size());
    std::vector<float> x = gates;
    x.resize(2 * gates.size(), 2.0F);
    std::vector<float> y(gates.size());
    silu_multiply(x.data(), y.data(), 1, width, *threads);
    for (std::size_t i = 0; i < gates.size(); ++i) {
        const double gate = gates[i];
        const double exact = 2.0 * gate / (1.0 + std::exp(-gate));
        // Below -87, where the exact one is smaller than 1e-35, what is left may be larger: gate times e^-87.
        EXPECT_NEAR(y[i], exact, 4e-6 * std::fabs(exact) + 4e-38 * std::fabs(gate)) << gate;
    }
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> none = {nan, 1.0F, 2.0F, 2.0F};
    silu_multiply(none.data(), y.data(), 1, 2, *threads);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_FLOAT_EQ(y[1], 2.0F / (1.0F + std::exp(-1.0F)));
}

TEST(Rowwise, ActivationsWithoutAGateAreThoseOfFp64) {
    std::vector<float> x;
    for (float value = -40.0F; value <= 40.0F; value += 0.0131F) x.push_back(value);
    for (const float large : {0.0F, -0.0F, 1e-30F, -1e-30F, 1e6F, -1e6F, 1e20F}) x.push_back(large);
    std::vector<float> y(x.size());
    gelu(x.data(), y.data(), 1, static_cast<std::int64_t>(x.size()), *team());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double value = x[i];
        const double u = std::sqrt(2.0 / std::numbers::pi) * (value + 0.044715 * value * value * value);
        EXPECT_NEAR(y[i], 0.5 * value * (1.0 + std::tanh(u)), 1e-6 + 1e-5 * std::abs(value)) << value;
    }
}

TEST(Rowwise, TheLargestLogitIsTheFirstOfItsLikeAndWhatIsNoNumberIsPassedOver) {
    const auto threads = team(3);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    const auto held_against = [&](const std::vector<float>& logits, std::int64_t rows) {
        const std::int64_t width = static_cast<std::int64_t>(logits.size()) / rows;
        std::vector<std::int32_t> best(static_cast<std::size_t>(rows), -1);
        argmax(logits.data(), best.data(), rows, width, *threads);
        for (std::int64_t row = 0; row < rows; ++row) {
            const auto first = logits.begin() + row * width;
            EXPECT_EQ(best[static_cast<std::size_t>(row)], std::max_element(first, first + width) - first)
                << row << " of " << rows << " x " << width;
        }
    };
    for (const std::size_t width : {1U, 63U, 64U, 1024U, 1025U, 10'007U}) {
        std::vector<float> logits(3 * width);
        for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = random_value(i);
        held_against(logits, 3);
        for (const std::size_t place : {width / 3, width / 2, width - 1}) logits[width + place] = 7.0F;  // ties
        held_against(logits, 3);
        logits[width / 2] = nan;  // the first and last are passed over, a row that begins with it ends there
        logits[width] = nan;
        logits[3 * width - 1] = nan;
        held_against(logits, 3);
        held_against(std::vector<float>(width, -infinity), 1);
        held_against(std::vector<float>(width, nan), 1);
        std::vector<float> zeros(width, -0.0F);
        zeros[width / 2] = 0.0F;  // no larger than the first
        held_against(zeros, 1);
    }
}

TEST(Backends, EveryOneThatIsHereIsRightInAllItSaysItCanDo) {
    const auto threads = team(2);
    std::vector<Task> tasks;
    for (const DType type : {DType::fp32, DType::bf16, DType::int8, DType::int4}) {
        tasks.push_back(product(1, 40, 256, type));
        tasks.push_back(product(9, 40, 256, type));
        tasks.push_back(product(7, 40, 256, type));
        tasks.back().experts = 3;  // with two rows, two and three
        tasks.push_back(product(40, 24, 256, type));
        tasks.back().experts = 4;  // with whole panels and a rest
        Task absorption = attention(1, 1, 1, DType::bf16);
        absorption.kind = TaskKind::absorption;
        absorption.name = "absorption";
        absorption.weights = type;
        absorption.rows = 5;
        absorption.query_heads = 3;
        absorption.head_dim = 128;
        absorption.value_dim = 96;
        absorption.k = 256;
        tasks.push_back(absorption);
    }
    tasks.push_back(attention(2, 1, 100, DType::bf16));
    tasks.push_back(attention(1, 20, 20, DType::bf16));
    for (const TaskKind kind : {TaskKind::norm, TaskKind::layer_norm, TaskKind::add, TaskKind::add_two,
                                TaskKind::activation, TaskKind::plain_activation, TaskKind::rotary, TaskKind::kv_write,
                                TaskKind::embedding, TaskKind::sampling, TaskKind::choice, TaskKind::expert_sum}) {
        Task task = attention(3, 1, 17, DType::bf16);
        task.name = std::string(name(kind));
        task.kind = kind;
        task.rows = 3;
        task.width = 96;
        task.chosen = 5;
        tasks.push_back(task);
        if (kind != TaskKind::rotary && kind != TaskKind::kv_write) continue;
        task.latent = true;
        task.kv_heads = 1;
        if (kind == TaskKind::kv_write) task.query_heads = 0;
        tasks.push_back(task);
    }
    tasks.push_back(attention(2, 1, 100, DType::bf16));
    tasks.back().kv_heads = 1;
    tasks.back().value_dim = 32;
    tasks.back().latent = true;
    // States of heads that share keys, and that do not; a convolution of one token and of several, of fewer than its
    // taps; norms of a row and of each head, with a gate.
    for (const TaskKind kind : {TaskKind::state_space, TaskKind::delta_rule}) {
        for (const std::int64_t groups : {2, 6}) {
            Task task = attention(3, 1, 1, DType::fp32);
            task.name = std::string(name(kind));
            task.kind = kind;
            task.rows = 3;
            task.kv_heads = groups;
            task.head_dim = 40;
            task.value_dim = 24;
            task.width = 6 * 24;
            tasks.push_back(task);
        }
    }
    for (const std::int64_t tokens : {1, 2, 9}) {
        Task task = attention(2, tokens, tokens, DType::bf16);
        task.name = "convolution";
        task.kind = TaskKind::convolution;
        task.rows = 2 * tokens;
        task.width = 600;
        task.taps = 4;
        tasks.push_back(task);
    }
    for (const std::int64_t run : {96, 32}) {
        Task task = attention(3, 1, 1, DType::bf16);
        task.name = "gated_norm";
        task.kind = TaskKind::gated_norm;
        task.rows = 3;
        task.width = 96;
        task.run = run;
        tasks.push_back(task);
    }
    Pace pace;
    pace.rotate_past = 1 << 16;
    pace.budget.seconds = 1e-4;
    pace.budget.window = 1e-5;
    for (const auto& backend : cpu_backends()) {
        if (!backend->available()) continue;
        for (const Task& task : tasks) {
            if (backend->refuses(task)) continue;
            auto operands = make_operands(task, pace.rotate_past, *threads);
            ASSERT_TRUE(operands);
            const Outcome outcome = run_task(*backend, *operands, *threads, pace);
            // A library may lack a type on some processors; it may not be wrong.
            EXPECT_EQ(outcome.problem.find("wrong"), std::string::npos)
                << backend->name() << " " << task.name << ": " << outcome.problem;
            if (backend->name() == "own") {
                EXPECT_EQ(outcome.problem, "") << task.name;
            }
        }
    }
}

class Liar final : public Backend {
  public:
    std::string name() const override { return "liar"; }
    std::string describe() const override { return ""; }
    Result<void> available() override { return {}; }
    std::optional<std::string> refuses(const Task&) const override { return std::nullopt; }
    Result<std::unique_ptr<Kernel>> prepare(Operands& operands, Threads&) override {
        struct Zero final : Kernel {
            explicit Zero(Operands& given) : operands(given) {}
            void run(std::size_t) override { std::fill(operands.y.begin(), operands.y.end(), 0.0F); }
            Operands& operands;
        };
        return std::make_unique<Zero>(operands);
    }
};

TEST(Backends, OneThatIsWrongHasNoTime) {
    const auto threads = team(1);
    auto operands = make_operands(product(1, 32, 128, DType::bf16), 0, *threads);
    ASSERT_TRUE(operands);
    Liar liar;
    const Outcome outcome = run_task(liar, *operands, *threads, {});
    EXPECT_FALSE(outcome.measured());
    EXPECT_TRUE(outcome.problem.starts_with("wrong")) << outcome.problem;
    EXPECT_EQ(outcome.timing.calls, 0);
}

TEST(Operands, CopiesTogetherReachTheBytesToRotatePast) {
    const auto threads = team(1);
    // 64 x 256 bf16 are 32,768 bytes: 100,000 take four copies.
    const auto operands = make_operands(product(1, 64, 256, DType::bf16), 100'000, *threads);
    ASSERT_TRUE(operands);
    EXPECT_EQ(operands->copies(), 4U);
}

TEST(Operands, MoreThanTheMemoryThereIsIsRefusedInOneLine) {
    const auto threads = team(1);
    const auto operands = make_operands(product(1, 1 << 24, 1 << 20, DType::fp32), 0, *threads);
    ASSERT_FALSE(operands);
    EXPECT_TRUE(operands.error().unavailable);
    EXPECT_NE(operands.error().text.find("GB of memory"), std::string::npos) << operands.error().text;
}

}  // namespace
}  // namespace roofline::bench
