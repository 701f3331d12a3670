// The products for AArch64 with the bf16 and i8mm instructions (Neoverse V1 and N2, Apple M2 and later): several rows
// of x. One row is in neon_vector.cpp.
#include "roofline/bench/kernels/neon_vector.hpp"
#include "roofline/bench/kernels/products.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <algorithm>
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16+i8mm+dotprod")
namespace roofline::bench::neon {
namespace {

// Depth that is worked on at once: 8 rows of W of that many bytes and a panel of x share the first-level cache.
constexpr std::int64_t depth_bytes = 2048;
// Rows of W that are kept in the second-level cache while all panels of x pass.
constexpr std::int64_t block_rows = 128;

struct Bf16Tile {
    using Sum = float32x4_t;
    static Sum zero() { return vdupq_n_f32(0.0F); }
    static Sum multiply(Sum sum, uint64x2_t w, uint64x2_t x) {
        return vbfmmlaq_f32(sum, vreinterpretq_bf16_u64(w), vreinterpretq_bf16_u64(x));
    }
    static float32x4_t floats(Sum sum) { return sum; }
};

struct Int8Tile {
    using Sum = int32x4_t;
    static Sum zero() { return vdupq_n_s32(0); }
    static Sum multiply(Sum sum, uint64x2_t w, uint64x2_t x) {
        return vmmlaq_s32(sum, vreinterpretq_s8_u64(w), vreinterpretq_s8_u64(x));
    }
    static float32x4_t floats(Sum sum) { return vcvtq_f32_s32(sum); }
};

inline uint64x2_t load(const char* from) {
    return vreinterpretq_u64_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(from)));
}

/// 2 x `row_pairs` rows of W (row `rows[i]`) against the first `column_pairs` pairs of a panel; `steps` runs of 16
/// bytes. `add(row, column, sum)` gets each of the sums.
template <class Tile, int row_pairs, int column_pairs, class Add>
inline __attribute__((always_inline)) void tile(const char* const (&rows)[2 * row_pairs], const char* panel,
                                                std::int64_t steps, const Add& add) {
    typename Tile::Sum sums[row_pairs][column_pairs];
    for (auto& row : sums) {
        for (auto& sum : row) sum = Tile::zero();
    }
    for (std::int64_t step = 0; step < steps; ++step) {
        const std::int64_t at = step * 16;
        uint64x2_t low[column_pairs];
        uint64x2_t high[column_pairs];
        for (int j = 0; j < column_pairs; ++j) {
            low[j] = load(panel + at * panel_rows + j * 32);
            high[j] = load(panel + at * panel_rows + j * 32 + 16);
        }
        for (int i = 0; i < row_pairs; ++i) {
            const uint64x2_t one = load(rows[2 * i] + at);
            const uint64x2_t two = load(rows[2 * i + 1] + at);
            const uint64x2_t first = vtrn1q_u64(one, two);
            const uint64x2_t second = vtrn2q_u64(one, two);
            for (int j = 0; j < column_pairs; ++j) {
                sums[i][j] = Tile::multiply(sums[i][j], first, low[j]);
                sums[i][j] = Tile::multiply(sums[i][j], second, high[j]);
            }
        }
    }
    for (int i = 0; i < row_pairs; ++i) {
        for (int j = 0; j < column_pairs; ++j) {
            float values[4];  // w0 x0, w0 x1, w1 x0, w1 x1
            vst1q_f32(values, Tile::floats(sums[i][j]));
            for (int row = 0; row < 2; ++row) {
                for (int column = 0; column < 2; ++column) add(2 * i + row, 2 * j + column, values[2 * row + column]);
            }
        }
    }
}

/// Several rows of x: tiles of 8 rows of W by a panel.
template <class Tile, int column_pairs, class Scale>
void panels(const ProductCall& call, std::int64_t row_bytes, std::int64_t first, std::int64_t last,
            const Scale& scale) {
    const auto* weights = static_cast<const char*>(call.weights.values);
    const auto* packed = static_cast<const char*>(call.packed);
    // A single panel needs no second look at W, so its rows stream through whole.
    const std::int64_t depth = call.m <= panel_rows ? row_bytes : depth_bytes;
    for (std::int64_t block = first; block < last; block += block_rows) {
        const std::int64_t block_end = std::min(last, block + block_rows);
        for (std::int64_t begin = 0; begin < row_bytes; begin += depth) {
            const std::int64_t bytes = std::min(depth, row_bytes - begin);
            for (std::int64_t panel = 0; panel < call.m; panel += panel_rows) {
                const char* columns = packed + panel * row_bytes + begin * panel_rows;
                for (std::int64_t n = block; n < block_end; n += 8) {
                    const char* rows[8];
                    for (std::int64_t i = 0; i < 8; ++i)
                        rows[i] = weights + std::min(n + i, last - 1) * row_bytes + begin;
                    tile<Tile, 4, column_pairs>(rows, columns, bytes / 16, [&](int row, int column, float sum) {
                        if (n + row >= block_end || panel + column >= call.m) return;
                        float& y = call.y[(panel + column) * call.n + n + row];
                        const float part = sum * scale(n + row, panel + column);
                        y = begin == 0 ? part : y + part;
                    });
                }
            }
        }
    }
}

template <class Tile, class Scale>
void all_panels(const ProductCall& call, std::int64_t row_bytes, std::int64_t first, std::int64_t last,
                const Scale& scale) {
    if (call.m <= 2)
        panels<Tile, 1>(call, row_bytes, first, last, scale);
    else if (call.m <= 4)
        panels<Tile, 2>(call, row_bytes, first, last, scale);
    else
        panels<Tile, 4>(call, row_bytes, first, last, scale);
}

void product_bf16(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (call.m == 1) return vector_bf16(call, first, last);
    all_panels<Bf16Tile>(call, call.k * 2, first, last, [](std::int64_t, std::int64_t) { return 1.0F; });
}

void product_int8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (call.m == 1) return vector_int8(call, first, last);
    all_panels<Int8Tile>(call, call.k, first, last, [&](std::int64_t row, std::int64_t column) {
        return call.weights.row_scales[row] * call.x_scales[column];
    });
}

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

/// Several rows of x: half bytes become bytes in registers and go through the tiles of int8, a group at a time.
template <int column_pairs>
void panels_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const std::int64_t groups = call.k / int4_group;
    const Int4Tiles lie(call.k);
    const auto* packed = static_cast<const char*>(call.packed);
    constexpr int columns = 2 * column_pairs;
    for (std::int64_t n = first; n < last; n += 8) {
        alignas(64) static thread_local std::uint8_t bytes[8][int4_group];
        const std::int64_t count = std::min<std::int64_t>(8, last - n);
        for (std::int64_t group = 0; group < groups; ++group) {
            const char* rows[8];
            float scales[8];
            float zeros[8];
            for (std::int64_t tile = 0; tile < 8; tile += int4_tile_rows) {
                const std::int64_t row = std::min(n + tile, (last - 1) / int4_tile_rows * int4_tile_rows);
                const auto* from =
                    static_cast<const std::uint8_t*>(call.weights.values) + lie.value_place(row, group * int4_group);
                for (int run = 0; run < 4; ++run) {
                    const RowsOfRun each(from + run * 64);
                    for (int i = 0; i < 4; ++i) {
                        const uint8x16_t both = vreinterpretq_u8_u64(each.rows[i]);
                        vst1q_u8(bytes[tile + i] + run * 32, vandq_u8(both, vdupq_n_u8(15)));
                        vst1q_u8(bytes[tile + i] + run * 32 + 16, vshrq_n_u8(both, 4));
                    }
                }
                const std::int64_t scale = lie.scale_place(row, group);
                const std::int64_t zero = 2 * lie.zero_place(row, group) + group % 2;
                for (std::int64_t i = 0; i < int4_tile_rows; ++i) {
                    rows[tile + i] = reinterpret_cast<const char*>(bytes[tile + i]);
                    scales[tile + i] = call.weights.group_scale(scale + i);
                    zeros[tile + i] = call.weights.group_zero(zero + 2 * i);
                }
            }
            for (std::int64_t panel = 0; panel < call.m; panel += panel_rows) {
                const char* values = packed + panel * call.k + group * int4_group * panel_rows;
                float x_scales[columns];
                float x_sums[columns];
                for (std::int64_t j = 0; j < columns; ++j) {
                    const std::int64_t place = std::min(panel + j, call.m - 1) * groups + group;
                    x_scales[j] = call.x_scales[place];
                    x_sums[j] = call.x_sums[place];
                }
                tile<Int8Tile, 4, column_pairs>(rows, values, int4_group / 16, [&](int row, int column, float sum) {
                    if (row >= count || panel + column >= call.m) return;
                    float& y = call.y[(panel + column) * call.n + n + row];
                    const float part = (sum - zeros[row] * x_sums[column]) * (scales[row] * x_scales[column]);
                    y = group == 0 ? part : y + part;
                });
            }
        }
    }
}

void product_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (call.m == 1)
        vector_int4(call, first, last);
    else if (call.m <= 2)
        panels_int4<1>(call, first, last);
    else if (call.m <= 4)
        panels_int4<2>(call, first, last);
    else
        panels_int4<4>(call, first, last);
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
