// One row of x against int4 weights in tiles of four rows (products.hpp), four tiles side by side.
//
// The budget on a Neoverse-V1: a core reads 45 GB/s at 2.6 GHz, 17 bytes a cycle, so a group of 64 bytes, a scale and a
// zero point (66.5 bytes) of eight rows may take 31 cycles, and four vector instructions start in each: 123. Taking
// half bytes apart costs 4 for every 16 bytes (mask, shift, two products), 128 for the group. So bytes are multiplied
// whole (narrow_for_whole_bytes): 16 l is the byte shifted left, l + 16 h the byte itself: 3 for every 16 bytes, 96 for
// the group. Sums of a tile's rows lie in the lanes of a vector, and so do their scales and zero points: nothing is
// added up across lanes, and all that belongs to the group takes another 18.
//
// The order of instructions is the kernel. What belongs to a group is spread over the products of the next one, and
// its zero points, times the sum of x, are where the products of the group begin: so no product waits. Each follows the
// load of its weights: an operand that was written long ago comes from the register file, which feeds two instructions
// a cycle, not four. One tile goes on where the last one ended, without leaving the loop: its totals are taken out
// while the next is under way. What comes 6 KiB on is asked for into the third-level cache, as in neon_tiles.cpp, and
// what comes 1 KiB on into the first: four places are read 16 bytes at a time here.
#include "roofline/bench/kernels/neon_tiles.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <algorithm>
#include <arm_neon.h>
#include <vector>

#include "roofline/bench/kernels/side_by_side.hpp"

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16+i8mm+dotprod,tune=neoverse-v1")
namespace roofline::bench::neon {
namespace {

constexpr int tiles = 4;                       // side by side
constexpr std::int64_t way_bytes = 16 * 1024;  // of a first-level cache of 64 KiB in four ways

/// What a group needs of x: the scale of the group before it, which is worked into the totals meanwhile, and the sum of
/// the one after it, less than nothing, for which zero points are multiplied. After the last group comes the first, of
/// the next tile.
struct Factors {
    float scale_before;
    std::int32_t sum_after;
};

const std::vector<Factors>& factors_of(const ProductCall& call, std::int64_t groups) {
    static thread_local std::vector<Factors> factors;
    factors.resize(static_cast<std::size_t>(groups));
    for (std::int64_t group = 0; group < groups; ++group) {
        factors[static_cast<std::size_t>(group)] = {
            .scale_before = call.x_scales[(group + groups - 1) % groups],
            .sum_after = -static_cast<std::int32_t>(call.x_sums[(group + 1) % groups])};
    }
    return factors;
}

/// Tiles after each other in memory at four places. The order of members is known to the loop.
struct Run {
    const std::uint8_t* values[tiles];
    const Bf16* scales[tiles];
    const std::uint8_t* zeros[tiles];
    const std::int8_t* x;
    const std::int8_t* x_end;
    const Factors* factors;
    std::int64_t groups_left;  // of a place: those of one tile, or of many if a tile has an even number
    float* given;              // 16 numbers of no use, then 16 for each tile of a place
};

// x0 to x3: weights, x4 to x7: scales, x8 to x11: zero points, x12: x, x13: its end, x14: factors, x15: groups left,
// x16: totals, x17 and x19: bytes of scales read so far, before the last group and with it, x20: bytes of zero points.
// v20 and v21: L and H of 16 + 16 numbers of x. v22 to v25: weights, v26 to v29: the same shifted. H is multiplied into
// v0 to v3 or v16 to v19, whichever begin at the zero points, L into v4 to v7. v8 to v11: totals, v12 to v15: what the
// group before has given. v30: its factors, v31: from four bytes to four words.
// clang-format off: a line is a step
#define LOAD(tile, w, at, lane) "ldr q" #w ", [x" #tile ", #" #at " + 16 * " #lane "]\n"
#define WHOLE(sum, w, lane) "usdot v" #sum ".4s, v" #w ".16b, v21.4b[" #lane "]\n"
#define SHIFT(low, w) "shl v" #low ".16b, v" #w ".16b, #4\n"
#define LOW(sum, low, lane) "usdot v" #sum ".4s, v" #low ".16b, v20.4b[" #lane "]\n"
#define AHEAD_3(tile, at) "prfm pldl3keep, [x" #tile ", #" #at " + 6144]\n"
#define AHEAD_1(tile, at) "prfm pldl1keep, [x" #tile ", #" #at " + 1024]\n"
// One lane of x with all four tiles, and three steps of something else.
#define FIRST(first, second, third) first
#define SECOND(first, second, third) second
#define THIRD(first, second, third) third
#define LANE(a, b, c, d, at, lane, more)                                                                     \
    LOAD(0, 22, at, lane) SHIFT(26, 22) LOAD(1, 23, at, lane) LOAD(2, 24, at, lane)                          \
    AHEAD_1(lane, at) LOAD(3, 25, at, lane) FIRST more SHIFT(27, 23) LOW(4, 26, lane)                        \
    SHIFT(28, 24) WHOLE(a, 22, lane) SECOND more SHIFT(29, 25) WHOLE(c, 24, lane)                            \
    AHEAD_3(lane, at) WHOLE(d, 25, lane) WHOLE(b, 23, lane) LOW(5, 27, lane)                                 \
    THIRD more LOW(6, 28, lane) LOW(7, 29, lane)
// A line of each tile: four lanes of x, and a step of something else for each of the four tiles.
#define LINE(a, b, c, d, at, x_at, more_0, more_1, more_2, more_3)                                           \
    "ldp q20, q21, [x12, #" #x_at "]\n"                                                                      \
    LANE(a, b, c, d, at, 0, more_0) LANE(a, b, c, d, at, 1, more_1)                                          \
    LANE(a, b, c, d, at, 2, more_2) LANE(a, b, c, d, at, 3, more_3)
// Dots and scales become floats; they go into the total.
#define WIDEN(from, dots, scales)                                                                            \
    "ldr d" #scales ", [x" #from ", x17]\n",                                                                 \
    "scvtf v" #dots ".4s, v" #dots ".4s\n", "shll v" #scales ".4s, v" #scales ".4h, #16\n"
#define SCALE(total, dots, scales)                                                                           \
    "fmul v" #scales ".4s, v" #scales ".4s, v30.s[0]\n",                                                     \
    "fmla v" #total ".4s, v" #dots ".4s, v" #scales ".4s\n", ""
// Zero points of a group, and where its products begin.
#define BOTH_ZEROS(from, sum)                                                                                \
    "ldr s" #sum ", [x" #from ", x20]\n", "tbl v" #sum ".16b, {v" #sum ".16b}, v31.16b\n"
#define EVEN_ZEROS(from, sum) BOTH_ZEROS(from, sum), "bic v" #sum ".4s, #0xf0\n"
#define ODD_ZEROS(from, sum) BOTH_ZEROS(from, sum), "ushr v" #sum ".4s, v" #sum ".4s, #4\n"
#define BEGIN(sum) "mul v" #sum ".4s, v" #sum ".4s, v30.s[1]\n", "", ""
#define GROUP(a, b, c, d, e, f, g, h, TOTALS, ZEROS)                                                         \
    "ldr d30, [x14], #8\n movi v4.2d, #0\n movi v5.2d, #0\n movi v6.2d, #0\n movi v7.2d, #0\n"               \
    LINE(a, b, c, d, 0, 0, (WIDEN(4, 12, e)), (WIDEN(5, 13, f)), (WIDEN(6, 14, g)), (WIDEN(7, 15, h)))       \
    LINE(a, b, c, d, 64, 32, (SCALE(8, 12, e)), (SCALE(9, 13, f)), (SCALE(10, 14, g)), (SCALE(11, 15, h)))   \
    TOTALS                                                                                                   \
    LINE(a, b, c, d, 128, 64, (ZEROS(8, e)), (ZEROS(9, f)), (ZEROS(10, g)), (ZEROS(11, h)))                  \
    LINE(a, b, c, d, 192, 96, (BEGIN(e)), (BEGIN(f)), (BEGIN(g)), (BEGIN(h)))                                \
    "add v12.4s, v" #a ".4s, v4.4s\n add v13.4s, v" #b ".4s, v5.4s\n"                                        \
    "add v14.4s, v" #c ".4s, v6.4s\n add v15.4s, v" #d ".4s, v7.4s\n"                                        \
    "add x0, x0, #256\n add x1, x1, #256\n add x2, x2, #256\n add x3, x3, #256\n add x12, x12, #128\n"       \
    "mov x17, x19\n add x19, x19, #8\n sub x15, x15, #1\n"
// Totals of a tile go out and begin anew.
#define STORE "stp q8, q9, [x16], #32\n stp q10, q11, [x16], #32\n"
#define CLEAR "movi v8.2d, #0\n movi v9.2d, #0\n movi v10.2d, #0\n movi v11.2d, #0\n"
// In the first group of a tile, once the last of the tile before is in them.
#define TILE_BEFORE "ldr x21, [%[run], #96]\n cmp x12, x21\n b.ne 2f\n" STORE CLEAR "2:\n"
// The three steps at once.
#define ALL(...) STEPS(__VA_ARGS__)
#define STEPS(first, second, third) first second third
// clang-format on

inline void multiply(const Run& run) {
    constexpr std::uint8_t none = 255;
    alignas(16) static constexpr std::uint8_t words[16] = {0, none, none, none, 1, none, none, none,
                                                           2, none, none, none, 3, none, none, none};
    asm volatile(
        "ldr q31, [%[words]]\n"
        "ldp x0, x1, [%[run]]\n ldp x2, x3, [%[run], #16]\n ldp x4, x5, [%[run], #32]\n ldp x6, x7, [%[run], #48]\n"
        "ldp x8, x9, [%[run], #64]\n ldp x10, x11, [%[run], #80]\n ldp x12, x13, [%[run], #96]\n"
        "ldp x14, x15, [%[run], #112]\n ldr x16, [%[run], #128]\n"
        "mov x17, #0\n mov x19, #0\n mov x20, #0\n" CLEAR
        "movi v12.2d, #0\n movi v13.2d, #0\n movi v14.2d, #0\n movi v15.2d, #0\n"
        // the sum of the first group stands with the last one
        "sub x21, x13, x12\n add x21, x14, x21, lsr #4\n ldr d30, [x21, #-8]\n"
        ALL(EVEN_ZEROS(8, 0)) ALL(EVEN_ZEROS(9, 1)) ALL(EVEN_ZEROS(10, 2)) ALL(EVEN_ZEROS(11, 3))
        ALL(BEGIN(0)) ALL(BEGIN(1)) ALL(BEGIN(2)) ALL(BEGIN(3))
        "1:\n"
        GROUP(0, 1, 2, 3, 16, 17, 18, 19, TILE_BEFORE, ODD_ZEROS)
        "cbz x15, 3f\n cmp x15, #1\n cset x21, ne\n add x20, x20, x21, lsl #2\n"  // no zero points after the last
        GROUP(16, 17, 18, 19, 0, 1, 2, 3, "", EVEN_ZEROS)
        "cmp x12, x13\n b.ne 1b\n"
        "ldp x12, x13, [%[run], #96]\n ldr x14, [%[run], #112]\n"
        "add x0, x0, #64\n add x1, x1, #64\n add x2, x2, #64\n add x3, x3, #64\n"
        "cbnz x15, 1b\n"
        "3:\n ldr x14, [%[run], #112]\n ldr d30, [x14]\n"
        ALL(WIDEN(4, 12, 0)) ALL(WIDEN(5, 13, 1)) ALL(WIDEN(6, 14, 2)) ALL(WIDEN(7, 15, 3))
        ALL(SCALE(8, 12, 0)) ALL(SCALE(9, 13, 1)) ALL(SCALE(10, 14, 2)) ALL(SCALE(11, 15, 3)) STORE
        :
        : [run] "r"(&run), [words] "r"(words)
        : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
          "x17", "x19", "x20", "x21", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
          "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
          "v28", "v29", "v30", "v31", "cc", "memory");
}
#undef LOAD
#undef WHOLE
#undef SHIFT
#undef LOW
#undef AHEAD_3
#undef AHEAD_1
#undef LANE
#undef FIRST
#undef SECOND
#undef THIRD
#undef LINE
#undef WIDEN
#undef SCALE
#undef BOTH_ZEROS
#undef EVEN_ZEROS
#undef ODD_ZEROS
#undef BEGIN
#undef GROUP
#undef STORE
#undef CLEAR
#undef TILE_BEFORE
#undef ALL
#undef STEPS

}  // namespace

void vector_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (first >= last) return;
    const std::int64_t groups = call.k / int4_group;
    const Int4Tiles lie(call.k);
    const std::vector<Factors>& factors = factors_of(call, groups);
    const auto* x = static_cast<const std::int8_t*>(call.x);
    static thread_local std::vector<float> given;
    /// `count` tiles from each place on.
    const auto run = [&](const std::int64_t(&at)[tiles], std::int64_t count) {
        constexpr std::int64_t step = tiles * tile_rows;
        given.resize(static_cast<std::size_t>((count + 1) * step));
        Run four{.values = {},
                 .scales = {},
                 .zeros = {},
                 .x = x,
                 .x_end = x + call.k,
                 .factors = factors.data(),
                 .groups_left = count * groups,
                 .given = given.data()};
        for (int i = 0; i < tiles; ++i) {
            four.values[i] = static_cast<const std::uint8_t*>(call.weights.values) + at[i] * lie.values;
            four.scales[i] = call.weights.group_scales + at[i] * lie.scales;
            four.zeros[i] = call.weights.group_zeros + at[i] * lie.zeros;
        }
        multiply(four);
        for (std::int64_t tile = 0; tile < count; ++tile) {
            for (int i = 0; i < tiles; ++i) {
                const std::int64_t row = (at[i] + tile) * tile_rows;
                std::copy_n(given.data() + (tile + 1) * step + i * tile_rows, std::min(tile_rows, last - row),
                            call.y + row);
            }
        }
    };
    const std::int64_t begin = first / tile_rows;
    const std::int64_t end = (last + tile_rows - 1) / tile_rows;
    const std::int64_t stretch = spread_stretch((end - begin) / tiles, lie.values, way_bytes);
    const std::int64_t at_once = groups % 2 == 0 ? stretch : 1;
    for (std::int64_t at = begin; at < begin + stretch; at += at_once)
        run({at, at + stretch, at + 2 * stretch, at + 3 * stretch}, at_once);
    for (std::int64_t at = begin + tiles * stretch; at < end; at += tiles)
        run({at, std::min(at + 1, end - 1), std::min(at + 2, end - 1), std::min(at + 3, end - 1)}, 1);
}

}  // namespace roofline::bench::neon
#pragma GCC pop_options
#endif
