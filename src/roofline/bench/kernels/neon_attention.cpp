// Attention for AArch64 with the bf16 instructions: scores and weighted values are the same product of small matrices
// (BFMMLA: 2 x 4 by 4 x 2), four queries by 16 keys or by 16 columns of values, over a cache in tiles (attention.hpp),
// so that what is loaded can be multiplied as it is. A cache in fp32 goes the way it goes anywhere
// (attention_lanes.inc).
//
// On a Neoverse-V1 a core reads up to 17 bytes a cycle: 30 cycles for a position of 128 + 128 elements. On data in its
// first-level cache scores take 9.7 cycles of four queries, weights 2.7, values 12.9. Products are written out because
// their order counts (MULTIPLY). What comes 16 KiB on, two tiles, is asked for into the third-level cache; asking for
// it into those nearer by made things slower, and so did 12 or 20 KiB.
#include <algorithm>
#include <cmath>
#include <cstdint>
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

/// What a piece works on, queries in fours, each four in pairs:
///   queries    [head_dim / 4][pair][2 queries x 4]
///   weights    [at_once / 4][pair][2 queries x 4 positions]
///   sums       [head_dim / 2][pair][2 queries x 2 columns]
///   reference  scores, as powers of two, are taken relative to it; -1e30 before the first
struct Fours {
    std::int64_t count;
    std::int64_t head_dim;
    std::int64_t at_once;
    std::vector<Bf16> queries;
    std::vector<Bf16> weights;
    std::vector<float> sums;
    std::vector<float> reference;
    std::vector<float> totals;

    Bf16* query(std::int64_t four) { return queries.data() + four * 4 * head_dim; }
    Bf16* weight(std::int64_t four) { return weights.data() + four * 4 * at_once; }
    float* sum(std::int64_t four) { return sums.data() + four * 4 * head_dim; }
};

// v0 to v15, [8 pairs of columns][2 pairs of rows], += few (4 rows) x many (16 columns) over `eights` x 8 of what they
// have in common. A sum can be added to three cycles after it was last, or five and more, but not four: 16 of them one
// after the other, four in a cycle, would have to wait. In the order below it is three and five in turn.
// clang-format off
#define COLUMNS(at, one, two, three, four, left, right, row, next)                                                      \
    "ldp q" #left ", q" #right ", [%[many], #" #at "]\n"                                                                \
    "bfmmla v" #one ".4s, v" #row ".8h, v" #left ".8h\n bfmmla v" #two ".4s, v" #next ".8h, v" #left ".8h\n"           \
    "bfmmla v" #three ".4s, v" #row ".8h, v" #right ".8h\n bfmmla v" #four ".4s, v" #next ".8h, v" #right ".8h\n"
#define ASK(at)                                                                                                         \
    ".if %c[level]\n prfm pldl%c[level]keep, [%[many], %[ahead] + " #at "]\n"                                            \
    "prfm pldl%c[level]keep, [%[many], %[ahead] + 64 + " #at "]\n .endif\n"
#define MULTIPLY                                                                                                        \
    "1:\n ldp q24, q25, [%[few]]\n ldp q26, q27, [%[few], #32]\n add %[few], %[few], #64\n"                            \
    COLUMNS(0, 0, 1, 2, 3, 16, 17, 24, 25)                                                                              \
    COLUMNS(32, 4, 5, 6, 7, 18, 19, 24, 25)                                                                             \
    COLUMNS(96, 12, 13, 14, 15, 20, 21, 24, 25)                                                                         \
    COLUMNS(128, 0, 1, 2, 3, 22, 23, 26, 27) ASK(0)                                                                     \
    COLUMNS(64, 8, 9, 10, 11, 16, 17, 24, 25)                                                                           \
    COLUMNS(224, 12, 13, 14, 15, 18, 19, 26, 27)                                                                        \
    COLUMNS(160, 4, 5, 6, 7, 20, 21, 26, 27)                                                                            \
    COLUMNS(192, 8, 9, 10, 11, 22, 23, 26, 27) ASK(128)                                                                 \
    "add %[many], %[many], #256\n subs %[eights], %[eights], #1\n b.ne 1b\n"
// clang-format on
constexpr std::int64_t ahead = 16384;  // bytes
// Into which level of caches queries ask for it: the first four do so into the third, and where there are more the next
// four bring it into the second, while their own keys or values are in the first. (Eight queries take 61 cycles a
// position so, 68 without; 64, 68 and 65 where these ask into the first or again into the third.)
constexpr int first_level = 3;
constexpr int next_level = 2;

using Scores = float32x4_t[16];  // [8 pairs of positions][2 pairs of queries], each of them 2 queries x 2 positions

/// Of four queries and 16 keys, less the reference of each query (`first` and `second` pair).
template <int level>
inline __attribute__((always_inline)) void score(const Bf16* few, const Bf16* many, std::int64_t head_dim,
                                                 float32x4_t first, float32x4_t second, Scores& scores) {
    std::int64_t eights = head_dim / 8;
    // clang-format off
    register float32x4_t s0 asm("v0"); register float32x4_t s1 asm("v1");
    register float32x4_t s2 asm("v2"); register float32x4_t s3 asm("v3");
    register float32x4_t s4 asm("v4"); register float32x4_t s5 asm("v5");
    register float32x4_t s6 asm("v6"); register float32x4_t s7 asm("v7");
    register float32x4_t s8 asm("v8"); register float32x4_t s9 asm("v9");
    register float32x4_t s10 asm("v10"); register float32x4_t s11 asm("v11");
    register float32x4_t s12 asm("v12"); register float32x4_t s13 asm("v13");
    register float32x4_t s14 asm("v14"); register float32x4_t s15 asm("v15");
    // clang-format on
    asm volatile(
        "mov v0.16b, %[first].16b\n mov v1.16b, %[second].16b\n"
        "mov v2.16b, %[first].16b\n mov v3.16b, %[second].16b\n"
        "mov v4.16b, %[first].16b\n mov v5.16b, %[second].16b\n"
        "mov v6.16b, %[first].16b\n mov v7.16b, %[second].16b\n"
        "mov v8.16b, %[first].16b\n mov v9.16b, %[second].16b\n"
        "mov v10.16b, %[first].16b\n mov v11.16b, %[second].16b\n"
        "mov v12.16b, %[first].16b\n mov v13.16b, %[second].16b\n"
        "mov v14.16b, %[first].16b\n mov v15.16b, %[second].16b\n" MULTIPLY
        : [few] "+r"(few), [many] "+r"(many), [eights] "+r"(eights), "=&w"(s0), "=&w"(s1), "=&w"(s2), "=&w"(s3),
          "=&w"(s4), "=&w"(s5), "=&w"(s6), "=&w"(s7), "=&w"(s8), "=&w"(s9), "=&w"(s10), "=&w"(s11), "=&w"(s12),
          "=&w"(s13), "=&w"(s14), "=&w"(s15)
        : [first] "w"(first), [second] "w"(second), [ahead] "i"(ahead), [level] "i"(level)
        : "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "cc", "memory");
    scores[0] = s0;
    scores[1] = s1;
    scores[2] = s2;
    scores[3] = s3;
    scores[4] = s4;
    scores[5] = s5;
    scores[6] = s6;
    scores[7] = s7;
    scores[8] = s8;
    scores[9] = s9;
    scores[10] = s10;
    scores[11] = s11;
    scores[12] = s12;
    scores[13] = s13;
    scores[14] = s14;
    scores[15] = s15;
}

/// Adds 16 columns of the values of `eights` x 8 positions, weighted, to the sums of four queries; then of `more`,
/// which lie `jump` bytes behind.
template <int level>
inline void add_values(const Bf16* few, const Bf16* many, std::int64_t eights, std::int64_t more, std::int64_t jump,
                       float* sums) {
    asm volatile(
        "ldp q0, q1, [%[sums]]\n ldp q2, q3, [%[sums], #32]\n ldp q4, q5, [%[sums], #64]\n"
        "ldp q6, q7, [%[sums], #96]\n ldp q8, q9, [%[sums], #128]\n ldp q10, q11, [%[sums], #160]\n"
        "ldp q12, q13, [%[sums], #192]\n ldp q14, q15, [%[sums], #224]\n" MULTIPLY
        "cbz %[more], 2f\n mov %[eights], %[more]\n mov %[more], #0\n add %[many], %[many], %[jump]\n b 1b\n 2:\n"
        "stp q0, q1, [%[sums]]\n stp q2, q3, [%[sums], #32]\n stp q4, q5, [%[sums], #64]\n"
        "stp q6, q7, [%[sums], #96]\n stp q8, q9, [%[sums], #128]\n stp q10, q11, [%[sums], #160]\n"
        "stp q12, q13, [%[sums], #192]\n stp q14, q15, [%[sums], #224]\n"
        : [few] "+r"(few), [many] "+r"(many), [eights] "+r"(eights), [more] "+r"(more)
        : [sums] "r"(sums), [jump] "r"(jump), [ahead] "i"(ahead), [level] "i"(level)
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
          "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "cc", "memory");
}
#undef MULTIPLY
#undef ASK
#undef COLUMNS

/// Weights of 16 positions: 2^score as bf16, from 2^-127 to 2; `beyond` is no longer zero where a score was outside.
///
/// A float 1.5 x 2^14 above has the score in 512ths as its lower half, and the upper half tells whether it fits. Seen
/// as exponent and mantissa, 512ths are 2^floor (1 + rest) instead of 2^floor 2^rest; a square in the rest makes good
/// for that within 5.5 in a thousand, 2 root mean square (3.9 and 1.7 are what rounding to bf16 alone does).
inline __attribute__((always_inline)) void weigh(const Scores& scores, Bf16* weights, float32x4_t (&totals)[2],
                                                 uint16x8_t& beyond) {
    constexpr int most_below = 40;  // 512ths, where the rest is a half; with the factor 43 the least error of all pairs
    float32x4_t shift = vdupq_n_f32(24576.0F + 127.0F - most_below / 512.0F);
    uint16x8_t upper = vdupq_n_u16(0x46C0);
    uint16x8_t half = vdupq_n_u16(256 + most_below);
    int16x8_t factor = vdupq_n_s16(43);
    uint16x8_t one = vdupq_n_u16(0x3F80);
    asm("" : "+w"(shift), "+w"(upper), "+w"(half), "+w"(factor), "+w"(one));  // loaded once, not wherever one is used
    for (int i = 0; i < 16; i += 4) {
        for (int pair = 0; pair < 2; ++pair) {
            const uint16x8_t even = vreinterpretq_u16_f32(vaddq_f32(scores[i + pair], shift));
            const uint16x8_t odd = vreinterpretq_u16_f32(vaddq_f32(scores[i + 2 + pair], shift));
            beyond = vabaq_u16(beyond, vtrn2q_u16(even, odd), upper);
            const uint16x8_t line = vtrn1q_u16(even, odd);
            const int16x8_t rest = vreinterpretq_s16_u16(vshlq_n_u16(vaddq_u16(line, half), 7));  // less a half
            const int16x8_t curve = vqrdmlahq_s16(vreinterpretq_s16_u16(line), vqdmulhq_s16(rest, rest), factor);
            const uint16x8_t power = vrshrq_n_u16(vreinterpretq_u16_s16(curve), 2);
            totals[pair] = vbfdotq_f32(totals[pair], vreinterpretq_bf16_u16(power), vreinterpretq_bf16_u16(one));
            vst1q_u16(weights + 4 * i + 8 * pair, power);
        }
    }
}

constexpr float log2_of_e = 1.44269504F;

void take_queries(Fours& fours, const float* q, std::int64_t rows, std::int64_t head_dim, const AttentionState& state) {
    const auto size = [](std::int64_t count) { return static_cast<std::size_t>(count); };
    fours.count = (rows + 3) / 4;
    fours.head_dim = head_dim;
    fours.at_once = positions_of_tile(head_dim) * (fours.count > 2 ? 2 : 1);
    fours.queries.assign(size(fours.count * 4 * head_dim), 0);
    fours.weights.resize(size(fours.count * 4 * fours.at_once));
    fours.sums.assign(size(fours.count * 4 * head_dim), 0.0F);
    fours.reference.assign(size(fours.count * 4), 0.0F);
    fours.totals.assign(size(fours.count * 4), 0.0F);
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t place = row % 4;
        const float* from = q + row * head_dim;
        const float* before = state.values + row * head_dim;
        Bf16* query = fours.query(row / 4) + place * 4;
        float* sums = fours.sum(row / 4) + place / 2 * 4 + place % 2 * 2;
        // By fours: a short context takes little longer than this.
        for (std::int64_t i = 0; i < head_dim; i += 4) {
            const float32x4_t scaled = vmulq_n_f32(vld1q_f32(from + i), log2_of_e);
            vst1_u16(query + i * 4, vreinterpret_u16_bf16(vcvt_bf16_f32(scaled)));
        }
        for (std::int64_t i = 0; i < head_dim && state.sum[row] != 0.0F; i += 4) {
            const float32x4_t values = vld1q_f32(before + i);
            vst1_f32(sums + i * 4, vget_low_f32(values));
            vst1_f32(sums + i * 4 + 8, vget_high_f32(values));
        }
        fours.reference[size(row)] = std::nearbyint(state.largest[row] * log2_of_e);  // a whole number was given back
        fours.totals[size(row)] = state.sum[row];
    }
}

void give_back(Fours& fours, std::int64_t rows, const AttentionState& state) {
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t place = row % 4;
        const float* sums = fours.sum(row / 4) + place / 2 * 4 + place % 2 * 2;
        float* to = state.values + row * fours.head_dim;
        for (std::int64_t i = 0; i < fours.head_dim; i += 4)
            vst1q_f32(to + i, vcombine_f32(vld1_f32(sums + i * 4), vld1_f32(sums + i * 4 + 8)));
        state.largest[row] = fours.reference[static_cast<std::size_t>(row)] / log2_of_e;
        state.sum[row] = fours.totals[static_cast<std::size_t>(row)];
    }
}

/// The positions [begin, end) of a tile.
struct Span {
    std::int64_t begin;
    std::int64_t end;
    bool holds(std::int64_t position) const { return position >= begin && position < end; }
};

/// Scores of 16 positions from `at` on that are not in the span become the least.
inline void hide(Scores& scores, std::int64_t at, Span span) {
    if (span.begin <= at && at + 16 <= span.end) return;
    for (int i = 0; i < 16; ++i) {
        for (int lane = 0; lane < 4; ++lane) {
            if (!span.holds(at + i / 4 * 4 + i / 2 % 2 + lane % 2 * 2)) scores[i][lane] = -1e30F;
        }
    }
}

__attribute__((noinline)) float32x4_t largest_scores(Fours& fours, std::int64_t four, const Bf16* keys, Span span) {
    const float32x4_t zero = vdupq_n_f32(0.0F);
    float32x4_t most[2] = {vdupq_n_f32(-1e30F), vdupq_n_f32(-1e30F)};
    for (std::int64_t at = span.begin / 16 * 16; at < span.end; at += 16) {
        Scores scores;
        score<0>(fours.query(four), keys + at * fours.head_dim, fours.head_dim, zero, zero, scores);
        hide(scores, at, span);
        for (int i = 0; i < 16; ++i) most[i % 2] = vmaxq_f32(most[i % 2], scores[i]);
    }
    return vpmaxq_f32(most[0], most[1]);
}

/// A reference 40 above what has been seen leaves room for scores 40 above that and 87 below: it hardly ever has to be
/// raised again, and weights need not wait for the largest score of their tiles.
__attribute__((noinline)) void raise_reference(Fours& fours, std::int64_t four, float32x4_t largest) {
    float* sums = fours.sum(four);
    for (int query = 0; query < 4; ++query) {
        const auto row = static_cast<std::size_t>(4 * four + query);
        const float before = fours.reference[row];
        if (largest[query] < before) continue;
        const float now = std::ceil(largest[query]) + 40.0F;
        fours.reference[row] = now;
        if (fours.totals[row] == 0.0F) continue;  // nothing is in the sums
        const float shrink = std::ldexp(1.0F, static_cast<int>(std::max(before - now, -1000.0F)));
        fours.totals[row] *= shrink;
        for (std::int64_t i = query / 2 * 4 + query % 2 * 2; i < 4 * fours.head_dim; i += 8) {
            sums[i] *= shrink;
            sums[i + 1] *= shrink;
        }
    }
}

/// Weights of a tile. False, and nothing is added to the totals, if a score is beyond what a weight can be.
/// `carefully`: those below count as the least, and so do those that are not in the span.
template <bool carefully, int level>
inline bool find_weights(Fours& fours, std::int64_t four, const Bf16* keys, Span span) {
    const float32x4_t below = vnegq_f32(vld1q_f32(fours.reference.data() + 4 * four));
    const float32x4_t first = vzip1q_f32(below, below);
    const float32x4_t second = vzip2q_f32(below, below);
    float32x4_t totals[2] = {vdupq_n_f32(0.0F), vdupq_n_f32(0.0F)};
    uint16x8_t beyond = vdupq_n_u16(0);
    for (std::int64_t at = span.begin / 16 * 16; at < span.end; at += 16) {
        Scores scores;
        score<level>(fours.query(four), keys + at * fours.head_dim, fours.head_dim, first, second, scores);
        if constexpr (carefully) {
            hide(scores, at, span);
            for (float32x4_t& some : scores) some = vmaxq_f32(some, vdupq_n_f32(-126.0F));
        }
        weigh(scores, fours.weight(four) + at * 4, totals, beyond);
    }
    if (vmaxvq_u16(beyond) != 0) return false;
    float* total = fours.totals.data() + 4 * four;
    vst1q_f32(total, vaddq_f32(vld1q_f32(total), vpaddq_f32(totals[0], totals[1])));
    return true;
}

inline void weigh_tile(Fours& fours, std::int64_t four, const Bf16* keys, Span span) {
    if (fours.reference[static_cast<std::size_t>(4 * four)] < -1e29F) {
        const Span some = {span.begin, std::min(span.end, span.begin / 16 * 16 + 16)};
        raise_reference(fours, four, largest_scores(fours, four, keys, some));
    }
    const bool whole = span.begin == 0 && span.end == fours.at_once;
    if (!whole      ? find_weights<true, 0>(fours, four, keys, span)
        : four == 0 ? find_weights<false, first_level>(fours, four, keys, span)
        : four == 1 ? find_weights<false, next_level>(fours, four, keys, span)
                    : find_weights<false, 0>(fours, four, keys, span))
        return;
    raise_reference(fours, four, largest_scores(fours, four, keys, span));
    find_weights<true, 0>(fours, four, keys, span);
}

void piece_bf16(const float* q, std::int64_t rows, const Bf16* keys, const Bf16* values, std::int64_t first,
                std::int64_t count, const HeadWidths& widths, const AttentionState& state) {
    const std::int64_t head_dim = widths.key;
    static thread_local Fours fours;
    take_queries(fours, q, rows, head_dim, state);
    const std::int64_t tile = positions_of_tile(head_dim);
    const std::int64_t last = first + count;
    for (std::int64_t begin = first / fours.at_once * fours.at_once; begin < last; begin += fours.at_once) {
        const Span span = {std::max<std::int64_t>(0, first - begin), std::min(fours.at_once, last - begin)};
        for (std::int64_t four = 0; four < fours.count; ++four) weigh_tile(fours, four, keys + begin * head_dim, span);
        // In eights of positions: those of the tile where it begins, and those of the next.
        const std::int64_t skipped = span.begin / 8;
        const std::int64_t in_tile = skipped % (tile / 8);
        const std::int64_t all = (span.end + 7) / 8 - skipped;
        const std::int64_t fit = std::min(all, tile / 8 - in_tile);
        const std::int64_t jump = 2 * tile * (head_dim - 16);
        const Bf16* value = values + (begin + span.begin / tile * tile) * head_dim + in_tile * 128;
        for (std::int64_t column = 0; column < head_dim; column += 16) {
            const auto add = [&](std::int64_t four, auto add_some) {
                add_some(fours.weight(four) + skipped * 32, value + column * tile, fit, all - fit, jump,
                         fours.sum(four) + column * 4);
            };
            add(0, add_values<first_level>);
            if (fours.count > 1) add(1, add_values<next_level>);
            for (std::int64_t four = 2; four < fours.count; ++four) add(four, add_values<0>);
        }
    }
    give_back(fours, rows, state);
}

}  // namespace
}  // namespace roofline::bench::neon_attention_lanes
#pragma GCC pop_options

namespace roofline::bench {
const AttentionKernels* neon_attention() {
    static constexpr AttentionKernels kernels = {"NEON with bf16", neon_attention_lanes::piece_bf16,
                                                 neon_attention_lanes::attention_piece<Bf16>,
                                                 neon_attention_lanes::attention_piece<float>, KvLayout::tiles};
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
