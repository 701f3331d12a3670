// The products for AArch64 with the bf16 and i8mm instructions (Neoverse V1 and N2, Apple M2 and later): several rows
// of x. One row is in neon_vector.cpp.
#include "roofline/bench/kernels/neon_vector.hpp"
#include "roofline/bench/kernels/products.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <algorithm>
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <cstring>
#include <sys/auxv.h>
#include <vector>

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

/// 16 bytes of two rows, their first eights and their second.
inline void save_pair(char* to, uint8x16_t one, uint8x16_t two) {
    const uint64x2_t first = vreinterpretq_u64_u8(one);
    const uint64x2_t second = vreinterpretq_u64_u8(two);
    vst1q_u8(reinterpret_cast<std::uint8_t*>(to), vreinterpretq_u8_u64(vtrn1q_u64(first, second)));
    vst1q_u8(reinterpret_cast<std::uint8_t*>(to + 16), vreinterpretq_u8_u64(vtrn2q_u64(first, second)));
}

/// 8 rows of W that lie as a panel does: 16 bytes of each after another, pairs interleaved by 8.
void pack_rows(const char* const (&rows)[8], std::int64_t steps, char* to) {
    for (std::int64_t step = 0; step < steps; ++step) {
        for (int pair = 0; pair < 4; ++pair, to += 32)
            save_pair(to, vreinterpretq_u8_u64(load(rows[2 * pair] + step * 16)),
                      vreinterpretq_u8_u64(load(rows[2 * pair + 1] + step * 16)));
    }
}

// 8 packed rows by a panel: v0 to v15 are [pair of rows][pair of columns]. A sum can be added to three cycles after it
// was last, or five and more, but not four: in this order of pairs it is three and five in turn, and four products can
// start in a cycle. v24 to v27 are the first eights of the panel's pairs, v28 to v31 the second.
// clang-format off: a line is a pair
#define PAIR(NAME, TYPE, a, b, c, d, w, one, two, three, four)                                              \
    NAME " v" #a ".4s, v" #w TYPE ", v" #one TYPE "\n " NAME " v" #b ".4s, v" #w TYPE ", v" #two TYPE "\n"  \
    NAME " v" #c ".4s, v" #w TYPE ", v" #three TYPE "\n " NAME " v" #d ".4s, v" #w TYPE ", v" #four TYPE "\n"
#define FIRST(NAME, TYPE, a, b, c, d, w) PAIR(NAME, TYPE, a, b, c, d, w, 24, 25, 26, 27)
#define SECOND(NAME, TYPE, a, b, c, d, w) PAIR(NAME, TYPE, a, b, c, d, w, 28, 29, 30, 31)
#define PACKED(w, at) "ldr q" #w ", [%[w], #" #at "]\n"
#define MULTIPLY(NAME, TYPE)                                                                                \
    asm volatile(                                                                                           \
        "movi v0.4s, #0\n movi v1.4s, #0\n movi v2.4s, #0\n movi v3.4s, #0\n"                               \
        "movi v4.4s, #0\n movi v5.4s, #0\n movi v6.4s, #0\n movi v7.4s, #0\n"                               \
        "movi v8.4s, #0\n movi v9.4s, #0\n movi v10.4s, #0\n movi v11.4s, #0\n"                             \
        "movi v12.4s, #0\n movi v13.4s, #0\n movi v14.4s, #0\n movi v15.4s, #0\n"                           \
        "1:\n ldr q24, [%[x]]\n ldr q25, [%[x], #32]\n ldr q26, [%[x], #64]\n ldr q27, [%[x], #96]\n"       \
        PACKED(16, 0) FIRST(NAME, TYPE, 0, 1, 2, 3, 16)                                                     \
        "ldr q28, [%[x], #16]\n ldr q29, [%[x], #48]\n"                                                     \
        PACKED(17, 32) FIRST(NAME, TYPE, 4, 5, 6, 7, 17)                                                    \
        "ldr q30, [%[x], #80]\n ldr q31, [%[x], #112]\n add %[x], %[x], #128\n"                             \
        PACKED(18, 96) FIRST(NAME, TYPE, 12, 13, 14, 15, 18)                                                \
        PACKED(19, 16) SECOND(NAME, TYPE, 0, 1, 2, 3, 19)                                                   \
        PACKED(20, 64) FIRST(NAME, TYPE, 8, 9, 10, 11, 20)                                                  \
        PACKED(21, 112) SECOND(NAME, TYPE, 12, 13, 14, 15, 21)                                              \
        PACKED(22, 48) SECOND(NAME, TYPE, 4, 5, 6, 7, 22)                                                   \
        PACKED(23, 80) SECOND(NAME, TYPE, 8, 9, 10, 11, 23)                                                 \
        "add %[w], %[w], #128\n subs %[steps], %[steps], #1\n b.ne 1b\n"                                    \
        "stp q0, q1, [%[sums]]\n stp q2, q3, [%[sums], #32]\n stp q4, q5, [%[sums], #64]\n"                 \
        "stp q6, q7, [%[sums], #96]\n stp q8, q9, [%[sums], #128]\n stp q10, q11, [%[sums], #160]\n"        \
        "stp q12, q13, [%[sums], #192]\n stp q14, q15, [%[sums], #224]\n"                                   \
        : [w] "+r"(w), [x] "+r"(x), [steps] "+r"(steps)                                                     \
        : [sums] "r"(sums)                                                                                  \
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",    \
          "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", \
          "v29", "v30", "v31", "cc", "memory")
// clang-format on
inline void multiply(Bf16Tile, const char* w, const char* x, std::int64_t steps, Bf16Tile::Sum (&sums)[4][4]) {
    MULTIPLY("bfmmla", ".8h");
}
inline void multiply(Int8Tile, const char* w, const char* x, std::int64_t steps, Int8Tile::Sum (&sums)[4][4]) {
    MULTIPLY("smmla", ".16b");
}
#undef MULTIPLY
#undef PACKED
#undef SECOND
#undef FIRST
#undef PAIR

/// 8 packed rows by a panel: `columns[j][i]` is what row i gives with column j.
template <class Tile>
void packed_tile(const char* w, const char* panel, std::int64_t steps, float (&columns)[8][8]) {
    typename Tile::Sum sums[4][4];
    multiply(Tile(), w, panel, steps, sums);
    for (int i = 0; i < 4; i += 2) {
        for (int j = 0; j < 4; ++j) {
            const float32x4_t one = Tile::floats(sums[i][j]);  // w0 x0, w0 x1, w1 x0, w1 x1
            const float32x4_t two = Tile::floats(sums[i + 1][j]);
            vst1q_f32(columns[2 * j] + 2 * i, vuzp1q_f32(one, two));
            vst1q_f32(columns[2 * j + 1] + 2 * i, vuzp2q_f32(one, two));
        }
    }
}

/// Several panels: a block of W is packed once for all of them.
template <class Tile, class Scale>
void many_panels(const ProductCall& call, std::int64_t row_bytes, std::int64_t first, std::int64_t last,
                 const Scale& scale) {
    const auto* weights = static_cast<const char*>(call.weights.values);
    const auto* packed = static_cast<const char*>(call.packed);
    alignas(64) static thread_local char block_of_w[block_rows * depth_bytes];
    for (std::int64_t block = first; block < last; block += block_rows) {
        const std::int64_t block_end = std::min(last, block + block_rows);
        for (std::int64_t begin = 0; begin < row_bytes; begin += depth_bytes) {
            const std::int64_t bytes = std::min(depth_bytes, row_bytes - begin);
            for (std::int64_t n = block; n < block_end; n += 8) {
                const char* rows[8];
                for (std::int64_t i = 0; i < 8; ++i) rows[i] = weights + std::min(n + i, last - 1) * row_bytes + begin;
                pack_rows(rows, bytes / 16, block_of_w + (n - block) * depth_bytes);
            }
            for (std::int64_t panel = 0; panel < call.m; panel += panel_rows) {
                const char* columns = packed + panel * row_bytes + begin * panel_rows;
                for (std::int64_t n = block; n < block_end; n += 8) {
                    float given[8][8];
                    packed_tile<Tile>(block_of_w + (n - block) * depth_bytes, columns, bytes / 16, given);
                    const std::int64_t count = std::min<std::int64_t>(8, block_end - n);
                    for (std::int64_t column = 0; column < std::min(panel_rows, call.m - panel); ++column) {
                        float* y = call.y + (panel + column) * call.n + n;
                        for (std::int64_t row = 0; row < count; ++row) {
                            const float part = given[column][row] * scale(n + row, panel + column);
                            y[row] = begin == 0 ? part : y[row] + part;
                        }
                    }
                }
            }
        }
    }
}

/// One panel, or a part of it: tiles of 8 rows of W as they lie, which stream through whole.
template <class Tile, int column_pairs, class Scale>
void one_panel(const ProductCall& call, std::int64_t row_bytes, std::int64_t first, std::int64_t last,
               const Scale& scale) {
    const auto* weights = static_cast<const char*>(call.weights.values);
    const auto* panel = static_cast<const char*>(call.packed);
    for (std::int64_t n = first; n < last; n += 8) {
        const char* rows[8];
        for (std::int64_t i = 0; i < 8; ++i) rows[i] = weights + std::min(n + i, last - 1) * row_bytes;
        const auto keep = [&](int row, int column, float sum) {
            if (n + row < last && column < call.m) call.y[column * call.n + n + row] = sum * scale(n + row, column);
        };
        tile<Tile, 4, column_pairs>(rows, panel, row_bytes / 16, keep);
    }
}

template <class Tile, class Scale>
void all_panels(const ProductCall& call, std::int64_t row_bytes, std::int64_t first, std::int64_t last,
                const Scale& scale) {
    if (call.m <= 2)
        one_panel<Tile, 1>(call, row_bytes, first, last, scale);
    else if (call.m <= 4)
        one_panel<Tile, 2>(call, row_bytes, first, last, scale);
    else if (call.m <= panel_rows)
        one_panel<Tile, 4>(call, row_bytes, first, last, scale);
    else
        many_panels<Tile>(call, row_bytes, first, last, scale);
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

/// A group of two tiles, half bytes become bytes, as pack_rows lays 8 rows.
void unpack_group(const std::uint8_t* const (&tiles)[2], char* to) {
    for (int run = 0; run < 4; ++run, to += 2 * 128) {
        for (int half = 0; half < 2; ++half) {
            const RowsOfRun each(tiles[half] + run * 64);
            for (int pair = 0; pair < 2; ++pair) {
                const uint8x16_t one = vreinterpretq_u8_u64(each.rows[2 * pair]);
                const uint8x16_t two = vreinterpretq_u8_u64(each.rows[2 * pair + 1]);
                const uint8x16_t low = vdupq_n_u8(15);
                char* at = to + (2 * half + pair) * 32;
                save_pair(at, vandq_u8(one, low), vandq_u8(two, low));
                save_pair(at + 128, vshrq_n_u8(one, 4), vshrq_n_u8(two, 4));
            }
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

/// A group of 8 rows from `row` on: bytes as pack_rows lays them, and what they are multiplied with.
struct Int4Group {
    alignas(64) char bytes[8 * int4_group];
    float32x4_t scales[2];
    float32x4_t zeros[2];  // times the scales

    void take(const Weights& weights, const Int4Tiles& lie, std::int64_t row, std::int64_t last_row,
              std::int64_t group) {
        const std::uint8_t* tiles[2];
        for (std::int64_t half = 0; half < 2; ++half) {
            const std::int64_t tile = std::min(row + half * int4_tile_rows, last_row / int4_tile_rows * int4_tile_rows);
            tiles[half] = static_cast<const std::uint8_t*>(weights.values) + lie.value_place(tile, group * int4_group);
            const uint16x4_t narrow = vld1_u16(weights.group_scales + lie.scale_place(tile, group));
            scales[half] = vreinterpretq_f32_u32(vshll_n_u16(narrow, 16));
            std::uint32_t both;
            std::memcpy(&both, weights.group_zeros + lie.zero_place(tile, group), sizeof both);
            const std::uint32_t four = (group % 2 == 0 ? both : both >> 4) & 0x0F0F0F0FU;
            const uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
            zeros[half] = vmulq_f32(vcvtq_f32_u32(vmovl_u16(vget_low_u16(wide))), scales[half]);
        }
        unpack_group(tiles, bytes);
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
                    packed_tile<Int8Tile>(taken[i].bytes, x, int4_group / 16, given);
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
