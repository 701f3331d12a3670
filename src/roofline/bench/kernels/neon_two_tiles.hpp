// Two tiles of four rows of W (products.hpp) by a panel of eight rows of x, for AArch64 with the bf16 and i8mm
// instructions: what products of many rows are made of.
#pragma once

#if defined(__aarch64__) && defined(__linux__)
#include <arm_neon.h>
#include <cstdint>

#include "roofline/bench/kernels/products.hpp"

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16+i8mm+dotprod,tune=neoverse-v1")
namespace roofline::bench::neon {

struct Bf16Dots {
    using Sum = float32x4_t;
    static Sum zero() { return vdupq_n_f32(0.0F); }
    static Sum dot(Sum sum, uint64x2_t w, uint64x2_t x) {
        return vbfdotq_f32(sum, vreinterpretq_bf16_u64(w), vreinterpretq_bf16_u64(x));
    }
    static Sum multiply(Sum sum, uint64x2_t w, uint64x2_t x) {
        return vbfmmlaq_f32(sum, vreinterpretq_bf16_u64(w), vreinterpretq_bf16_u64(x));
    }
    static Sum add_pairs(Sum one, Sum two) { return vpaddq_f32(one, two); }
    static Sum add(Sum one, Sum two) { return vaddq_f32(one, two); }
    static float32x4_t floats(Sum sum) { return sum; }

    static std::int64_t row_bytes(const ProductCall& call) { return call.k * 2; }
    static float scale(const ProductCall&, std::int64_t, std::int64_t) { return 1.0F; }
};

struct Int8Dots {
    using Sum = int32x4_t;
    static Sum zero() { return vdupq_n_s32(0); }
    static Sum dot(Sum sum, uint64x2_t w, uint64x2_t x) {
        return vdotq_s32(sum, vreinterpretq_s8_u64(w), vreinterpretq_s8_u64(x));
    }
    static Sum multiply(Sum sum, uint64x2_t w, uint64x2_t x) {
        return vmmlaq_s32(sum, vreinterpretq_s8_u64(w), vreinterpretq_s8_u64(x));
    }
    static Sum add_pairs(Sum one, Sum two) { return vpaddq_s32(one, two); }
    static Sum add(Sum one, Sum two) { return vaddq_s32(one, two); }
    static float32x4_t floats(Sum sum) { return vcvtq_f32_s32(sum); }

    static std::int64_t row_bytes(const ProductCall& call) { return call.k; }
    static float scale(const ProductCall& call, std::int64_t row, std::int64_t column) {
        return call.weights.row_scales[row] * call.x_scales[column];
    }
};

inline uint64x2_t load(const char* from) {
    return vreinterpretq_u64_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(from)));
}

/// Where W comes from.
enum class Out : std::uint8_t { of_memory, of_caches };

// Two tiles by a panel: v0 to v15 are [pair of rows][pair of columns]. A sum can be added to three cycles after it was
// last, or five and more, but not four: in this order of pairs it is three and five in turn, and four products can
// start in a cycle. v24 to v27 are the first eights of the panel's pairs, v28 to v31 the second.
// clang-format off: a line is a pair
#define PAIR(NAME, TYPE, a, b, c, d, w, one, two, three, four)                                              \
    NAME " v" #a ".4s, v" #w TYPE ", v" #one TYPE "\n " NAME " v" #b ".4s, v" #w TYPE ", v" #two TYPE "\n"  \
    NAME " v" #c ".4s, v" #w TYPE ", v" #three TYPE "\n " NAME " v" #d ".4s, v" #w TYPE ", v" #four TYPE "\n"
#define FIRST(NAME, TYPE, a, b, c, d, w) PAIR(NAME, TYPE, a, b, c, d, w, 24, 25, 26, 27)
#define SECOND(NAME, TYPE, a, b, c, d, w) PAIR(NAME, TYPE, a, b, c, d, w, 28, 29, 30, 31)
#define ASK(tile) "prfm pldl3keep, [%[" #tile "], #8192]\n"
#define NOTHING(tile)
#define LOAD(w, tile, at) "ldr q" #w ", [%[" #tile "], #" #at "]\n"
#define MULTIPLY(NAME, TYPE, AHEAD)                                                                              \
    asm volatile(                                                                                           \
        "movi v0.4s, #0\n movi v1.4s, #0\n movi v2.4s, #0\n movi v3.4s, #0\n"                               \
        "movi v4.4s, #0\n movi v5.4s, #0\n movi v6.4s, #0\n movi v7.4s, #0\n"                               \
        "movi v8.4s, #0\n movi v9.4s, #0\n movi v10.4s, #0\n movi v11.4s, #0\n"                             \
        "movi v12.4s, #0\n movi v13.4s, #0\n movi v14.4s, #0\n movi v15.4s, #0\n"                           \
        "1:\n ldr q24, [%[x]]\n ldr q25, [%[x], #32]\n ldr q26, [%[x], #64]\n ldr q27, [%[x], #96]\n"       \
        LOAD(16, one, 0) FIRST(NAME, TYPE, 0, 1, 2, 3, 16)                                                  \
        "ldr q28, [%[x], #16]\n ldr q29, [%[x], #48]\n" AHEAD(one)                                         \
        LOAD(17, one, 32) FIRST(NAME, TYPE, 4, 5, 6, 7, 17)                                                 \
        "ldr q30, [%[x], #80]\n ldr q31, [%[x], #112]\n add %[x], %[x], #128\n"                             \
        LOAD(18, two, 32) FIRST(NAME, TYPE, 12, 13, 14, 15, 18)                                             \
        AHEAD(two)                                                                                          \
        LOAD(19, one, 16) SECOND(NAME, TYPE, 0, 1, 2, 3, 19)                                                \
        LOAD(20, two, 0) FIRST(NAME, TYPE, 8, 9, 10, 11, 20)                                                \
        LOAD(21, two, 48) SECOND(NAME, TYPE, 12, 13, 14, 15, 21)                                            \
        LOAD(22, one, 48) SECOND(NAME, TYPE, 4, 5, 6, 7, 22)                                                \
        LOAD(23, two, 16) SECOND(NAME, TYPE, 8, 9, 10, 11, 23)                                              \
        "add %[one], %[one], #64\n add %[two], %[two], #64\n subs %[steps], %[steps], #1\n b.ne 1b\n"       \
        "stp q0, q1, [%[sums]]\n stp q2, q3, [%[sums], #32]\n stp q4, q5, [%[sums], #64]\n"                 \
        "stp q6, q7, [%[sums], #96]\n stp q8, q9, [%[sums], #128]\n stp q10, q11, [%[sums], #160]\n"        \
        "stp q12, q13, [%[sums], #192]\n stp q14, q15, [%[sums], #224]\n"                                   \
        : [one] "+r"(one), [two] "+r"(two), [x] "+r"(x), [steps] "+r"(steps)                                \
        : [sums] "r"(sums)                                                                                  \
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",    \
          "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", \
          "v29", "v30", "v31", "cc", "memory")
// clang-format on
inline void multiply(Bf16Dots, Out of, const char* one, const char* two, const char* x, std::int64_t steps,
                     Bf16Dots::Sum (&sums)[4][4]) {
    if (of == Out::of_memory)
        MULTIPLY("bfmmla", ".8h", ASK);
    else
        MULTIPLY("bfmmla", ".8h", NOTHING);
}
inline void multiply(Int8Dots, Out of, const char* one, const char* two, const char* x, std::int64_t steps,
                     Int8Dots::Sum (&sums)[4][4]) {
    if (of == Out::of_memory)
        MULTIPLY("smmla", ".16b", ASK);
    else
        MULTIPLY("smmla", ".16b", NOTHING);
}
#undef NOTHING
#undef ASK
#undef MULTIPLY
#undef LOAD
#undef SECOND
#undef FIRST
#undef PAIR

/// Two tiles by a panel: `columns[j][i]` is what row i gives with column j.
template <class Dots, Out of>
void two_tiles(const char* const (&tiles)[2], const char* panel, std::int64_t steps, float (&columns)[8][8]) {
    typename Dots::Sum sums[4][4];
    multiply(Dots(), of, tiles[0], tiles[1], panel, steps, sums);
    for (int i = 0; i < 4; i += 2) {
        for (int j = 0; j < 4; ++j) {
            const float32x4_t one = Dots::floats(sums[i][j]);  // w0 x0, w0 x1, w1 x0, w1 x1
            const float32x4_t two = Dots::floats(sums[i + 1][j]);
            vst1q_f32(columns[2 * j] + 2 * i, vuzp1q_f32(one, two));
            vst1q_f32(columns[2 * j + 1] + 2 * i, vuzp2q_f32(one, two));
        }
    }
}

}  // namespace roofline::bench::neon
#pragma GCC pop_options
#endif
