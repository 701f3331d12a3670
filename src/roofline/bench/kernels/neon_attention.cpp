// Attention for AArch64 with the bf16 instructions: scores and weighted values both as products of small matrices
// (BFMMLA: 2 x 4 by 4 x 2), two queries at a time. Queries of a group share every key and value that is loaded. A cache
// in fp32 goes the way it goes anywhere (attention_lanes.inc).
//
// Operations for 32 bytes of keys and 32 of values, four queries: 2 + 4 to turn and multiply keys, 4 + 4 for values.
// The turning is what holds it back: two a cycle on a Neoverse-V1, where products go four at a time. Weights are
// rounded to bf16 before they meet the values, as attention on other devices does it.
#include <algorithm>
#include <utility>
#include <vector>

#include "roofline/bench/kernels/attention.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16+i8mm+dotprod,tune=neoverse-v1")
namespace roofline::bench::neon_attention_lanes {
namespace {

#define ROOFLINE_LANES 4
// clang-format off: the first says what the others are written with
#include "roofline/bench/kernels/lanes.inc"
#include "roofline/bench/kernels/attention_lanes.inc"
// clang-format on
#undef ROOFLINE_LANES

inline bfloat16x8_t as_bf16(uint64x2_t value) {
    return vreinterpretq_bf16_u64(value);
}
inline uint64x2_t load_pairs(const Bf16* from) {
    return vreinterpretq_u64_u16(vld1q_u16(from));
}

/// What a piece works on, queries in pairs: [pair][head_dim / 4][2 queries x 4], sums as [pair][head_dim / 2][2 queries
/// x 2], scores as [query][block] and weights as [pair][block / 4][2 queries x 4].
struct Pairs {
    std::int64_t count;
    std::int64_t head_dim;
    std::vector<Bf16> queries;
    std::vector<float> sums;
    std::vector<float> scores;
    std::vector<Bf16> weights;
    std::vector<float> largest;
    std::vector<float> totals;

    Bf16* query(std::int64_t pair) { return queries.data() + pair * 2 * head_dim; }
    float* sum(std::int64_t pair) { return sums.data() + pair * 2 * head_dim; }
    float* score(std::int64_t pair) { return scores.data() + pair * 2 * block; }
    Bf16* weight(std::int64_t pair) { return weights.data() + pair * 2 * block; }
};

/// Eight keys against `width` pairs of queries; the scores of positions [at, at + 8) of the block.
template <int width>
inline __attribute__((always_inline)) void score_eight(Pairs& pairs, std::int64_t pair, const Bf16* const (&keys)[8],
                                                       std::int64_t at) {
    float32x4_t dots[4][width][2];
    for (auto& two_keys : dots) {
        for (auto& sums : two_keys) sums[0] = sums[1] = vdupq_n_f32(0.0F);
    }
    for (std::int64_t d = 0; d < pairs.head_dim; d += 8) {
        bfloat16x8_t query[width][2];
        for (int j = 0; j < width; ++j) {
            query[j][0] = as_bf16(load_pairs(pairs.query(pair + j) + 2 * d));
            query[j][1] = as_bf16(load_pairs(pairs.query(pair + j) + 2 * d + 8));
        }
        for (int i = 0; i < 4; ++i) {
            const uint64x2_t one = load_pairs(keys[2 * i] + d);
            const uint64x2_t two = load_pairs(keys[2 * i + 1] + d);
            const bfloat16x8_t first = as_bf16(vtrn1q_u64(one, two));
            const bfloat16x8_t second = as_bf16(vtrn2q_u64(one, two));
            for (int j = 0; j < width; ++j) {
                dots[i][j][0] = vbfmmlaq_f32(dots[i][j][0], first, query[j][0]);
                dots[i][j][1] = vbfmmlaq_f32(dots[i][j][1], second, query[j][1]);
            }
        }
    }
    for (int j = 0; j < width; ++j) {
        float* line = pairs.score(pair + j) + at;
        for (int half = 0; half < 2; ++half) {
            // k0 q0, k0 q1, k1 q0, k1 q1 and the same of the next two keys
            const float32x4_t low = vaddq_f32(dots[2 * half][j][0], dots[2 * half][j][1]);
            const float32x4_t high = vaddq_f32(dots[2 * half + 1][j][0], dots[2 * half + 1][j][1]);
            vst1q_f32(line + 4 * half, vuzp1q_f32(low, high));
            vst1q_f32(line + block + 4 * half, vuzp2q_f32(low, high));
        }
    }
}

/// 2^(x log2 e) for x <= 0 by a cubic: within 2^-12, and the weights have 2^-9.
inline __attribute__((always_inline)) float32x4_t rough_exponential(float32x4_t x) {
    const float32x4_t scaled = vmaxq_f32(vmulq_n_f32(x, 1.44269504F), vdupq_n_f32(-126.0F));
    const int32x4_t whole = vcvtnq_s32_f32(scaled);
    const float32x4_t rest = vsubq_f32(scaled, vcvtq_f32_s32(whole));  // within half of zero
    float32x4_t power = vfmaq_f32(vdupq_n_f32(0.24022652F), rest, vdupq_n_f32(0.0558016F));
    power = vfmaq_f32(vdupq_n_f32(0.69314718F), rest, power);
    power = vfmaq_f32(vdupq_n_f32(1.0F), rest, power);
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(power), vshlq_n_s32(whole, 23)));
}

/// From scores to weights: what is in the sums so far shrinks when a larger score turns up.
inline __attribute__((always_inline)) void weigh_scores(Pairs& pairs, std::int64_t pair, std::int64_t here) {
    float* largest = pairs.largest.data() + 2 * pair;
    float* total = pairs.totals.data() + 2 * pair;
    float* lines[2] = {pairs.score(pair), pairs.score(pair) + block};
    float shrink[2] = {1.0F, 1.0F};
    for (int query = 0; query < 2; ++query) {
        for (std::int64_t i = here; i < block; ++i) lines[query][i] = -1e30F;
        float32x4_t most[4];
        for (auto& part : most) part = vdupq_n_f32(largest[query]);
        for (std::int64_t i = 0; i < block; i += 16) {
            for (int part = 0; part < 4; ++part)
                most[part] = vmaxq_f32(most[part], vld1q_f32(lines[query] + i + 4 * part));
        }
        const float now = vmaxvq_f32(vmaxq_f32(vmaxq_f32(most[0], most[1]), vmaxq_f32(most[2], most[3])));
        if (now > largest[query]) {
            shrink[query] = exponential(Floats{} + (largest[query] - now))[0];
            largest[query] = now;
        }
    }
    const float32x4_t most[2] = {vdupq_n_f32(largest[0]), vdupq_n_f32(largest[1])};
    float32x4_t totals[2] = {vdupq_n_f32(0.0F), vdupq_n_f32(0.0F)};
    Bf16* weights = pairs.weight(pair);
    for (std::int64_t i = 0; i < block; i += 4) {
        float32x4_t powers[2];
        for (int query = 0; query < 2; ++query) {
            powers[query] = rough_exponential(vsubq_f32(vld1q_f32(lines[query] + i), most[query]));
            totals[query] = vaddq_f32(totals[query], powers[query]);
        }
        const bfloat16x8_t both = vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(powers[0]), powers[1]);
        vst1q_u16(weights + 2 * i, vreinterpretq_u16_bf16(both));
    }
    for (int query = 0; query < 2; ++query) total[query] = total[query] * shrink[query] + vaddvq_f32(totals[query]);
    if (shrink[0] == 1.0F && shrink[1] == 1.0F) return;
    const float32x4_t factors = {shrink[0], shrink[0], shrink[1], shrink[1]};
    float* sums = pairs.sum(pair);
    for (std::int64_t i = 0; i < 2 * pairs.head_dim; i += 4)
        vst1q_f32(sums + i, vmulq_f32(vld1q_f32(sums + i), factors));
}

/// Adds 16 columns of the values of a block, weighted, to the sums of `width` pairs of queries. `values` has whole
/// fours of positions: those beyond the end have no weight.
template <int width>
inline __attribute__((always_inline)) void add_values(Pairs& pairs, std::int64_t pair, const Bf16* values,
                                                      std::int64_t here, std::int64_t column) {
    const std::int64_t d = pairs.head_dim;
    float32x4_t sums[width][8];  // two columns each
    const Bf16* weights[width];
    for (int j = 0; j < width; ++j) {
        weights[j] = pairs.weight(pair + j);
        for (int i = 0; i < 8; ++i) sums[j][i] = vld1q_f32(pairs.sum(pair + j) + 2 * column + 4 * i);
    }
    const auto four = [&](const Bf16* const(&rows)[4]) __attribute__((always_inline)) {
        bfloat16x8_t weight[width];
        for (int j = 0; j < width; ++j) {
            weight[j] = as_bf16(load_pairs(weights[j]));
            weights[j] += 8;
        }
        for (int half = 0; half < 2; ++half) {
            // Four positions of eight columns, turned so that the positions of a column lie side by side.
            uint16x8_t row[4];
            for (int i = 0; i < 4; ++i) row[i] = vld1q_u16(rows[i] + 8 * half);
            const uint32x4_t upper[2] = {vreinterpretq_u32_u16(vzip1q_u16(row[0], row[1])),
                                         vreinterpretq_u32_u16(vzip2q_u16(row[0], row[1]))};
            const uint32x4_t lower[2] = {vreinterpretq_u32_u16(vzip1q_u16(row[2], row[3])),
                                         vreinterpretq_u32_u16(vzip2q_u16(row[2], row[3]))};
            for (int quarter = 0; quarter < 2; ++quarter) {
                const auto one = vreinterpretq_bf16_u32(vzip1q_u32(upper[quarter], lower[quarter]));
                const auto two = vreinterpretq_bf16_u32(vzip2q_u32(upper[quarter], lower[quarter]));
                for (int j = 0; j < width; ++j) {
                    float32x4_t* place = sums[j] + 4 * half + 2 * quarter;
                    place[0] = vbfmmlaq_f32(place[0], weight[j], one);
                    place[1] = vbfmmlaq_f32(place[1], weight[j], two);
                }
            }
        }
    };
    const Bf16* from = values + column;
    std::int64_t at = 0;
    for (; at + 4 <= here; at += 4, from += 4 * d) four({from, from + d, from + 2 * d, from + 3 * d});
    if (at < here) {
        const Bf16* last = values + (here - 1) * d + column;
        four({from, std::min(from + d, last), std::min(from + 2 * d, last), last});
    }
    for (int j = 0; j < width; ++j) {
        for (int i = 0; i < 8; ++i) vst1q_f32(pairs.sum(pair + j) + 2 * column + 4 * i, sums[j][i]);
    }
}

void take_queries(Pairs& pairs, const Bf16* narrow, std::int64_t rows, std::int64_t head_dim,
                  const AttentionState& state) {
    const auto size = [](std::int64_t count) { return static_cast<std::size_t>(count); };
    pairs.count = (rows + 1) / 2;
    pairs.head_dim = head_dim;
    pairs.queries.assign(size(pairs.count * 2 * head_dim), 0);
    pairs.sums.assign(size(pairs.count * 2 * head_dim), 0.0F);
    pairs.scores.resize(size(pairs.count * 2 * block));
    pairs.weights.resize(size(pairs.count * 2 * block));
    pairs.largest.assign(size(pairs.count * 2), 0.0F);
    pairs.totals.assign(size(pairs.count * 2), 0.0F);
    for (std::int64_t row = 0; row < rows; ++row) {
        Bf16* query = pairs.query(row / 2) + row % 2 * 4;
        for (std::int64_t d = 0; d < head_dim; d += 4) std::copy_n(narrow + row * head_dim + d, 4, query + 2 * d);
        float* sums = pairs.sum(row / 2) + row % 2 * 2;
        for (std::int64_t d = 0; d < head_dim; d += 2) std::copy_n(state.values + row * head_dim + d, 2, sums + 2 * d);
        pairs.largest[size(row)] = state.largest[row];
        pairs.totals[size(row)] = state.sum[row];
    }
}

void give_back(Pairs& pairs, std::int64_t rows, const AttentionState& state) {
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* sums = pairs.sum(row / 2) + row % 2 * 2;
        for (std::int64_t d = 0; d < pairs.head_dim; d += 2)
            std::copy_n(sums + 2 * d, 2, state.values + row * pairs.head_dim + d);
        state.largest[row] = pairs.largest[static_cast<std::size_t>(row)];
        state.sum[row] = pairs.totals[static_cast<std::size_t>(row)];
    }
}

/// Calls `two(pair)` for pairs of pairs and `one(pair)` for what is left.
template <class Two, class One>
inline __attribute__((always_inline)) void by_two(std::int64_t count, const Two& two, const One& one) {
    std::int64_t pair = 0;
    for (; pair + 2 <= count; pair += 2) two(pair);
    if (pair < count) one(pair);
}

void piece_bf16(const float*, const Bf16* narrow, std::int64_t rows, const Bf16* keys, const Bf16* values,
                std::int64_t count, std::int64_t head_dim, const AttentionState& state) {
    static thread_local Pairs pairs;
    take_queries(pairs, narrow, rows, head_dim, state);
    for (std::int64_t begin = 0; begin < count; begin += block) {
        const std::int64_t here = std::min(block, count - begin);
        for (std::int64_t at = 0; at < here; at += 8) {
            const Bf16* eight[8];
            for (std::int64_t i = 0; i < 8; ++i) eight[i] = keys + (begin + std::min(at + i, here - 1)) * head_dim;
            by_two(
                pairs.count, [&](std::int64_t pair) { score_eight<2>(pairs, pair, eight, at); },
                [&](std::int64_t pair) { score_eight<1>(pairs, pair, eight, at); });
        }
        for (std::int64_t pair = 0; pair < pairs.count; ++pair) weigh_scores(pairs, pair, here);
        for (std::int64_t column = 0; column < head_dim; column += 16) {
            const Bf16* from = values + begin * head_dim;
            by_two(
                pairs.count, [&](std::int64_t pair) { add_values<2>(pairs, pair, from, here, column); },
                [&](std::int64_t pair) { add_values<1>(pairs, pair, from, here, column); });
        }
    }
    give_back(pairs, rows, state);
}

}  // namespace
}  // namespace roofline::bench::neon_attention_lanes
#pragma GCC pop_options

namespace roofline::bench {
const AttentionKernels* neon_attention() {
    static constexpr AttentionKernels kernels = {"NEON with bf16", neon_attention_lanes::piece_bf16,
                                                 neon_attention_lanes::attention_piece<float>};
    return (::getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0 ? &kernels : nullptr;
}
}  // namespace roofline::bench
#else
namespace roofline::bench {
const AttentionKernels* neon_attention() {
    return nullptr;
}
}  // namespace roofline::bench
#endif
