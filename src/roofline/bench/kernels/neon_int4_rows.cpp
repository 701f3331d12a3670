// Several rows of x against int4 weights in tiles of four rows (products.hpp). As with one row (neon_int4.cpp) bytes
// are multiplied whole: l + 16 h with H, and 16 l, the byte shifted left, with L. Two of a line's four vectors, four
// bytes of each of four rows, become eight bytes of two rows and of the other two: what instructions that multiply 2 x
// 8 bytes with 8 bytes x 2 take. So a vector of weights costs two instructions, and one for each row of x.
#include "roofline/bench/kernels/neon_tiles.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <algorithm>
#include <arm_neon.h>
#include <cstring>
#include <vector>

#include "roofline/bench/kernels/side_by_side.hpp"

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16+i8mm+dotprod,tune=neoverse-v1")
namespace roofline::bench::neon {
namespace {

/// What the columns of a panel need of a group, pair by pair: (a, b, a, b), as sums lie.
template <int column_pairs>
struct Factors {
    float scales[column_pairs][4];
    float sums[column_pairs][4];  // that zero points, times their scales, are multiplied with
};

template <int column_pairs>
const std::vector<Factors<column_pairs>>& factors_of(const ProductCall& call, std::int64_t panel) {
    static thread_local std::vector<Factors<column_pairs>> factors;
    const std::int64_t groups = call.k / int4_group;
    factors.assign(static_cast<std::size_t>(groups), {});
    for (std::int64_t lane = 0; lane < 4 * column_pairs; ++lane) {
        const std::int64_t column = panel + lane / 4 * 2 + lane % 2;
        if (column >= call.m) continue;
        for (std::int64_t group = 0; group < groups; ++group) {
            Factors<column_pairs>& here = factors[static_cast<std::size_t>(group)];
            here.scales[lane / 4][lane % 4] = call.x_scales[column * groups + group];
            here.sums[lane / 4][lane % 4] = call.x_sums[column * groups + group] * here.scales[lane / 4][lane % 4];
        }
    }
    return factors;
}

inline int8x16_t load(const char* from) {
    return vld1q_s8(reinterpret_cast<const std::int8_t*>(from));
}

/// A tile's group: scales, and zero points times them, twice each, of rows 0 and 1 and of rows 2 and 3.
struct RowFactors {
    float32x4_t scales[2];
    float32x4_t zeros[2];

    RowFactors(const Weights& weights, const Int4Tiles& lie, std::int64_t tile, std::int64_t group) {
        const std::int64_t row = tile * tile_rows;
        const Bf16* narrow = weights.group_scales + lie.scale_place(row, group);
        const float32x4_t wide = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(narrow), 16));
        std::uint32_t both;
        std::memcpy(&both, weights.group_zeros + lie.zero_place(row, group), sizeof both);
        const std::uint32_t four = (group % 2 == 0 ? both : both >> 4) & 0x0F0F0F0FU;
        const uint16x8_t eight = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
        const float32x4_t zero = vmulq_f32(vcvtq_f32_u32(vmovl_u16(vget_low_u16(eight))), wide);
        scales[0] = vzip1q_f32(wide, wide);
        scales[1] = vzip2q_f32(wide, wide);
        zeros[0] = vzip1q_f32(zero, zero);
        zeros[1] = vzip2q_f32(zero, zero);
    }
};

/// What a group gives goes into the totals.
template <int column_pairs>
inline __attribute__((always_inline)) void add_group(float32x4_t (&totals)[2][column_pairs],
                                                     const int32x4_t (&sums)[2][column_pairs], const RowFactors& rows,
                                                     const Factors<column_pairs>& columns) {
    for (int pair = 0; pair < 2; ++pair) {
        for (int j = 0; j < column_pairs; ++j) {
            const float32x4_t scale = vmulq_f32(rows.scales[pair], vld1q_f32(columns.scales[j]));
            totals[pair][j] = vfmaq_f32(totals[pair][j], vcvtq_f32_s32(sums[pair][j]), scale);
            totals[pair][j] = vfmsq_f32(totals[pair][j], rows.zeros[pair], vld1q_f32(columns.sums[j]));
        }
    }
}

template <int column_pairs>
void save(const ProductCall& call, const float32x4_t (&totals)[2][column_pairs], std::int64_t first_row,
          std::int64_t last, std::int64_t panel) {
    for (int pair = 0; pair < 2; ++pair) {
        for (int j = 0; j < column_pairs; ++j) {
            float values[4];  // w0 x0, w0 x1, w1 x0, w1 x1
            vst1q_f32(values, totals[pair][j]);
            for (int value = 0; value < 4; ++value) {
                const std::int64_t row = first_row + 2 * pair + value / 2;
                const std::int64_t column = panel + 2 * j + value % 2;
                if (row < last && column < call.m) call.y[column * call.pitch() + row] = values[value];
            }
        }
    }
}

/// The first `column_pairs` pairs of the only panel.
template <int column_pairs>
void few_rows(const ProductCall& call, std::int64_t first, std::int64_t last) {
    constexpr int places = 4;  // tiles that are read side by side
    const std::int64_t groups = call.k / int4_group;
    const Int4Tiles lie(call.k);
    const auto& factors = factors_of<column_pairs>(call, 0);
    side_by_side<places>(first / tile_rows, (last + tile_rows - 1) / tile_rows, [&](const std::int64_t(&at)[places]) {
        float32x4_t totals[places][2][column_pairs];
        for (auto& tile : totals) {
            for (auto& pair : tile) {
                for (auto& total : pair) total = vdupq_n_f32(0.0F);
            }
        }
        const std::uint8_t* tiles[places];
        for (int i = 0; i < places; ++i)
            tiles[i] = static_cast<const std::uint8_t*>(call.weights.values) + at[i] * lie.values;
        const auto* x = static_cast<const char*>(call.packed);
        for (std::int64_t group = 0; group < groups; ++group) {
            const Factors<column_pairs>& here = factors[static_cast<std::size_t>(group)];
            int32x4_t sums[places][2][column_pairs];
            for (auto& tile : sums) {
                for (auto& pair : tile) {
                    for (auto& sum : pair) sum = vdupq_n_s32(0);
                }
            }
            for (int run = 0; run < 4; ++run, x += 2 * 16 * panel_rows) {
                for (int half = 0; half < 2; ++half) {
                    int8x16_t low[column_pairs];
                    int8x16_t high[column_pairs];
                    for (int j = 0; j < column_pairs; ++j) {
                        low[j] = load(x + j * 32 + half * 16);
                        high[j] = load(x + 16 * panel_rows + j * 32 + half * 16);
                    }
                    for (int i = 0; i < places; ++i) {
                        const std::uint8_t* line = tiles[i] + (group * 4 + run) * 64;
                        if (half == 0) {
                            __builtin_prefetch(line + 6144, 0, 1);
                            __builtin_prefetch(line + 1024, 0, 3);
                        }
                        const uint32x4_t one = vreinterpretq_u32_u8(vld1q_u8(line + half * 32));
                        const uint32x4_t two = vreinterpretq_u32_u8(vld1q_u8(line + half * 32 + 16));
                        const uint8x16_t pairs[2] = {vreinterpretq_u8_u32(vzip1q_u32(one, two)),
                                                     vreinterpretq_u8_u32(vzip2q_u32(one, two))};
                        for (int pair = 0; pair < 2; ++pair) {
                            const uint8x16_t shifted = vshlq_n_u8(pairs[pair], 4);
                            for (int j = 0; j < column_pairs; ++j)
                                sums[i][pair][j] = vusmmlaq_s32(sums[i][pair][j], pairs[pair], high[j]);
                            for (int j = 0; j < column_pairs; ++j)
                                sums[i][pair][j] = vusmmlaq_s32(sums[i][pair][j], shifted, low[j]);
                        }
                    }
                }
            }
            for (int i = 0; i < places; ++i)
                add_group<column_pairs>(totals[i], sums[i], RowFactors(call.weights, lie, at[i], group), here);
        }
        for (int i = 0; i < places; ++i) save<column_pairs>(call, totals[i], at[i] * tile_rows, last, 0);
    });
}

// A group of two tiles by a whole panel. v0 to v15, [pair of rows][pair of columns], get whole
// bytes times H and bytes shifted times L, each five cycles' worth of instructions after the other, so that none
// waits for the one before. v16 to v19: H, v20 to v23: L, v24 and v25, v27 and v28: weights as they lie, v26 and v25,
// v29 and v28: pairs of rows, and then the same shifted.
// clang-format off: a line is a step
#define BY(a, b, c, d, w, one, two, three, four)                                                       \
    "usmmla v" #a ".4s, v" #w ".16b, v" #one ".16b\n usmmla v" #b ".4s, v" #w ".16b, v" #two ".16b\n"  \
    "usmmla v" #c ".4s, v" #w ".16b, v" #three ".16b\n usmmla v" #d ".4s, v" #w ".16b, v" #four ".16b\n"
#define BY_H(a, b, c, d, w) BY(a, b, c, d, w, 16, 17, 18, 19)
#define BY_L(a, b, c, d, w) BY(a, b, c, d, w, 20, 21, 22, 23)
#define SHIFT(w) "shl v" #w ".16b, v" #w ".16b, #4\n"
#define HALF(at, w_at)                                                                                 \
    "ldp q24, q25, [%[one], #" #w_at "]\n ldp q27, q28, [%[two], #" #w_at "]\n"                        \
    "ldr q16, [%[x], #" #at " + 128]\n ldr q17, [%[x], #" #at " + 160]\n"                              \
    "zip1 v26.4s, v24.4s, v25.4s\n zip2 v25.4s, v24.4s, v25.4s\n"                                      \
    "ldr q18, [%[x], #" #at " + 192]\n ldr q19, [%[x], #" #at " + 224]\n"                              \
    BY_H(0, 1, 2, 3, 26) "zip1 v29.4s, v27.4s, v28.4s\n zip2 v28.4s, v27.4s, v28.4s\n" SHIFT(26)       \
    "ldr q20, [%[x], #" #at "]\n ldr q21, [%[x], #" #at " + 32]\n"                                     \
    BY_H(4, 5, 6, 7, 25) SHIFT(25)                                                                     \
    "ldr q22, [%[x], #" #at " + 64]\n ldr q23, [%[x], #" #at " + 96]\n"                                \
    BY_H(8, 9, 10, 11, 29) SHIFT(29) BY_H(12, 13, 14, 15, 28) SHIFT(28)                                \
    BY_L(0, 1, 2, 3, 26) BY_L(4, 5, 6, 7, 25) BY_L(8, 9, 10, 11, 29) BY_L(12, 13, 14, 15, 28)
// clang-format on
inline void multiply(const std::uint8_t* one, const std::uint8_t* two, const char* x, int32x4_t (&sums)[2][2][4]) {
    std::int64_t runs = 4;
    asm volatile(
        "movi v0.4s, #0\n movi v1.4s, #0\n movi v2.4s, #0\n movi v3.4s, #0\n"
        "movi v4.4s, #0\n movi v5.4s, #0\n movi v6.4s, #0\n movi v7.4s, #0\n"
        "movi v8.4s, #0\n movi v9.4s, #0\n movi v10.4s, #0\n movi v11.4s, #0\n"
        "movi v12.4s, #0\n movi v13.4s, #0\n movi v14.4s, #0\n movi v15.4s, #0\n"
        "1:\n"
        HALF(0, 0) "prfm pldl3keep, [%[one], #6144]\n prfm pldl1keep, [%[one], #1024]\n"
        HALF(16, 32) "prfm pldl3keep, [%[two], #6144]\n prfm pldl1keep, [%[two], #1024]\n"
        "add %[one], %[one], #64\n add %[two], %[two], #64\n add %[x], %[x], #256\n"
        "subs %[runs], %[runs], #1\n b.ne 1b\n"
        "stp q0, q1, [%[sums]]\n stp q2, q3, [%[sums], #32]\n stp q4, q5, [%[sums], #64]\n"
        "stp q6, q7, [%[sums], #96]\n stp q8, q9, [%[sums], #128]\n stp q10, q11, [%[sums], #160]\n"
        "stp q12, q13, [%[sums], #192]\n stp q14, q15, [%[sums], #224]\n"
        : [one] "+r"(one), [two] "+r"(two), [x] "+r"(x), [runs] "+r"(runs)
        : [sums] "r"(sums)
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
          "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "cc", "memory");
}
#undef HALF
#undef SHIFT
#undef BY_L
#undef BY_H
#undef BY

void whole_panel(const ProductCall& call, std::int64_t panel, std::int64_t first, std::int64_t last) {
    const std::int64_t groups = call.k / int4_group;
    const Int4Tiles lie(call.k);
    const auto& factors = factors_of<4>(call, panel);
    const char* columns = static_cast<const char*>(call.packed) + panel * call.k;
    side_by_side<2>(first / tile_rows, (last + tile_rows - 1) / tile_rows, [&](const std::int64_t(&at)[2]) {
        float32x4_t totals[2][2][4];
        for (auto& tile : totals) {
            for (auto& pair : tile) {
                for (auto& total : pair) total = vdupq_n_f32(0.0F);
            }
        }
        const auto* values = static_cast<const std::uint8_t*>(call.weights.values);
        for (std::int64_t group = 0; group < groups; ++group) {
            const Factors<4>& here = factors[static_cast<std::size_t>(group)];
            int32x4_t sums[2][2][4];
            multiply(values + at[0] * lie.values + group * 256, values + at[1] * lie.values + group * 256,
                     columns + group * int4_group * panel_rows, sums);
            for (int i = 0; i < 2; ++i)
                add_group<4>(totals[i], sums[i], RowFactors(call.weights, lie, at[i], group), here);
        }
        for (int i = 0; i < 2; ++i) save<4>(call, totals[i], at[i] * tile_rows, last, panel);
    });
}

}  // namespace

void rows_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (first >= last) return;
    if (call.m == 2) return few_rows<1>(call, first, last);
    if (call.m <= 4) return few_rows<2>(call, first, last);
    // Weights that the second-level cache holds meet the first panel out of memory, the others there.
    constexpr std::int64_t block_bytes = 256 << 10;
    const std::int64_t block =
        call.m <= panel_rows ? last - first : std::max<std::int64_t>(64, block_bytes / (call.k / 2) / 64 * 64);
    for (std::int64_t begin = first; begin < last; begin += block) {
        for (std::int64_t panel = 0; panel < call.m; panel += panel_rows)
            whole_panel(call, panel, begin, std::min(last, begin + block));
    }
}

}  // namespace roofline::bench::neon
#pragma GCC pop_options
#endif
