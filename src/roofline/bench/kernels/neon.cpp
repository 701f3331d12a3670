// The products for AArch64 with the bf16 and i8mm instructions (Neoverse V1 and N2, Apple M2 and later). bf16 and int8
// are in neon_tiles.cpp, int4 with one row of x in neon_int4.cpp.
#include "roofline/bench/kernels/neon_tiles.hpp"
#include "roofline/bench/kernels/products.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <algorithm>
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <cstring>
#include <sys/auxv.h>
#include <vector>

#include "roofline/bench/kernels/neon_two_tiles.hpp"
#include "roofline/bench/kernels/side_by_side.hpp"

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16+i8mm+dotprod,tune=neoverse-v1")
namespace roofline::bench::neon {
namespace {

/// A run of a tile's four rows, turned from fours of each to 16 bytes of each. One load that does it takes longer
/// than all of this.
struct RowsOfRun {
    uint64x2_t rows[4];
    explicit RowsOfRun(const std::uint8_t* from) {
        uint32x4_t fours[4];
        for (int i = 0; i < 4; ++i) fours[i] = vreinterpretq_u32_u8(vld1q_u8(from + 16 * i));
        for (int half = 0; half < 2; ++half) {
            const auto zip = [&](int i) {
                return vreinterpretq_u64_u32(half == 0 ? vzip1q_u32(fours[i], fours[i + 1])
                                                       : vzip2q_u32(fours[i], fours[i + 1]));
            };
            rows[2 * half] = vtrn1q_u64(zip(0), zip(2));
            rows[2 * half + 1] = vtrn2q_u64(zip(0), zip(2));
        }
    }
};

/// 16 bytes of two rows, their first eights and their second.
inline void save_pair(char* to, uint8x16_t one, uint8x16_t two) {
    const uint64x2_t first = vreinterpretq_u64_u8(one);
    const uint64x2_t second = vreinterpretq_u64_u8(two);
    vst1q_u8(reinterpret_cast<std::uint8_t*>(to), vreinterpretq_u8_u64(vtrn1q_u64(first, second)));
    vst1q_u8(reinterpret_cast<std::uint8_t*>(to + 16), vreinterpretq_u8_u64(vtrn2q_u64(first, second)));
}

/// A group of a tile: half bytes become bytes, in the order of a tile of int8.
void unpack_group(const std::uint8_t* tile, char* to) {
    for (int run = 0; run < 4; ++run, to += 2 * 64) {
        const RowsOfRun each(tile + run * 64);
        for (int pair = 0; pair < 2; ++pair) {
            const uint8x16_t one = vreinterpretq_u8_u64(each.rows[2 * pair]);
            const uint8x16_t two = vreinterpretq_u8_u64(each.rows[2 * pair + 1]);
            const uint8x16_t low = vdupq_n_u8(15);
            save_pair(to + pair * 32, vandq_u8(one, low), vandq_u8(two, low));
            save_pair(to + 64 + pair * 32, vshrq_n_u8(one, 4), vshrq_n_u8(two, 4));
        }
    }
}

/// Scales of x and its sums in these units, [group][column], as they are needed.
struct Int4Factors {
    std::int64_t columns;
    std::vector<float> scales;
    std::vector<float> sums;

    explicit Int4Factors(const ProductCall& call)
        : columns((call.m + panel_rows - 1) / panel_rows * panel_rows),
          scales(static_cast<std::size_t>(columns * (call.k / int4_group))),
          sums(scales.size()) {
        const std::int64_t groups = call.k / int4_group;
        for (std::int64_t column = 0; column < call.m; ++column) {
            for (std::int64_t group = 0; group < groups; ++group) {
                const auto to = static_cast<std::size_t>(group * columns + column);
                scales[to] = call.x_scales[column * groups + group];
                sums[to] = call.x_sums[column * groups + group] * scales[to];
            }
        }
    }
};

/// What a group of 8 rows gives with a panel is added to the totals, [column][8 rows].
void add_group(const float (&given)[8][8], const float32x4_t (&scales)[2], const float32x4_t (&zeros)[2],
               const float* x_scales, const float* x_sums, float* totals) {
    for (int column = 0; column < 8; ++column) {
        for (int half = 0; half < 2; ++half) {
            float* to = totals + column * 8 + half * 4;
            float32x4_t total = vfmaq_f32(vld1q_f32(to), vld1q_f32(given[column] + half * 4),
                                          vmulq_n_f32(scales[half], x_scales[column]));
            total = vfmsq_n_f32(total, zeros[half], x_sums[column]);
            vst1q_f32(to, total);
        }
    }
}

/// A group of the two tiles from `row` on: as int8, and what they are multiplied with.
struct Int4Group {
    alignas(64) char bytes[2][tile_rows * int4_group];
    float32x4_t scales[2];
    float32x4_t zeros[2];  // times the scales

    void take(const Weights& weights, const Int4Tiles& lie, std::int64_t row, std::int64_t last_row,
              std::int64_t group) {
        for (std::int64_t half = 0; half < 2; ++half) {
            const std::int64_t tile = std::min(row + half * tile_rows, last_row / tile_rows * tile_rows);
            unpack_group(static_cast<const std::uint8_t*>(weights.values) + lie.value_place(tile, group * int4_group),
                         bytes[half]);
            const uint16x4_t narrow = vld1_u16(weights.group_scales + lie.scale_place(tile, group));
            scales[half] = vreinterpretq_f32_u32(vshll_n_u16(narrow, 16));
            std::uint32_t both;
            std::memcpy(&both, weights.group_zeros + lie.zero_place(tile, group), sizeof both);
            const std::uint32_t four = (group % 2 == 0 ? both : both >> 4) & 0x0F0F0F0FU;
            const uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
            zeros[half] = vmulq_f32(vcvtq_f32_u32(vmovl_u16(vget_low_u16(wide))), scales[half]);
        }
    }
};

/// Several rows of x: groups of four times 8 rows of W are taken apart once for all panels, which pass four times less
/// often.
void panels_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    constexpr std::int64_t eights = 4;
    const Int4Tiles lie(call.k);
    const Int4Factors factors(call);
    const auto* packed = static_cast<const char*>(call.packed);
    std::vector<float> totals;  // [eight][column][8 rows]
    Int4Group taken[eights];
    for (std::int64_t n = first; n < last; n += 8 * eights) {
        const std::int64_t here = std::min(eights, (last - n + 7) / 8);
        totals.assign(static_cast<std::size_t>(here * factors.columns * 8), 0.0F);
        for (std::int64_t group = 0; group < call.k / int4_group; ++group) {
            for (std::int64_t i = 0; i < here; ++i) taken[i].take(call.weights, lie, n + i * 8, last - 1, group);
            for (std::int64_t panel = 0; panel < call.m; panel += panel_rows) {
                const char* x = packed + panel * call.k + group * int4_group * panel_rows;
                const auto at = static_cast<std::size_t>(group * factors.columns + panel);
                for (std::int64_t i = 0; i < here; ++i) {
                    float given[8][8];
                    two_tiles<Int8Dots, Out::of_caches>({taken[i].bytes[0], taken[i].bytes[1]}, x, int4_group / 16,
                                                        given);
                    add_group(given, taken[i].scales, taken[i].zeros, &factors.scales[at], &factors.sums[at],
                              totals.data() + (i * factors.columns + panel) * 8);
                }
            }
        }
        for (std::int64_t i = 0; i < here; ++i) {
            for (std::int64_t column = 0; column < call.m; ++column)
                std::copy_n(totals.data() + (i * factors.columns + column) * 8,
                            std::min<std::int64_t>(8, last - n - i * 8), call.y + column * call.n + n + i * 8);
        }
    }
}

/// Few rows of x, one after the other, while so many rows of W are in the second-level cache: taking half bytes apart
/// for all of them would take longer than four such passes.
void rows_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const std::int64_t groups = call.k / int4_group;
    const std::int64_t at_once = std::max<std::int64_t>(64, (std::int64_t{512} << 10) / (call.k / 2) / 64 * 64);
    for (std::int64_t begin = first; begin < last; begin += at_once) {
        for (std::int64_t row = 0; row < call.m; ++row) {
            ProductCall one = call;
            one.m = 1;
            one.x = static_cast<const std::int8_t*>(call.x) + row * call.k;
            one.x_scales += row * groups;
            one.x_sums += row * groups;
            one.y += row * call.n;
            vector_int4(one, begin, std::min(last, begin + at_once));
        }
    }
}

void product_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (call.m == 1)
        vector_int4(call, first, last);
    else if (call.m <= int4_few_rows)
        rows_int4(call, first, last);
    else
        panels_int4(call, first, last);
}

/// fp32: 4 rows of W against 4 rows of x.
void block_fp32(const ProductCall& call, std::int64_t n, std::int64_t last, std::int64_t column) {
    const auto* w = static_cast<const float*>(call.weights.values);
    const float* rows[4];
    for (std::int64_t i = 0; i < 4; ++i) rows[i] = w + std::min(n + i, last - 1) * call.k;
    const float* x = static_cast<const float*>(call.x) + column * call.k;
    float32x4_t sums[4][4];
    for (auto& row : sums) {
        for (auto& sum : row) sum = vdupq_n_f32(0.0F);
    }
    for (std::int64_t at = 0; at < call.k; at += 4) {
        float32x4_t values[4];
        for (int j = 0; j < 4; ++j) values[j] = vld1q_f32(x + j * call.k + at);
        for (int i = 0; i < 4; ++i) {
            const float32x4_t weight = vld1q_f32(rows[i] + at);
            for (int j = 0; j < 4; ++j) sums[i][j] = vfmaq_f32(sums[i][j], weight, values[j]);
        }
    }
    for (std::int64_t i = 0; i < std::min<std::int64_t>(4, last - n); ++i) {
        for (int j = 0; j < 4; ++j) call.y[(column + j) * call.n + n + i] = vaddvq_f32(sums[i][j]);
    }
}

/// fp32 with one row of x: four rows of W side by side, a line of each at a time, as in neon_tiles.cpp.
void vector_fp32(const ProductCall& call, std::int64_t column, std::int64_t first, std::int64_t last) {
    constexpr int runs = 4;
    const auto* w = static_cast<const float*>(call.weights.values);
    const float* x = static_cast<const float*>(call.x) + column * call.k;
    side_by_side<runs>(first, last, [&](const std::int64_t(&rows)[runs]) {
        float32x4_t sums[runs][2];
        for (auto& row : sums) row[0] = row[1] = vdupq_n_f32(0.0F);
        for (std::int64_t at = 0; at < call.k; at += 16) {
            float32x4_t line[4];
            for (int j = 0; j < 4; ++j) line[j] = vld1q_f32(x + at + 4 * j);
            for (int i = 0; i < runs; ++i) {
                const float* row = w + rows[i] * call.k + at;
                __builtin_prefetch(row + 2048, 0, 1);
                for (int j = 0; j < 4; ++j) sums[i][j % 2] = vfmaq_f32(sums[i][j % 2], vld1q_f32(row + 4 * j), line[j]);
            }
        }
        for (int i = 0; i < runs; ++i)
            call.y[column * call.n + rows[i]] = vaddvq_f32(vaddq_f32(sums[i][0], sums[i][1]));
    });
}

void product_fp32(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const std::int64_t in_fours = call.m / 4 * 4;
    for (std::int64_t n = first; n < last; n += 4) {
        for (std::int64_t column = 0; column < in_fours; column += 4) block_fp32(call, n, last, column);
    }
    for (std::int64_t column = in_fours; column < call.m; ++column) vector_fp32(call, column, first, last);
}

}  // namespace
}  // namespace roofline::bench::neon
#pragma GCC pop_options

namespace roofline::bench {
const ProductKernels* neon_products() {
    static constexpr ProductKernels kernels = {"NEON with bf16 and i8mm",
                                               neon::product_fp32,
                                               neon::product_bf16,
                                               neon::product_int8,
                                               neon::product_int4,
                                               true,
                                               true,
                                               4};
    const bool here = (::getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0 && (::getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
    return here ? &kernels : nullptr;
}
}  // namespace roofline::bench
#else
namespace roofline::bench {
const ProductKernels* neon_products() {
    return nullptr;
}
}  // namespace roofline::bench
#endif
