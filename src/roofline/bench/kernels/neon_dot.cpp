// The products for AArch64 with dot products of bytes and neither bf16 nor i8mm (Neoverse N1, Cortex-A76, Apple M1).
// Weights lie in tiles of four rows by fours (products.hpp): a vector holds four bytes of each row, which meet a lane
// of x, and sums of rows lie in lanes. bf16 is widened to fp32 and so meets x in fp32, as it is.
//
// On a Neoverse N1 a core reads 8 bytes a cycle, fastest at one place, without asking ahead (four places side by side:
// 14 GB/s instead of 20), and two vector instructions start in each. So tiles are read one after the other, and four of
// these instructions for 16 bytes are what memory allows: one row of x takes 4 in bf16 (two to widen them, two
// products), 1 in int8, 4 in int4 and 11 for each group of 128, all that belongs to it.
#include "roofline/bench/kernels/fp8.hpp"
#include "roofline/bench/kernels/groups.hpp"
#include "roofline/bench/kernels/products.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <algorithm>
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <cstring>
#include <sys/auxv.h>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod,tune=neoverse-n1")
namespace roofline::bench::neon_dot {
namespace {

#define INLINE inline __attribute__((always_inline))

/// Weights that the second-level cache holds beside a panel meet the first panel out of memory, the others there.
constexpr std::int64_t block_bytes = std::int64_t{256} << 10;

/// Into the first-level cache, where the processor's own prefetchers have brought it near: loads that miss there would
/// hold up products that wait behind them (int8 18.3 without, bf16 13.1 GB/s).
constexpr std::int64_t bytes_ahead = 512;
INLINE void ask_ahead(const void* line) {
    __builtin_prefetch(static_cast<const char*>(line) + bytes_ahead);
}

/// A lane of one of some vectors.
template <int lane>
INLINE float32x4_t multiply_add(float32x4_t sum, float32x4_t w, const float32x4_t* x) {
    return vfmaq_laneq_f32(sum, w, x[lane / 4], lane % 4);
}
template <int lane>
INLINE int32x4_t multiply_add(int32x4_t sum, int8x16_t w, const int8x16_t* x) {
    return vdotq_laneq_s32(sum, w, x[lane / 4], lane % 4);
}

INLINE float32x4_t floats(float32x4_t sums) {
    return sums;
}
INLINE float32x4_t floats(int32x4_t sums) {
    return vcvtq_f32_s32(sums);
}

/// 16 bytes of weights are `steps` vectors of four rows, each of which meets four bytes of x (a number, or four). So a
/// row of x has as many times the bytes of a row of weights.
struct Fp32 {
    static constexpr int steps = 1;
    using Sum = float32x4_t;
    using X = float32x4_t;
    static X load_x(const char* from) { return vld1q_f32(reinterpret_cast<const float*>(from)); }
    static INLINE void widen(const char* from, float32x4_t* w) {
        w[0] = vld1q_f32(reinterpret_cast<const float*>(from));
    }
    static std::int64_t row_bytes(const ProductCall& call) { return call.k * 4; }
    static float scale(const ProductCall&, std::int64_t, std::int64_t) { return 1.0F; }
};

struct Bf16s {
    static constexpr int steps = 2;
    using Sum = float32x4_t;
    using X = float32x4_t;
    static X load_x(const char* from) { return Fp32::load_x(from); }
    static INLINE void widen(const char* from, float32x4_t* w) {
        // Not a shift: only one of two pipes has those.
        const uint16x8_t pairs = vld1q_u16(reinterpret_cast<const std::uint16_t*>(from));
        w[0] = vreinterpretq_f32_u16(vtrn1q_u16(vdupq_n_u16(0), pairs));
        w[1] = vreinterpretq_f32_u16(vtrn2q_u16(vdupq_n_u16(0), pairs));
    }
    static std::int64_t row_bytes(const ProductCall& call) { return call.k * 2; }
    static float scale(const ProductCall&, std::int64_t, std::int64_t) { return 1.0F; }
};

struct Int8s {
    static constexpr int steps = 1;
    using Sum = int32x4_t;
    using X = int8x16_t;
    static X load_x(const char* from) { return vld1q_s8(reinterpret_cast<const std::int8_t*>(from)); }
    static INLINE void widen(const char* from, int8x16_t* w) { w[0] = load_x(from); }
    static std::int64_t row_bytes(const ProductCall& call) { return call.k; }
    static float scale(const ProductCall& call, std::int64_t row, std::int64_t column) {
        return call.weights.row_scales[row] * call.x_scales[column];
    }
};

template <class Type>
const char* tile_at(const ProductCall& call, std::int64_t tile) {
    return static_cast<const char*>(call.weights.values) + tile * tile_rows * Type::row_bytes(call);
}

template <class Type>
void save(const ProductCall& call, std::int64_t tile, std::int64_t last, std::int64_t column, float32x4_t sums) {
    if (column >= call.m) return;
    float rows[tile_rows];
    vst1q_f32(rows, sums);
    const std::int64_t row = tile * tile_rows;
    for (std::int64_t i = 0; i < std::min(tile_rows, last - row); ++i)
        call.y[column * call.pitch() + row + i] = rows[i] * Type::scale(call, row + i, column);
}

/// A line of a tile, 16 bytes of each row, with one row of x.
template <class Type, int... vector>
INLINE void add_line(typename Type::Sum (&sums)[4], const char* line, const char* x,
                     std::integer_sequence<int, vector...>) {
    constexpr int steps = Type::steps;
    ask_ahead(line);
    typename Type::X values[steps];
    for (int i = 0; i < steps; ++i) values[i] = Type::load_x(x + 16 * i);
    (
        [&] {
            typename Type::X w[steps];
            Type::widen(line + 16 * vector, w);
            sums[vector] = multiply_add<vector * steps>(sums[vector], w[0], values);
            if constexpr (steps == 2)
                sums[(vector + 2) % 4] = multiply_add<vector * steps + 1>(sums[(vector + 2) % 4], w[1], values);
        }(),
        ...);
}

/// A tile with one row of x.
template <class Type>
INLINE typename Type::Sum tile_sums(const char* line, const char* x, std::int64_t row_bytes) {
    typename Type::Sum sums[4] = {};
    const char* const end = line + tile_rows * row_bytes;
    for (; line != end; line += 64, x += 16 * Type::steps)
        add_line<Type>(sums, line, x, std::make_integer_sequence<int, 4>());
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// bf16 is held back by its vector instructions as much as by memory. Out of a first-level cache the compiler's order
// takes 9 to 10 cycles a line, and 12 out of memory; here a vector is widened while the one before it is multiplied: 8
// and 9. v0 to v7: sums, v16 to v19: two vectors widened, v20 to v23: a line, v24 and v25, v28 and v29: x beside it,
// v31: zeros, which become the lower halves. Two lines are a step: a row has 16 numbers at the least.
// clang-format off: a line is a vector
#define WIDEN(even, odd, w) "trn1 v" #even ".8h, v31.8h, v" #w ".8h\n trn2 v" #odd ".8h, v31.8h, v" #w ".8h\n"
#define ADD(one, two, even, odd, x, lane, next) \
    "fmla v" #one ".4s, v" #even ".4s, v" #x ".s[" #lane "]\n fmla v" #two ".4s, v" #odd ".4s, v" #x ".s[" #next "]\n"
#define LINE(at, x_at, x, next_x)                                       \
    "ldp q20, q21, [%[line], #" #at "]\n ldp q22, q23, [%[line], #" #at \
    " + 32]\n"                                                          \
    "prfm pldl1keep, [%[line], #" #at " + 512]\n ldp q" #x ", q" #next_x ", [%[x], #" #x_at "]\n"
template <>
INLINE float32x4_t tile_sums<Bf16s>(const char* line, const char* x, std::int64_t row_bytes) {
    std::int64_t steps = row_bytes / 32;
    register float32x4_t sum asm("v0");
    asm volatile(
        "movi v0.4s, #0\n movi v1.4s, #0\n movi v2.4s, #0\n movi v3.4s, #0\n movi v4.4s, #0\n movi v5.4s, #0\n"
        "movi v6.4s, #0\n movi v7.4s, #0\n movi v18.4s, #0\n movi v19.4s, #0\n movi v25.4s, #0\n movi v31.4s, #0\n"
        "1:\n" LINE(0, 0, 28, 29)
        WIDEN(16, 17, 20) ADD(6, 7, 18, 19, 25, 2, 3)
        WIDEN(18, 19, 21) ADD(0, 1, 16, 17, 28, 0, 1)
        WIDEN(16, 17, 22) ADD(2, 3, 18, 19, 28, 2, 3)
        WIDEN(18, 19, 23) ADD(4, 5, 16, 17, 29, 0, 1)
        LINE(64, 32, 24, 25)
        WIDEN(16, 17, 20) ADD(6, 7, 18, 19, 29, 2, 3)
        WIDEN(18, 19, 21) ADD(0, 1, 16, 17, 24, 0, 1)
        WIDEN(16, 17, 22) ADD(2, 3, 18, 19, 24, 2, 3)
        WIDEN(18, 19, 23) ADD(4, 5, 16, 17, 25, 0, 1)
        "add %[line], %[line], #128\n add %[x], %[x], #64\n subs %[steps], %[steps], #1\n b.ne 1b\n"
        ADD(6, 7, 18, 19, 25, 2, 3)
        "fadd v0.4s, v0.4s, v1.4s\n fadd v2.4s, v2.4s, v3.4s\n fadd v4.4s, v4.4s, v5.4s\n fadd v6.4s, v6.4s, v7.4s\n"
        "fadd v0.4s, v0.4s, v2.4s\n fadd v4.4s, v4.4s, v6.4s\n fadd v0.4s, v0.4s, v4.4s\n"
        : [line] "+r"(line), [x] "+r"(x), [steps] "+r"(steps), "=w"(sum)
        :
        : "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25",
          "v28", "v29", "v31", "cc", "memory");
    return sum;
}
// clang-format on
#undef WIDEN
#undef ADD
#undef LINE

template <class Type>
void one_row(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const auto* x = static_cast<const char*>(call.x);
    for (std::int64_t tile = first / tile_rows; tile * tile_rows < last; ++tile)
        save<Type>(call, tile, last, 0, floats(tile_sums<Type>(tile_at<Type>(call, tile), x, Type::row_bytes(call))));
}

/// Sums of each column += a vector of weights and what it meets of x.
template <class Type, class Sum, class W, int... column>
INLINE void add_columns(Sum* sums, W w, const typename Type::X* x, std::integer_sequence<int, column...>) {
    ((sums[column] = multiply_add<column>(sums[column], w, x)), ...);
}

/// All of it is there before anything that comes after.
INLINE void have(float32x4_t (&w)[8]) {
    asm("" : "+w"(w[0]), "+w"(w[1]), "+w"(w[2]), "+w"(w[3]), "+w"(w[4]), "+w"(w[5]), "+w"(w[6]), "+w"(w[7]));
}

/// Vectors that are loaded (and widened) before they are multiplied, as measured. Widening a line at a time is best for
/// four columns: its results come two cycles sooner than those of products, which make room for them at every change
/// from the one to the other.
template <class Type, int tiles, int columns>
constexpr int at_a_time = tiles > 1 || std::is_same_v<Type, Fp32> ? 1
                          : std::is_same_v<Type, Int8s>           ? 4
                          : columns == 4                          ? 4
                                                                  : 1;

/// Tiles of so many bytes by the first `columns` rows of a panel.
template <class Type, int tiles, int columns>
INLINE void block(const char* const (&from)[tiles], std::int64_t bytes, const char* x,
                  typename Type::Sum (&given)[tiles][columns]) {
    constexpr int steps = Type::steps;
    constexpr int vectors = (columns + 3) / 4;  // of x
    constexpr int some = at_a_time<Type, tiles, columns>;
    // Where columns are few their sums are more, or products would wait for each other.
    constexpr int kinds = tiles * columns <= 4 ? 2 : 1;
    typename Type::Sum sums[tiles][kinds][columns] = {};
    const std::int64_t half = bytes * steps;  // of the panel
#pragma GCC unroll 2
    for (std::int64_t byte = 0; byte < bytes; byte += 16 * some) {
        typename Type::X w[tiles][some * steps];
        for (int i = 0; i < tiles; ++i) {
            if constexpr (some == 4) ask_ahead(from[i] + byte);
#pragma GCC unroll 4
            for (int j = 0; j < some; ++j) Type::widen(from[i] + byte + 16 * j, w[i] + j * steps);
            if constexpr (some * steps == 8) have(w[i]);
        }
#pragma GCC unroll 8
        for (int step = 0; step < some * steps; ++step, x += 16) {
            typename Type::X values[vectors];
            for (int i = 0; i < vectors; ++i) values[i] = Type::load_x(x + i * half);
            for (int i = 0; i < tiles; ++i)
                add_columns<Type>(sums[i][step % kinds], w[i][step], values,
                                  std::make_integer_sequence<int, columns>());
        }
    }
#pragma GCC unroll 2
    for (int i = 0; i < tiles; ++i) {
#pragma GCC unroll 8
        for (int column = 0; column < columns; ++column) {
            given[i][column] = sums[i][0][column];
#pragma GCC unroll 4
            for (int kind = 1; kind < kinds; ++kind) given[i][column] = given[i][column] + sums[i][kind][column];
        }
    }
}

template <class Type, int columns>
void few_rows(const ProductCall& call, std::int64_t first, std::int64_t last) {
    for (std::int64_t tile = first / tile_rows; tile * tile_rows < last; ++tile) {
        typename Type::Sum sums[1][columns];
        block<Type, 1, columns>({tile_at<Type>(call, tile)}, tile_rows * Type::row_bytes(call),
                                static_cast<const char*>(call.packed), sums);
#pragma GCC unroll 8
        for (int column = 0; column < columns; ++column) save<Type>(call, tile, last, column, floats(sums[0][column]));
    }
}

/// Tiles as they are, or widened into `room`.
template <class Type>
const char* wide_tiles(const char* from, std::int64_t bytes, std::vector<float>& room) {
    if constexpr (Type::steps == 1) {
        return from;
    } else {
        room.resize(static_cast<std::size_t>(bytes / 2));
        float* to = room.data();
        for (std::int64_t byte = 0; byte < bytes; byte += 16, to += 8) {
            float32x4_t w[2];
            Type::widen(from + byte, w);
            vst1q_f32(to, w[0]);
            vst1q_f32(to + 4, w[1]);
        }
        return reinterpret_cast<const char*>(room.data());
    }
}

/// bf16 is widened once for all panels.
template <class Type>
void many_panels(const ProductCall& call, std::int64_t first, std::int64_t last) {
    using Wide = std::conditional_t<Type::steps == 1, Type, Fp32>;
    static thread_local std::vector<float> room;
    const std::int64_t tile_bytes = tile_rows * Type::row_bytes(call);
    const std::int64_t wide_bytes = tile_bytes * Type::steps;
    const std::int64_t at_once = std::max<std::int64_t>(2, block_bytes / wide_bytes / 2 * 2);
    const std::int64_t end = (last + tile_rows - 1) / tile_rows;
    for (std::int64_t begin = first / tile_rows; begin < end; begin += at_once) {
        const std::int64_t block_end = std::min(end, begin + at_once);
        const char* w = wide_tiles<Type>(tile_at<Type>(call, begin), (block_end - begin) * tile_bytes, room);
        for (std::int64_t panel = 0; panel < call.m; panel += panel_rows) {
            const char* x = static_cast<const char*>(call.packed) + panel * Type::row_bytes(call) * Type::steps;
            for (std::int64_t tile = begin; tile < block_end; tile += 2) {
                const std::int64_t at[2] = {tile, std::min(tile + 1, block_end - 1)};
                typename Wide::Sum sums[2][8];
                block<Wide, 2, 8>({w + (at[0] - begin) * wide_bytes, w + (at[1] - begin) * wide_bytes}, wide_bytes, x,
                                  sums);
#pragma GCC unroll 16
                for (int i = 0; i < 16; ++i)
                    save<Type>(call, at[i / 8], last, panel + i % 8, floats(sums[i / 8][i % 8]));
            }
        }
    }
}

template <class Type>
void product(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (call.m == 1)
        one_row<Type>(call, first, last);
    else if (call.m == 2)
        few_rows<Type, 2>(call, first, last);
    else if (call.m <= 4)
        few_rows<Type, 4>(call, first, last);
    else if (call.m <= panel_rows)
        few_rows<Type, 8>(call, first, last);
    else
        many_panels<Type>(call, first, last);
}

/// What a group of int4 needs of some rows of x: their scales, and the sums of their numbers, less than nothing, for
/// which zero points are multiplied.
template <int columns>
struct Factors {
    float scales[columns];
    float sums[columns];
};

template <int columns>
const std::vector<Factors<columns>>& factors_of(const ProductCall& call, std::int64_t panel) {
    static thread_local std::vector<Factors<columns>> factors;
    const std::int64_t groups = call.k / int4_group;
    factors.assign(static_cast<std::size_t>(groups), {});
    for (std::int64_t column = 0; column < std::min<std::int64_t>(columns, call.m - panel); ++column) {
        for (std::int64_t group = 0; group < groups; ++group) {
            Factors<columns>& here = factors[static_cast<std::size_t>(group)];
            const std::int64_t from = (panel + column) * groups + group;
            here.scales[column] = call.x_scales[from];
            here.sums[column] = -call.x_sums[from];
        }
    }
    return factors;
}

// A zero point becomes a float as the last byte of 2^23, which is then taken off again.
constexpr std::uint64_t float_byte = std::uint64_t{0x4B} << 32U;  // beside four zero points
constexpr std::uint8_t none = 255;
alignas(16) constexpr std::uint8_t to_floats[16] = {0, none, none, 4, 1, none, none, 4,
                                                    2, none, none, 4, 3, none, none, 4};

// One row of x: tiles after each other, groups after each other. Instructions for 16 bytes are a shift and two
// products; those of a group (widening its scales and sums, taking zero points apart, adding up) are 10 more, and as
// nothing of the next group waits for them they need no place of their own. v0 and v1: sums, v20 and v21: L and H,
// v22 to v25: weights, v26 and v27: the same shifted, v28: totals, v29: to_floats, v30: 2^23.
// clang-format off: a line is a step
#define VECTOR(w, low, lane, last_low, last_lane, last_x)                         \
    "shl v" #low ".16b, v" #w ".16b, #4\n udot v0.4s, v" #w ".16b, v21.4b[" #lane \
    "]\n"                                                                         \
    "udot v1.4s, v" #last_low ".16b, v" #last_x ".4b[" #last_lane "]\n"
#define RUN(at, x_at, x, last_x)                                                                         \
    "ldp q22, q23, [%[values], #" #at "]\n ldp q" #x ", q21, [%[x], #" #x_at                             \
    "]\n"                                                                                                \
    "ldp q24, q25, [%[values], #" #at " + 32]\n prfm pldl1keep, [%[values], #" #at                       \
    " + 768]\n" VECTOR(22, 26, 0, 27, 3, last_x) VECTOR(23, 27, 1, 26, 0, x) VECTOR(24, 26, 2, 27, 1, x) \
        VECTOR(25, 27, 3, 26, 2, x)
struct Run {
    const std::uint8_t* values;
    const Bf16* scales;
    const std::int16_t* sums;
    const std::uint8_t* zeros;
    float* y;
};

void tiles_by_one_row(Run run, std::int64_t tiles, std::int64_t groups, const std::int8_t* x,
                      const Factors<1>* factors) {
    constexpr std::uint64_t four_halves = 0x0F0F0F0FU;
    std::uint64_t zeros;
    std::uint64_t shift;
    std::int64_t left;
    const std::int8_t* x_now;
    const Factors<1>* factors_now;
    asm volatile(
        "ldr q29, [%[to_floats]]\n movi v30.4s, #0x4b, lsl #24\n"
        "1:\n"
        "mov %[left], %[groups]\n mov %[x], %[x_begin]\n mov %[factors], %[factors_begin]\n mov %[shift], #0\n"
        "movi v28.4s, #0\n"
        "2:\n"
        "ldr d0, [%[sums]], #8\n movi v1.4s, #0\n movi v27.4s, #0\n sshll v0.4s, v0.4h, #7\n"
        RUN(0, 0, 20, 20) RUN(64, 32, 19, 20) RUN(128, 64, 20, 19) RUN(192, 96, 19, 20)
        "udot v1.4s, v27.16b, v19.4b[3]\n"
        "ldr %w[zero], [%[zeros]]\n ldr d2, [%[scales]], #8\n ldr d3, [%[factors]], #8\n"
        "lsr %[zero], %[zero], %[shift]\n add %[zeros], %[zeros], %[shift]\n eor %[shift], %[shift], #4\n"
        "and %[zero], %[zero], %[halves]\n orr %[zero], %[zero], %[float_byte]\n fmov d4, %[zero]\n"
        "shll v2.4s, v2.4h, #16\n tbl v4.16b, {v4.16b}, v29.16b\n"
        "add v0.4s, v0.4s, v1.4s\n fsub v4.4s, v4.4s, v30.4s\n scvtf v0.4s, v0.4s\n fmul v2.4s, v2.4s, v3.s[0]\n"
        "fmla v0.4s, v4.4s, v3.s[1]\n fmla v28.4s, v0.4s, v2.4s\n"
        "add %[values], %[values], #256\n add %[x], %[x], #128\n subs %[left], %[left], #1\n b.ne 2b\n"
        "str q28, [%[y]], #16\n add %[values], %[values], #64\n add %[zeros], %[zeros], %[shift]\n"
        "subs %[tiles], %[tiles], #1\n b.ne 1b\n"
        : [values] "+r"(run.values), [scales] "+r"(run.scales), [sums] "+r"(run.sums), [zeros] "+r"(run.zeros),
          [y] "+r"(run.y), [tiles] "+r"(tiles), [left] "=&r"(left), [x] "=&r"(x_now), [factors] "=&r"(factors_now),
          [shift] "=&r"(shift), [zero] "=&r"(zeros)
        : [groups] "r"(groups), [x_begin] "r"(x), [factors_begin] "r"(factors), [to_floats] "r"(to_floats),
          [halves] "r"(four_halves), [float_byte] "r"(float_byte)
        : "v0", "v1", "v2", "v3", "v4", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29",
          "v30", "cc", "memory");
}
// clang-format on
#undef VECTOR
#undef RUN

void vector_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (first >= last) return;
    const std::int64_t groups = call.k / int4_group;
    const Int4Tiles lie(call.k);
    const Factors<1>* factors = factors_of<1>(call, 0).data();
    const auto* x = static_cast<const std::int8_t*>(call.x);
    const auto run = [&](std::int64_t tile, std::int64_t tiles, float* y) {
        tiles_by_one_row({.values = static_cast<const std::uint8_t*>(call.weights.values) + tile * lie.values,
                          .scales = call.weights.group_scales + tile * lie.scales,
                          .sums = call.weights.group_sums + tile * lie.scales,
                          .zeros = call.weights.group_zeros + tile * lie.zeros,
                          .y = y},
                         tiles, groups, x, factors);
    };
    const std::int64_t whole = last / tile_rows;
    if (first / tile_rows < whole) run(first / tile_rows, whole - first / tile_rows, call.y + first);
    if (last % tile_rows == 0) return;
    float rows[tile_rows];
    run(whole, 1, rows);
    std::copy_n(rows, last % tile_rows, call.y + whole * tile_rows);
}

/// What a group gives with each column goes into the totals.
template <int columns, int... column>
INLINE void add_group(float32x4_t* totals, const uint32x4_t* sums, float32x4_t scales, float32x4_t zeros,
                      const Factors<columns>& factors, std::integer_sequence<int, column...>) {
    ((totals[column] = vfmaq_f32(
          totals[column], vfmaq_n_f32(vcvtq_f32_s32(vreinterpretq_s32_u32(sums[column])), zeros, factors.sums[column]),
          vmulq_n_f32(scales, factors.scales[column]))),
     ...);
}

template <int... column>
INLINE void add_bytes(uint32x4_t* sums, uint8x16_t w, const uint8x16_t* x, std::integer_sequence<int, column...>) {
    ((sums[column] = vdotq_laneq_u32(sums[column], w, x[column / 4], column % 4)), ...);
}

/// The first `columns` rows of a panel.
template <int columns>
void rows_int4(const ProductCall& call, std::int64_t first, std::int64_t last, std::int64_t panel) {
    constexpr int vectors = (columns + 3) / 4;  // of x
    constexpr std::make_integer_sequence<int, columns> all;
    const std::int64_t groups = call.k / int4_group;
    const Int4Tiles lie(call.k);
    const Factors<columns>* factors = factors_of<columns>(call, panel).data();
    const std::int64_t half = 4 * call.k;  // of a panel
    const uint8x16_t places = vld1q_u8(to_floats);
    const float32x4_t without = vdupq_n_f32(8388608.0F);
    for (std::int64_t tile = first / tile_rows; tile * tile_rows < last; ++tile) {
        const auto* w = static_cast<const std::uint8_t*>(call.weights.values) + tile * lie.values;
        const auto* x = static_cast<const std::uint8_t*>(call.packed) + panel * call.k;
        float32x4_t totals[columns] = {};
        for (std::int64_t group = 0; group < groups; ++group) {
            const std::int64_t at = tile * lie.scales + group * tile_rows;
            const uint32x4_t begin = vreinterpretq_u32_s32(vshll_n_s16(vld1_s16(call.weights.group_sums + at), 7));
            uint32x4_t sums[columns];
#pragma GCC unroll 8
            for (int column = 0; column < columns; ++column) sums[column] = begin;
            for (int run = 0; run < 4; ++run, x += 32 * 4) {
#pragma GCC unroll 4
                for (int vector = 0; vector < 4; ++vector, w += 16) {
                    uint8x16_t low[vectors];
                    uint8x16_t high[vectors];
                    for (int i = 0; i < vectors; ++i) {
                        low[i] = vld1q_u8(x + 16 * vector + i * half);
                        high[i] = vld1q_u8(x + 16 * (vector + 4) + i * half);
                    }
                    const uint8x16_t whole = vld1q_u8(w);
                    add_bytes(sums, whole, high, all);
                    add_bytes(sums, vshlq_n_u8(whole, 4), low, all);
                }
            }
            std::uint32_t four;
            std::memcpy(&four, call.weights.group_zeros + tile * lie.zeros + group / 2 * tile_rows, 4);
            const std::uint64_t halves = (four >> (group % 2 * 4) & 0x0F0F0F0FU) | float_byte;
            const uint8x16_t bytes = vreinterpretq_u8_u64(vsetq_lane_u64(halves, vdupq_n_u64(0), 0));
            const float32x4_t zeros = vsubq_f32(vreinterpretq_f32_u8(vqtbl1q_u8(bytes, places)), without);
            const uint16x4_t scales = vld1_u16(reinterpret_cast<const std::uint16_t*>(call.weights.group_scales + at));
            add_group<columns>(totals, sums, vreinterpretq_f32_u32(vshll_n_u16(scales, 16)), zeros, factors[group],
                               all);
        }
#pragma GCC unroll 8
        for (int column = 0; column < columns; ++column) save<Fp32>(call, tile, last, panel + column, totals[column]);
    }
}

void product_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (call.m == 1) return vector_int4(call, first, last);
    if (call.m == 2) return rows_int4<2>(call, first, last, 0);
    if (call.m <= 4) return rows_int4<4>(call, first, last, 0);
    const std::int64_t at_once =
        call.m <= panel_rows ? last - first : std::max<std::int64_t>(64, block_bytes / (call.k / 2) / 64 * 64);
    for (std::int64_t begin = first; begin < last; begin += at_once) {
        for (std::int64_t panel = 0; panel < call.m; panel += panel_rows)
            rows_int4<8>(call, begin, std::min(last, begin + at_once), panel);
    }
}

/// Four bytes of each of four rows of x after another, and then of the other four: few rows are half of a panel.
void pack_fours(const void* x, std::int64_t m, std::int64_t row_bytes, WeightFormat, void* packed) {
    const auto* from = static_cast<const char*>(x);
    auto* to = static_cast<char*>(packed);
    for (std::int64_t half = 0; half < panel_rows; half += 4) {
        for (std::int64_t at = 0; at < row_bytes; at += 4) {
            for (std::int64_t row = half; row < half + 4; ++row, to += 4) {
                if (row < m)
                    std::memcpy(to, from + row * row_bytes + at, 4);
                else
                    std::memset(to, 0, 4);
            }
        }
    }
}

bool reads_panels(WeightFormat type, std::int64_t m, std::int64_t, std::int64_t) {
    return !stays_in_rows(type) && m > 1;
}

}  // namespace
}  // namespace roofline::bench::neon_dot
#pragma GCC pop_options

namespace roofline::bench {
const ProductKernels* neon_dot_products() {
    static constexpr ProductKernels kernels = {.name = "NEON with dot products",
                                               .fp32 = neon_dot::product<neon_dot::Fp32>,
                                               .bf16 = neon_dot::product<neon_dot::Bf16s>,
                                               .int8 = neon_dot::product<neon_dot::Int8s>,
                                               .int4 = neon_dot::product_int4,
                                               .groups = neon_groups,
                                               .fp8 = neon_fp8,
                                               .panels = {.pack = neon_dot::pack_fours, .read = neon_dot::reads_panels},
                                               .tiles = Tiles::fours,
                                               .x_of_bf16 = DType::fp32,
                                               .whole_bytes = WholeBytes::of_unsigned_x};
    return (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 ? &kernels : nullptr;
}
}  // namespace roofline::bench
#else
namespace roofline::bench {
const ProductKernels* neon_dot_products() {
    return nullptr;
}
}  // namespace roofline::bench
#endif
