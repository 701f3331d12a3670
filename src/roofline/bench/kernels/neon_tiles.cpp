// bf16 and int8 in tiles of four rows: a line holds 16 bytes of each, first the pair of rows 0 and 1, then 2 and 3, of
// each pair the first eights of both rows and then the second. What instructions that multiply 2 x 8 bytes with
// 8 bytes x 2 take lies there without shuffling, and one row of x meets it twice beside itself.
//
// Few rows of x: W streams past them once, so nothing but memory should hold it back. Four tiles are read side by side,
// a whole line of each at a time. What comes 8 KiB on in each is asked for into the third-level cache. On a Neoverse-V1
// a core has too few misses under way to read more than 35 GB/s by itself; what waits in the shared cache it fetches at
// 45. It takes all of it: a line in two halves with others between them, or asked for twice, is slower than not asking
// at all.
#include "roofline/bench/kernels/neon_tiles.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <algorithm>
#include <arm_neon.h>

#include "roofline/bench/kernels/side_by_side.hpp"

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16+i8mm+dotprod,tune=neoverse-v1")  // the order of instructions is a tenth
namespace roofline::bench::neon {
namespace {

constexpr int places = 4;  // that are read side by side

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

inline __attribute__((always_inline)) void ask_for_what_comes(const char* at) {
    constexpr std::int64_t ahead = 8192;  // bytes: 6 to 24 KiB do as well, 4 KiB is too late
    __builtin_prefetch(at + ahead, 0, 1);
}

const char* tile_at(const ProductCall& call, std::int64_t row_bytes, std::int64_t tile) {
    return static_cast<const char*>(call.weights.values) + tile * tile_rows * row_bytes;
}

std::int64_t tiles_of(std::int64_t rows) {
    return (rows + tile_rows - 1) / tile_rows;
}

/// One row of x.
template <class Dots>
void one_row(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const std::int64_t row_bytes = Dots::row_bytes(call);
    const auto* x = static_cast<const char*>(call.x);
    side_by_side<places>(first / tile_rows, tiles_of(last), [&](const std::int64_t(&at)[places]) {
        typename Dots::Sum sums[places][2][2];  // [place][pair of rows][half]
        for (auto& place : sums) {
            for (auto& pair : place) pair[0] = pair[1] = Dots::zero();
        }
        const char* tiles[places];
        for (int i = 0; i < places; ++i) tiles[i] = tile_at(call, row_bytes, at[i]);
        for (std::int64_t from = 0; from < row_bytes; from += 16) {
            const uint64x2_t both = load(x + from);
            const uint64x2_t halves[2] = {vdupq_laneq_u64(both, 0), vdupq_laneq_u64(both, 1)};
            for (int i = 0; i < places; ++i) {
                const char* line = tiles[i] + from * tile_rows;
                ask_for_what_comes(line);
                for (int pair = 0; pair < 2; ++pair) {
                    for (int half = 0; half < 2; ++half)
                        sums[i][pair][half] =
                            Dots::dot(sums[i][pair][half], load(line + pair * 32 + half * 16), halves[half]);
                }
            }
        }
        for (int i = 0; i < places; ++i) {
            float rows[tile_rows];
            vst1q_f32(rows, Dots::floats(Dots::add_pairs(Dots::add(sums[i][0][0], sums[i][0][1]),
                                                         Dots::add(sums[i][1][0], sums[i][1][1]))));
            const std::int64_t row = at[i] * tile_rows;
            for (std::int64_t j = 0; j < std::min(tile_rows, last - row); ++j)
                call.y[row + j] = rows[j] * Dots::scale(call, row + j, 0);
        }
    });
}

/// The first `column_pairs` pairs of one panel.
template <class Dots, int column_pairs>
void few_rows(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const std::int64_t row_bytes = Dots::row_bytes(call);
    const auto* panel = static_cast<const char*>(call.packed);
    side_by_side<places>(first / tile_rows, tiles_of(last), [&](const std::int64_t(&at)[places]) {
        typename Dots::Sum sums[places][2][column_pairs];
        for (auto& place : sums) {
            for (auto& pair : place) {
                for (auto& sum : pair) sum = Dots::zero();
            }
        }
        const char* tiles[places];
        for (int i = 0; i < places; ++i) tiles[i] = tile_at(call, row_bytes, at[i]);
        for (std::int64_t from = 0; from < row_bytes; from += 16) {
            uint64x2_t x[column_pairs][2];
            for (int j = 0; j < column_pairs; ++j) {
                for (int half = 0; half < 2; ++half) x[j][half] = load(panel + from * panel_rows + j * 32 + half * 16);
            }
            for (int i = 0; i < places; ++i) {
                const char* line = tiles[i] + from * tile_rows;
                ask_for_what_comes(line);
                for (int half = 0; half < 2; ++half) {
                    for (int pair = 0; pair < 2; ++pair) {
                        const uint64x2_t w = load(line + pair * 32 + half * 16);
                        for (int j = 0; j < column_pairs; ++j)
                            sums[i][pair][j] = Dots::multiply(sums[i][pair][j], w, x[j][half]);
                    }
                }
            }
        }
        for (int i = 0; i < places; ++i) {
            for (int pair = 0; pair < 2; ++pair) {
                for (int j = 0; j < column_pairs; ++j) {
                    float values[4];  // w0 x0, w0 x1, w1 x0, w1 x1
                    vst1q_f32(values, Dots::floats(sums[i][pair][j]));
                    for (int value = 0; value < 4; ++value) {
                        const std::int64_t row = at[i] * tile_rows + 2 * pair + value / 2;
                        const std::int64_t column = 2 * j + value % 2;
                        if (row < last && column < call.m)
                            call.y[column * call.pitch() + row] = values[value] * Dots::scale(call, row, column);
                    }
                }
            }
        }
    });
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

/// What two tiles, or the same one twice, give with a panel that begins at `panel`.
template <class Dots>
void save(const ProductCall& call, const std::int64_t (&tiles)[2], std::int64_t last, std::int64_t panel,
          const float (&given)[8][8]) {
    for (std::int64_t i = 0; i < 2; ++i) {
        const std::int64_t row = tiles[i] * tile_rows;
        const std::int64_t count = std::min(tile_rows, last - row);
        for (std::int64_t column = 0; column < std::min(panel_rows, call.m - panel); ++column) {
            float* y = call.y + (panel + column) * call.pitch() + row;
            for (std::int64_t j = 0; j < count; ++j)
                y[j] = given[column][i * tile_rows + j] * Dots::scale(call, row + j, panel + column);
        }
    }
}

template <class Dots>
void one_panel(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const std::int64_t row_bytes = Dots::row_bytes(call);
    side_by_side<2>(first / tile_rows, tiles_of(last), [&](const std::int64_t(&at)[2]) {
        float given[8][8];
        two_tiles<Dots, Out::of_memory>({tile_at(call, row_bytes, at[0]), tile_at(call, row_bytes, at[1])},
                                        static_cast<const char*>(call.packed), row_bytes / 16, given);
        save<Dots>(call, at, last, 0, given);
    });
}

/// Tiles of W that the second-level cache holds beside a panel meet the first panel out of memory, the others there.
template <class Dots>
void many_panels(const ProductCall& call, std::int64_t first, std::int64_t last) {
    constexpr std::int64_t block_bytes = std::int64_t{256} << 10;
    const std::int64_t row_bytes = Dots::row_bytes(call);
    const std::int64_t at_once = std::max<std::int64_t>(2, block_bytes / (tile_rows * row_bytes) / 2 * 2);
    const std::int64_t end = tiles_of(last);
    for (std::int64_t block = first / tile_rows; block < end; block += at_once) {
        const std::int64_t block_end = std::min(end, block + at_once);
        for (std::int64_t panel = 0; panel < call.m; panel += panel_rows) {
            const char* x = static_cast<const char*>(call.packed) + panel * row_bytes;
            for (std::int64_t tile = block; tile < block_end; tile += 2) {
                const std::int64_t at[2] = {tile, std::min(tile + 1, block_end - 1)};
                const char* const tiles[2] = {tile_at(call, row_bytes, at[0]), tile_at(call, row_bytes, at[1])};
                float given[8][8];
                if (panel == 0)
                    two_tiles<Dots, Out::of_memory>(tiles, x, row_bytes / 16, given);
                else
                    two_tiles<Dots, Out::of_caches>(tiles, x, row_bytes / 16, given);
                save<Dots>(call, at, last, panel, given);
            }
        }
    }
}

template <class Dots>
void product(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (first >= last) return;
    if (call.m == 1)
        one_row<Dots>(call, first, last);
    else if (call.m == 2)
        few_rows<Dots, 1>(call, first, last);
    else if (call.m <= 4)
        few_rows<Dots, 2>(call, first, last);
    else if (call.m <= panel_rows)
        one_panel<Dots>(call, first, last);
    else
        many_panels<Dots>(call, first, last);
}

}  // namespace

void product_bf16(const ProductCall& call, std::int64_t first, std::int64_t last) {
    product<Bf16Dots>(call, first, last);
}

void product_int8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    product<Int8Dots>(call, first, last);
}

}  // namespace roofline::bench::neon
#pragma GCC pop_options
#endif
