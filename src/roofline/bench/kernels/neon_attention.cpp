// Attention for AArch64 with the bf16 instructions: scores and weighted values both as products of small matrices
// (BFMMLA: 2 x 4 by 4 x 2), two, four or eight queries at a time, over a cache in tiles (attention.hpp), so that what
// is loaded can be multiplied as it is. A cache in fp32 goes the way it goes anywhere (attention_lanes.inc).
//
// On a Neoverse-V1 a core reads up to 17 bytes a cycle: 30 cycles for a position of 128 + 128 elements. On data in its
// caches, keys take 13 cycles of four queries (21 of eight), values 12, weights 6. The loops are written out
// because their order counts: 16 products must be under way at once, and a compiler's own order took half as long
// again. What comes 12 KiB on, 16 for a pair of queries, is asked for into the third-level cache; asking for it into
// those nearer by made things slower. Weights are rounded to bf16 before they meet the values, as attention on other
// devices does it.
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
///   queries  [head_dim / 4][pair][2 queries x 4]
///   scores   [query][block], as powers of two: queries are scaled by log2 e
///   weights  [block / 4][pair][2 queries x 4 positions]
///   sums     [head_dim / 2][pair][2 queries x 2 columns]
struct Fours {
    std::int64_t count;
    std::int64_t head_dim;
    std::vector<Bf16> queries;
    std::vector<float> sums;
    std::vector<float> scores;
    std::vector<Bf16> weights;
    std::vector<float> largest;
    std::vector<float> totals;

    Bf16* query(std::int64_t four) { return queries.data() + four * 4 * head_dim; }
    float* sum(std::int64_t four) { return sums.data() + four * 4 * head_dim; }
    float* score(std::int64_t four) { return scores.data() + four * 4 * block; }
    Bf16* weight(std::int64_t four) { return weights.data() + four * 4 * block; }
};

/// Eight keys against four queries; their scores go to `line` and the next three lines.
inline void score_eight(const Bf16* queries, const Bf16* keys, std::int64_t head_dim, float* line) {
    std::int64_t steps = head_dim / 8;
    static_assert(block == 64, "lines are 256 bytes apart below");
    // v0 to v7 and v8 to v15, even and odd fours of dimensions: pair of keys x pair of queries, each of them k0 q0, k0
    // q1, k1 q0, k1 q1. At the end keys of a query are brought together.
    asm volatile(
        "movi v0.4s, #0\n movi v1.4s, #0\n movi v2.4s, #0\n movi v3.4s, #0\n"
        "movi v4.4s, #0\n movi v5.4s, #0\n movi v6.4s, #0\n movi v7.4s, #0\n"
        "movi v8.4s, #0\n movi v9.4s, #0\n movi v10.4s, #0\n movi v11.4s, #0\n"
        "movi v12.4s, #0\n movi v13.4s, #0\n movi v14.4s, #0\n movi v15.4s, #0\n"
        "1:\n"
        "ldp q24, q25, [%[queries]]\n ldp q16, q17, [%[keys]]\n"
        "ldp q26, q27, [%[queries], #32]\n add %[queries], %[queries], #64\n"
        "bfmmla v0.4s, v16.8h, v24.8h\n bfmmla v1.4s, v16.8h, v25.8h\n ldp q18, q19, [%[keys], #32]\n"
        "bfmmla v8.4s, v17.8h, v26.8h\n bfmmla v9.4s, v17.8h, v27.8h\n ldp q20, q21, [%[keys], #64]\n"
        "bfmmla v2.4s, v18.8h, v24.8h\n bfmmla v3.4s, v18.8h, v25.8h\n ldp q22, q23, [%[keys], #96]\n"
        "bfmmla v10.4s, v19.8h, v26.8h\n bfmmla v11.4s, v19.8h, v27.8h\n add %[keys], %[keys], #128\n"
        "prfm pldl3keep, [%[keys], #12288]\n prfm pldl3keep, [%[keys], #12352]\n bfmmla v4.4s, v20.8h, v24.8h\n bfmmla "
        "v5.4s, v20.8h, v25.8h\n"
        "bfmmla v12.4s, v21.8h, v26.8h\n bfmmla v13.4s, v21.8h, v27.8h\n"
        "bfmmla v6.4s, v22.8h, v24.8h\n bfmmla v7.4s, v22.8h, v25.8h\n"
        "bfmmla v14.4s, v23.8h, v26.8h\n bfmmla v15.4s, v23.8h, v27.8h\n"
        "subs %[steps], %[steps], #1\n b.ne 1b\n"
        "fadd v0.4s, v0.4s, v8.4s\n fadd v1.4s, v1.4s, v9.4s\n fadd v2.4s, v2.4s, v10.4s\n"
        "fadd v3.4s, v3.4s, v11.4s\n fadd v4.4s, v4.4s, v12.4s\n fadd v5.4s, v5.4s, v13.4s\n"
        "fadd v6.4s, v6.4s, v14.4s\n fadd v7.4s, v7.4s, v15.4s\n"
        "uzp1 v16.4s, v0.4s, v2.4s\n uzp1 v17.4s, v4.4s, v6.4s\n stp q16, q17, [%[line]]\n"
        "uzp2 v18.4s, v0.4s, v2.4s\n uzp2 v19.4s, v4.4s, v6.4s\n stp q18, q19, [%[line], #256]\n"
        "uzp1 v20.4s, v1.4s, v3.4s\n uzp1 v21.4s, v5.4s, v7.4s\n stp q20, q21, [%[line], #512]\n"
        "uzp2 v22.4s, v1.4s, v3.4s\n uzp2 v23.4s, v5.4s, v7.4s\n stp q22, q23, [%[line], #768]\n"
        : [queries] "+r"(queries), [keys] "+r"(keys), [steps] "+r"(steps)
        : [line] "r"(line)
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
          "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "cc", "memory");
}

/// Eight keys against one pair of queries. Four products of each pair of keys are under way, one for every four
/// dimensions of 16.
inline void score_eight_by_two(const Bf16* queries, const Bf16* keys, std::int64_t head_dim, float* line) {
    std::int64_t steps = head_dim / 16;
#define KEYS(at, one, two, even, odd, query, next)                                                  \
    "ldp q" #even ", q" #odd ", [%[keys], #" #at "]\n bfmmla v" #one ".4s, v" #even ".8h, v" #query \
    ".8h\n bfmmla v" #two ".4s, v" #odd ".8h, v" #next ".8h\n"
    asm volatile(
        "movi v0.4s, #0\n movi v1.4s, #0\n movi v2.4s, #0\n movi v3.4s, #0\n"
        "movi v4.4s, #0\n movi v5.4s, #0\n movi v6.4s, #0\n movi v7.4s, #0\n"
        "movi v8.4s, #0\n movi v9.4s, #0\n movi v10.4s, #0\n movi v11.4s, #0\n"
        "movi v12.4s, #0\n movi v13.4s, #0\n movi v14.4s, #0\n movi v15.4s, #0\n"
        "1:\n"
        "ldr q24, [%[queries]]\n ldr q25, [%[queries], #32]\n"
        "ldr q26, [%[queries], #64]\n ldr q27, [%[queries], #96]\n add %[queries], %[queries], #128\n"
        KEYS(0, 0, 4, 16, 17, 24, 25) KEYS(32, 1, 5, 18, 19, 24, 25)
        KEYS(64, 2, 6, 20, 21, 24, 25) KEYS(96, 3, 7, 22, 23, 24, 25)
        "prfm pldl3keep, [%[keys], #16384]\n prfm pldl3keep, [%[keys], #16448]\n"
        KEYS(128, 8, 12, 16, 17, 26, 27) KEYS(160, 9, 13, 18, 19, 26, 27)
        KEYS(192, 10, 14, 20, 21, 26, 27) KEYS(224, 11, 15, 22, 23, 26, 27)
        "prfm pldl3keep, [%[keys], #16512]\n prfm pldl3keep, [%[keys], #16576]\n"
        "add %[keys], %[keys], #256\n subs %[steps], %[steps], #1\n b.ne 1b\n"
        "fadd v0.4s, v0.4s, v4.4s\n fadd v1.4s, v1.4s, v5.4s\n fadd v2.4s, v2.4s, v6.4s\n fadd v3.4s, v3.4s, v7.4s\n"
        "fadd v8.4s, v8.4s, v12.4s\n fadd v9.4s, v9.4s, v13.4s\n"
        "fadd v10.4s, v10.4s, v14.4s\n fadd v11.4s, v11.4s, v15.4s\n"
        "fadd v0.4s, v0.4s, v8.4s\n fadd v1.4s, v1.4s, v9.4s\n fadd v2.4s, v2.4s, v10.4s\n fadd v3.4s, v3.4s, v11.4s\n"
        "uzp1 v16.4s, v0.4s, v1.4s\n uzp1 v17.4s, v2.4s, v3.4s\n stp q16, q17, [%[line]]\n"
        "uzp2 v18.4s, v0.4s, v1.4s\n uzp2 v19.4s, v2.4s, v3.4s\n stp q18, q19, [%[line], #256]\n"
        : [queries] "+r"(queries), [keys] "+r"(keys), [steps] "+r"(steps)
        : [line] "r"(line)
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
          "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "cc", "memory");
#undef KEYS
}

/// Eight keys against eight queries: two fours share every load of a key, and each key is multiplied as soon as it is
/// loaded. Half the loads of two score_eight, and 3.8 products a cycle instead of 2.1.
inline void score_eight_by_eight(const Bf16* queries, const Bf16* more, const Bf16* keys, std::int64_t head_dim,
                                 float* line) {
    std::int64_t steps = head_dim / 8;
    float* more_lines = line + 4 * block;
    // v0 to v15: pair of keys x pair of queries, as above.
#define KEYS(at, one, two, three, four)                                                  \
    "ldr q20, [%[keys], #" #at "]\n bfmmla v" #one ".4s, v20.8h, v24.8h\n bfmmla v" #two \
    ".4s, v20.8h, v25.8h\n"                                                              \
    "bfmmla v" #three ".4s, v20.8h, v26.8h\n bfmmla v" #four ".4s, v20.8h, v27.8h\n"
    asm volatile(
        "movi v0.4s, #0\n movi v1.4s, #0\n movi v2.4s, #0\n movi v3.4s, #0\n"
        "movi v4.4s, #0\n movi v5.4s, #0\n movi v6.4s, #0\n movi v7.4s, #0\n"
        "movi v8.4s, #0\n movi v9.4s, #0\n movi v10.4s, #0\n movi v11.4s, #0\n"
        "movi v12.4s, #0\n movi v13.4s, #0\n movi v14.4s, #0\n movi v15.4s, #0\n"
        "1:\n"
        "ldp q24, q25, [%[queries]]\n ldp q26, q27, [%[more]]\n"                                    //
        KEYS(0, 0, 1, 2, 3) KEYS(32, 4, 5, 6, 7) KEYS(64, 8, 9, 10, 11) KEYS(96, 12, 13, 14, 15)    //
        "ldp q24, q25, [%[queries], #32]\n ldp q26, q27, [%[more], #32]\n"                          //
        KEYS(16, 0, 1, 2, 3) KEYS(48, 4, 5, 6, 7) KEYS(80, 8, 9, 10, 11) KEYS(112, 12, 13, 14, 15)  //
        "add %[queries], %[queries], #64\n add %[more], %[more], #64\n add %[keys], %[keys], #128\n"
        "prfm pldl3keep, [%[keys], #12288]\n prfm pldl3keep, [%[keys], #12352]\n"
        "subs %[steps], %[steps], #1\n b.ne 1b\n"
        "uzp1 v16.4s, v0.4s, v4.4s\n uzp1 v17.4s, v8.4s, v12.4s\n stp q16, q17, [%[line]]\n"
        "uzp2 v18.4s, v0.4s, v4.4s\n uzp2 v19.4s, v8.4s, v12.4s\n stp q18, q19, [%[line], #256]\n"
        "uzp1 v20.4s, v1.4s, v5.4s\n uzp1 v21.4s, v9.4s, v13.4s\n stp q20, q21, [%[line], #512]\n"
        "uzp2 v22.4s, v1.4s, v5.4s\n uzp2 v23.4s, v9.4s, v13.4s\n stp q22, q23, [%[line], #768]\n"
        "uzp1 v16.4s, v2.4s, v6.4s\n uzp1 v17.4s, v10.4s, v14.4s\n stp q16, q17, [%[lines]]\n"
        "uzp2 v18.4s, v2.4s, v6.4s\n uzp2 v19.4s, v10.4s, v14.4s\n stp q18, q19, [%[lines], #256]\n"
        "uzp1 v20.4s, v3.4s, v7.4s\n uzp1 v21.4s, v11.4s, v15.4s\n stp q20, q21, [%[lines], #512]\n"
        "uzp2 v22.4s, v3.4s, v7.4s\n uzp2 v23.4s, v11.4s, v15.4s\n stp q22, q23, [%[lines], #768]\n"
        : [queries] "+r"(queries), [more] "+r"(more), [keys] "+r"(keys), [steps] "+r"(steps)
        : [line] "r"(line), [lines] "r"(more_lines)
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
          "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "cc", "memory");
#undef KEYS
}

/// Adding 1.5 x 2^23 rounds to a whole number, whose lowest bits are then those of the sum: no conversion, of which a
/// core makes one a cycle.
constexpr float shift = 12582912.0F;
inline __attribute__((always_inline)) float32x4_t times_power(float32x4_t factor, float32x4_t whole) {
    const int32x4_t exponent = vshlq_n_s32(vreinterpretq_s32_f32(whole), 23);
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(factor), exponent));
}

/// 2^x for x <= 0 by a cubic, within 2^-12.
inline float32x4_t power(float32x4_t x) {
    const float32x4_t least = vmaxq_f32(x, vdupq_n_f32(-126.0F));
    const float32x4_t whole = vaddq_f32(least, vdupq_n_f32(shift));
    const float32x4_t rest = vsubq_f32(least, vsubq_f32(whole, vdupq_n_f32(shift)));
    float32x4_t cubic = vfmaq_f32(vdupq_n_f32(0.24022652F), rest, vdupq_n_f32(0.0558016F));
    cubic = vfmaq_f32(vdupq_n_f32(0.69314718F), rest, cubic);
    return times_power(vfmaq_f32(vdupq_n_f32(1.0F), rest, cubic), whole);
}

/// From scores to weights: what is in the sums so far shrinks when a larger score turns up. Two or four queries side by
/// side. Of a lone pair the other two lanes are not looked at.
///
/// Every instruction counts, 4 x 11 for four positions of four queries. Scores are taken relative to a whole number at
/// or above the largest, so that rounding and subtracting are one step. Weights are 2^x by a square, (r + a)^2 + b:
/// within 1.7 in a thousand but for a factor of 4.1 that all of them and their totals have in common; as bf16 they have
/// 2^-9 to 2^-8. Their totals are those of the rounded ones.
template <std::int64_t tile, int queries>
inline void weigh_scores(Fours& fours, std::int64_t four, std::int64_t skipped, std::int64_t here) {
    float* lines = fours.score(four);
    if (skipped > 0 || here < tile) {
        for (int query = 0; query < queries; ++query) {
            float* line = lines + query * block;
            for (std::int64_t i = 0; i < skipped; ++i) line[i] = -1e30F;
            for (std::int64_t i = here; i < tile; ++i) line[i] = -1e30F;
        }
    }
    float32x4_t most[4];
    for (int query = 0; query < queries; ++query) most[query] = vld1q_f32(lines + query * block);
    for (std::int64_t i = 4; i < tile; i += 4) {
        for (int query = 0; query < queries; ++query)
            most[query] = vmaxq_f32(most[query], vld1q_f32(lines + query * block + i));
    }
    for (int query = queries; query < 4; ++query) most[query] = most[0];
    float* largest = fours.largest.data() + 4 * four;
    const float32x4_t before = vld1q_f32(largest);
    const float32x4_t here_most = vpmaxq_f32(vpmaxq_f32(most[0], most[1]), vpmaxq_f32(most[2], most[3]));
    const float32x4_t now = vmaxq_f32(before, vrndpq_f32(here_most));
    const float32x4_t shrink = power(vsubq_f32(before, now));
    vst1q_f32(largest, now);
    const auto each = [](float32x4_t all, float32x4_t(&to)[4]) {
        to[0] = vdupq_laneq_f32(all, 0);
        to[1] = vdupq_laneq_f32(all, 1);
        to[2] = vdupq_laneq_f32(all, 2);
        to[3] = vdupq_laneq_f32(all, 3);
    };
    float32x4_t shifts[4];
    float32x4_t least[4];
    each(vsubq_f32(vdupq_n_f32(shift), now), shifts);
    each(vsubq_f32(now, vdupq_n_f32(126.0F)), least);
    Bf16* weights = fours.weight(four);
    float32x4_t totals[2] = {vdupq_n_f32(0.0F), vdupq_n_f32(0.0F)};
    uint16x8_t one = vdupq_n_u16(0x3F80);
    asm("" : "+w"(one));  // GCC 12 makes the constant 1.0 of bf16 with an instruction for fp16
    for (std::int64_t i = 0; i < tile; i += 4) {
        float32x4_t powers[4];
        for (int query = 0; query < queries; ++query) {
            const float32x4_t x = vmaxq_f32(vld1q_f32(lines + query * block + i), least[query]);
            const float32x4_t whole = vaddq_f32(x, shifts[query]);
            const float32x4_t rest = vsubq_f32(x, vsubq_f32(whole, shifts[query]));
            const float32x4_t root = vaddq_f32(rest, vdupq_n_f32(1.47517326F));
            powers[query] = times_power(vfmaq_f32(vdupq_n_f32(2.019844F), root, root), whole);
        }
        for (int pair = 0; 2 * pair < queries; ++pair) {
            const bfloat16x8_t both = vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(powers[2 * pair]), powers[2 * pair + 1]);
            totals[pair] = vbfdotq_f32(totals[pair], both, vreinterpretq_bf16_u16(one));
            vst1q_u16(weights + 4 * i + 8 * pair, vreinterpretq_u16_bf16(both));
        }
    }
    float* total = fours.totals.data() + 4 * four;
    const float32x4_t found = vpaddq_f32(totals[0], totals[1]);
    vst1q_f32(total, vfmaq_f32(found, vld1q_f32(total), shrink));
    if (vmaxvq_u32(vcgtq_f32(now, before)) == 0) return;
    const float32x4_t factors[2] = {vzip1q_f32(shrink, shrink), vzip2q_f32(shrink, shrink)};
    float* sums = fours.sum(four);
    for (std::int64_t i = 0; i < 4 * fours.head_dim; i += 8) {
        for (int pair = 0; pair < 2; ++pair)
            vst1q_f32(sums + i + 4 * pair, vmulq_f32(vld1q_f32(sums + i + 4 * pair), factors[pair]));
    }
}

/// Adds 16 columns of the values of `tiles` x 4 positions, weighted, to the sums of four queries; then of `more`, which
/// lie `jump` bytes behind.
inline void add_values(const Bf16* weights, const Bf16* values, std::int64_t tiles, std::int64_t more,
                       std::int64_t jump, float* sums) {
    asm volatile(
        "ldp q0, q1, [%[sums]]\n ldp q2, q3, [%[sums], #32]\n ldp q4, q5, [%[sums], #64]\n"
        "ldp q6, q7, [%[sums], #96]\n ldp q8, q9, [%[sums], #128]\n ldp q10, q11, [%[sums], #160]\n"
        "ldp q12, q13, [%[sums], #192]\n ldp q14, q15, [%[sums], #224]\n"
        "1:\n"
        "ldp q24, q25, [%[weights]], #32\n ldp q16, q17, [%[values]]\n"
        "ldp q18, q19, [%[values], #32]\n"
        "bfmmla v0.4s, v24.8h, v16.8h\n bfmmla v1.4s, v25.8h, v16.8h\n ldp q20, q21, [%[values], #64]\n"
        "bfmmla v2.4s, v24.8h, v17.8h\n bfmmla v3.4s, v25.8h, v17.8h\n ldp q22, q23, [%[values], #96]\n"
        "bfmmla v4.4s, v24.8h, v18.8h\n bfmmla v5.4s, v25.8h, v18.8h\n add %[values], %[values], #128\n"
        "prfm pldl3keep, [%[values], #12288]\n prfm pldl3keep, [%[values], #12352]\n bfmmla v6.4s, v24.8h, v19.8h\n "
        "bfmmla v7.4s, v25.8h, v19.8h\n"
        "bfmmla v8.4s, v24.8h, v20.8h\n bfmmla v9.4s, v25.8h, v20.8h\n"
        "bfmmla v10.4s, v24.8h, v21.8h\n bfmmla v11.4s, v25.8h, v21.8h\n"
        "bfmmla v12.4s, v24.8h, v22.8h\n bfmmla v13.4s, v25.8h, v22.8h\n"
        "bfmmla v14.4s, v24.8h, v23.8h\n bfmmla v15.4s, v25.8h, v23.8h\n"
        "subs %[tiles], %[tiles], #1\n b.ne 1b\n"
        "cbz %[more], 2f\n mov %[tiles], %[more]\n mov %[more], #0\n add %[values], %[values], %[jump]\n b 1b\n 2:\n"
        "stp q0, q1, [%[sums]]\n stp q2, q3, [%[sums], #32]\n stp q4, q5, [%[sums], #64]\n"
        "stp q6, q7, [%[sums], #96]\n stp q8, q9, [%[sums], #128]\n stp q10, q11, [%[sums], #160]\n"
        "stp q12, q13, [%[sums], #192]\n stp q14, q15, [%[sums], #224]\n"
        : [weights] "+r"(weights), [values] "+r"(values), [tiles] "+r"(tiles), [more] "+r"(more)
        : [sums] "r"(sums), [jump] "r"(jump)
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
          "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "cc", "memory");
}

/// The same for one pair of queries; even and odd tiles apart, so that as many products are under way.
inline void add_values_of_two(const Bf16* weights, const Bf16* values, std::int64_t tiles, float* sums) {
#define VALUES(at, one, two, left, right, weight)                                                        \
    "ldp q" #left ", q" #right ", [%[values], #" #at "]\n bfmmla v" #one ".4s, v" #weight ".8h, v" #left \
    ".8h\n bfmmla v" #two ".4s, v" #weight ".8h, v" #right ".8h\n"
    // clang-format off
#define EVEN_TILE                                                                                              \
    VALUES(0, 0, 1, 16, 17, 24) VALUES(32, 2, 3, 18, 19, 24)                                                   \
    VALUES(64, 4, 5, 20, 21, 24) VALUES(96, 6, 7, 22, 23, 24)                                                  \
    "prfm pldl3keep, [%[values], #16384]\n prfm pldl3keep, [%[values], #16448]\n"
    // clang-format on
    asm volatile(
        "ldr q0, [%[sums]]\n ldr q1, [%[sums], #32]\n ldr q2, [%[sums], #64]\n ldr q3, [%[sums], #96]\n"
        "ldr q4, [%[sums], #128]\n ldr q5, [%[sums], #160]\n ldr q6, [%[sums], #192]\n ldr q7, [%[sums], #224]\n"
        "movi v8.4s, #0\n movi v9.4s, #0\n movi v10.4s, #0\n movi v11.4s, #0\n"
        "movi v12.4s, #0\n movi v13.4s, #0\n movi v14.4s, #0\n movi v15.4s, #0\n"
        "subs %[tiles], %[tiles], #2\n b.lt 2f\n"
        "1:\n"
        "ldr q24, [%[weights]]\n ldr q25, [%[weights], #32]\n add %[weights], %[weights], #64\n" EVEN_TILE
        VALUES(128, 8, 9, 16, 17, 25) VALUES(160, 10, 11, 18, 19, 25)
        VALUES(192, 12, 13, 20, 21, 25) VALUES(224, 14, 15, 22, 23, 25)
        "prfm pldl3keep, [%[values], #16512]\n prfm pldl3keep, [%[values], #16576]\n"
        "add %[values], %[values], #256\n subs %[tiles], %[tiles], #2\n b.ge 1b\n"
        "2:\n tbz %[tiles], #0, 3f\n ldr q24, [%[weights]]\n" EVEN_TILE
        "3:\n"
        "fadd v0.4s, v0.4s, v8.4s\n fadd v1.4s, v1.4s, v9.4s\n fadd v2.4s, v2.4s, v10.4s\n fadd v3.4s, v3.4s, v11.4s\n"
        "fadd v4.4s, v4.4s, v12.4s\n fadd v5.4s, v5.4s, v13.4s\n"
        "fadd v6.4s, v6.4s, v14.4s\n fadd v7.4s, v7.4s, v15.4s\n"
        "str q0, [%[sums]]\n str q1, [%[sums], #32]\n str q2, [%[sums], #64]\n str q3, [%[sums], #96]\n"
        "str q4, [%[sums], #128]\n str q5, [%[sums], #160]\n str q6, [%[sums], #192]\n str q7, [%[sums], #224]\n"
        : [weights] "+r"(weights), [values] "+r"(values), [tiles] "+r"(tiles)
        : [sums] "r"(sums)
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
          "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "cc", "memory");
#undef EVEN_TILE
#undef VALUES
}

constexpr float log2_of_e = 1.44269504F;

void take_queries(Fours& fours, const float* q, std::int64_t rows, std::int64_t head_dim, const AttentionState& state) {
    const auto size = [](std::int64_t count) { return static_cast<std::size_t>(count); };
    fours.count = (rows + 3) / 4;
    fours.head_dim = head_dim;
    fours.queries.assign(size(fours.count * 4 * head_dim), 0);
    fours.sums.assign(size(fours.count * 4 * head_dim), 0.0F);
    fours.scores.resize(size(fours.count * 4 * block));
    fours.weights.resize(size(fours.count * 4 * block));
    fours.largest.assign(size(fours.count * 4), 0.0F);
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
            const float32x4_t values = vld1q_f32(before + i);
            vst1_f32(sums + i * 4, vget_low_f32(values));
            vst1_f32(sums + i * 4 + 8, vget_high_f32(values));
        }
        fours.largest[size(row)] = std::nearbyint(state.largest[row] * log2_of_e);  // a whole number was given back
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
        state.largest[row] = fours.largest[static_cast<std::size_t>(row)] / log2_of_e;
        state.sum[row] = fours.totals[static_cast<std::size_t>(row)];
    }
}

/// Up to four queries work on 32 positions at a time, over short tiles: half as much of keys and of values, in turn, is
/// what they read fastest (a pair 36 GB/s instead of 32 with heads of 128). More, those of a prompt too, do better with
/// 64 and so with less to begin and to end, in a tile or in two short ones.
template <std::int64_t tile>
void piece_bf16(const float* q, std::int64_t rows, const Bf16* keys, const Bf16* values, std::int64_t first,
                std::int64_t count, std::int64_t head_dim, const AttentionState& state) {
    static thread_local Fours fours;
    take_queries(fours, q, rows, head_dim, state);
    const bool few = tile == short_tile_positions && rows <= 4;
    const bool two = few && rows <= 2;
    const std::int64_t at_once = few ? tile : block;
    const std::int64_t last = first + count;
    for (std::int64_t begin = first / at_once * at_once; begin < last; begin += at_once) {
        const std::int64_t skipped = std::max<std::int64_t>(0, first - begin);
        const std::int64_t here = std::min(at_once, last - begin);
        const Bf16* key = keys + begin * head_dim;
        for (std::int64_t at = skipped / 8 * 8; at < here; at += 8) {
            const Bf16* eight = key + at * head_dim;
            if (two) {
                score_eight_by_two(fours.query(0), eight, head_dim, fours.score(0) + at);
                continue;
            }
            std::int64_t four = 0;
            for (; four + 2 <= fours.count; four += 2)
                score_eight_by_eight(fours.query(four), fours.query(four + 1), eight, head_dim, fours.score(four) + at);
            if (four < fours.count) score_eight(fours.query(four), eight, head_dim, fours.score(four) + at);
        }
        if (two)
            weigh_scores<tile, 2>(fours, 0, skipped, here);
        else if (few)
            weigh_scores<tile, 4>(fours, 0, skipped, here);
        for (std::int64_t four = 0; four < fours.count && !few; ++four)
            weigh_scores<block, 4>(fours, four, skipped, here);
        // In fours of positions: those of the tile where it begins, and those of the next.
        const std::int64_t in_tile = skipped % tile / 4;
        const std::int64_t all = (here + 3) / 4 - skipped / 4;
        const std::int64_t fit = std::min(all, tile / 4 - in_tile);
        const Bf16* value = values + (begin + skipped / tile * tile) * head_dim;
        const std::int64_t jump = 2 * (tile * head_dim - tile * 16);
        for (std::int64_t column = 0; column < head_dim; column += 16) {
            const Bf16* strip = value + column * tile + in_tile * 64;
            if (two) add_values_of_two(fours.weight(0) + in_tile * 16, strip, all, fours.sum(0) + column * 4);
            for (std::int64_t four = 0; four < fours.count && !two; ++four)
                add_values(fours.weight(four) + skipped / 4 * 16, strip, fit, all - fit, jump,
                           fours.sum(four) + column * 4);
        }
    }
    give_back(fours, rows, state);
}

}  // namespace
}  // namespace roofline::bench::neon_attention_lanes
#pragma GCC pop_options

namespace roofline::bench {
const AttentionKernels* neon_attention() {
    static constexpr AttentionKernels kernels = {"NEON with bf16", neon_attention_lanes::piece_bf16<tile_positions>,
                                                 neon_attention_lanes::attention_piece<float>, KvLayout::tiles,
                                                 neon_attention_lanes::piece_bf16<short_tile_positions>};
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
