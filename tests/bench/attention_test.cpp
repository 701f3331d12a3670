// Attention by every instruction set that this processor has, at toy size, against fp64.
#include "roofline/bench/kernels/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "bench/tasks.hpp"
#include "bench/team.hpp"
#include "roofline/bench/backend.hpp"

namespace roofline::bench {
namespace {

using testing::attention;
using testing::team;

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
                                                          {1, 70, 150, 5, 256},
                                                          {1, 1, 300, 1, 80},
                                                          {1, 1, 37, 5, 80},
                                                          {2, 37, 90, 4, 80},
                                                          {1, 1, 150, 9, 16}}) {
                if (!kernels->takes(HeadWidths::same(head_dim))) continue;
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

TEST(Attention, TheBestKernelsForAHeadTakeIt) {
    for (const std::int64_t width : {16, 32, 48, 80, 128, 176, 576})
        EXPECT_TRUE(best_attention(HeadWidths::same(width)).takes(HeadWidths::same(width))) << width;
    EXPECT_TRUE(best_attention({96, 80}).takes({96, 80}));
    EXPECT_FALSE(portable_attention().takes(HeadWidths::same(100)));
}

TEST(Attention, ScoresMayClimbOrFallFarFromTheFirst) {
    const auto threads = team();
    for (const AttentionKernels* kernels : all_attention()) {
        for (const DType kv : {DType::bf16, DType::fp32}) {
            // From a position to the next by so much: weights that grow by little at a time, and by many orders.
            for (const float step : {0.05F, 0.4F, 3.0F, -0.05F, -3.0F}) {
                const Task asked = attention(1, 1, 300, kv);
                auto operands = make_operands(asked, 0, *threads);
                ASSERT_TRUE(operands);
                const std::int64_t width = asked.head_dim;
                const std::int64_t group = asked.query_heads / asked.kv_heads;
                for (std::int64_t head = 0; head < asked.kv_heads; ++head) {
                    const float* q = operands->x.data() + head * group * width;
                    float length = 0.0F;
                    for (std::int64_t i = 0; i < width; ++i) length += q[i] * q[i];
                    for (std::int64_t position = 0; position < asked.context; ++position) {
                        const float wanted = step * static_cast<float>(position);
                        for (std::int64_t i = 0; i < width; ++i) {
                            const float key = q[i] / length * std::sqrt(static_cast<float>(width)) * wanted;
                            const std::int64_t place = (head * asked.context + position) * width + i;
                            if (kv == DType::bf16)
                                operands->keys[0].as<Bf16>()[place] = to_bf16(key);
                            else
                                operands->keys[0].as<float>()[place] = key;
                        }
                    }
                }
                attend(*operands, *kernels, *threads);
                EXPECT_LE(largest_error(reference(*operands), operands->y), tolerance(asked))
                    << kernels->name << " " << name(kv) << " by " << step;
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

}  // namespace
}  // namespace roofline::bench
