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
// a cycle, not four. What comes 6 KiB on is asked for into the third-level cache, as in neon_vector.cpp, and what comes
// 1 KiB on into the first: four places are read 16 bytes at a time here.
#include "roofline/bench/kernels/neon_vector.hpp"

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
/// the one after it, less than nothing, for which zero points are multiplied. One before the first and one after the
/// last frame them.
struct Factors {
    float scale_before;
    std::int32_t sum_after;
};

const std::vector<Factors>& factors_of(const ProductCall& call, std::int64_t groups) {
    static thread_local std::vector<Factors> factors;
    factors.assign(static_cast<std::size_t>(groups + 2), {});
    for (std::int64_t group = 0; group < groups; ++group) {
        factors[static_cast<std::size_t>(group)].sum_after = -static_cast<std::int32_t>(call.x_sums[group]);
        factors[static_cast<std::size_t>(group + 2)].scale_before = call.x_scales[group];
    }
    return factors;
}

// v20 and v21: L and H of 16 + 16 numbers of x. v22 to v25: weights, v26 to v29: the same shifted. H is multiplied into
// v0 to v3 or v16 to v19, whichever begin at the zero points, L into v4 to v7. v8 to v11: totals, v12 to v15: what the
// group before has given. v30: its factors, v31: from four bytes to four words.
// clang-format off: a line is a step
#define WHOLE(tile, sum, w, low, at, lane)                                                \
    "ldr q" #w ", [%[w" #tile "], #" #at " + 16 * " #lane "]\n"                           \
    "usdot v" #sum ".4s, v" #w ".16b, v21.4b[" #lane "]\n"                                \
    "shl v" #low ".16b, v" #w ".16b, #4\n"
#define LOW(sum, low, lane) "usdot v" #sum ".4s, v" #low ".16b, v20.4b[" #lane "]\n"
#define AHEAD(tile, at)                                                                   \
    "prfm pldl3keep, [%[w" #tile "], #" #at " + 6144]\n"                                  \
    "prfm pldl1keep, [%[w" #tile "], #" #at " + 1024]\n"
#define LANE(a, b, c, d, at, lane, more)                                                  \
    WHOLE(0, a, 22, 26, at, lane) WHOLE(1, b, 23, 27, at, lane) AHEAD(lane, at)           \
    LOW(4, 26, lane) WHOLE(2, c, 24, 28, at, lane) LOW(5, 27, lane) more                  \
    WHOLE(3, d, 25, 29, at, lane) LOW(6, 28, lane) LOW(7, 29, lane)
// A line of each tile: four lanes of x, and a step of something else for each of the four tiles.
#define LINE(a, b, c, d, at, x_at, more_0, more_1, more_2, more_3)                        \
    "ldp q20, q21, [%[x], #" #x_at "]\n"                                                  \
    LANE(a, b, c, d, at, 0, more_0) LANE(a, b, c, d, at, 1, more_1)                       \
    LANE(a, b, c, d, at, 2, more_2) LANE(a, b, c, d, at, 3, more_3)
// Dots and scales become floats; they go into the total.
#define WIDEN(tile, dots, scales)                                                         \
    "ldr d" #scales ", [%[s" #tile "], %[before]]\n"                                      \
    "scvtf v" #dots ".4s, v" #dots ".4s\n shll v" #scales ".4s, v" #scales ".4h, #16\n"
#define SCALE(total, dots, scales)                                                        \
    "fmul v" #scales ".4s, v" #scales ".4s, v30.s[0]\n"                                   \
    "fmla v" #total ".4s, v" #dots ".4s, v" #scales ".4s\n"
// Zero points of a group, and where its products begin.
#define BOTH_ZEROS(tile, sum)                                                             \
    "ldr s" #sum ", [%[z" #tile "], %[pair]]\n tbl v" #sum ".16b, {v" #sum ".16b}, v31.16b\n"
#define EVEN_ZEROS(tile, sum) BOTH_ZEROS(tile, sum) "bic v" #sum ".4s, #0xf0\n"
#define ODD_ZEROS(tile, sum) BOTH_ZEROS(tile, sum) "ushr v" #sum ".4s, v" #sum ".4s, #4\n"
#define BEGIN(sum) "mul v" #sum ".4s, v" #sum ".4s, v30.s[1]\n"
#define GROUP(a, b, c, d, e, f, g, h, ZEROS)                                                                    \
    "ldr d30, [%[factors]], #8\n movi v4.2d, #0\n movi v5.2d, #0\n movi v6.2d, #0\n movi v7.2d, #0\n"           \
    LINE(a, b, c, d, 0, 0, WIDEN(0, 12, e), WIDEN(1, 13, f), WIDEN(2, 14, g), WIDEN(3, 15, h))                  \
    LINE(a, b, c, d, 64, 32, SCALE(8, 12, e), SCALE(9, 13, f), SCALE(10, 14, g), SCALE(11, 15, h))              \
    LINE(a, b, c, d, 128, 64, ZEROS(0, e), ZEROS(1, f), ZEROS(2, g), ZEROS(3, h))                               \
    LINE(a, b, c, d, 192, 96, BEGIN(e), BEGIN(f), BEGIN(g), BEGIN(h))                                           \
    "add v12.4s, v" #a ".4s, v4.4s\n add v13.4s, v" #b ".4s, v5.4s\n"                                           \
    "add v14.4s, v" #c ".4s, v6.4s\n add v15.4s, v" #d ".4s, v7.4s\n"                                           \
    "add %[w0], %[w0], #256\n add %[w1], %[w1], #256\n add %[w2], %[w2], #256\n add %[w3], %[w3], #256\n"       \
    "add %[x], %[x], #128\n mov %[before], %[now]\n add %[now], %[now], #8\n subs %[count], %[count], #1\n"
// clang-format on

/// Four tiles, all groups: what their rows give.
struct FourTiles {
    const std::uint8_t* values[tiles];
    const Bf16* scales[tiles];
    const std::uint8_t* zeros[tiles];
};
inline void multiply(FourTiles& four, const std::int8_t* x, const Factors* factors, std::int64_t count,
                     float (&given)[tiles * int4_tile_rows]) {
    constexpr std::uint8_t none = 255;
    alignas(16) static constexpr std::uint8_t words[16] = {0, none, none, none, 1, none, none, none,
                                                           2, none, none, none, 3, none, none, none};
    std::int64_t before = 0;  // bytes of scales behind us, the first group again while there is none before
    std::int64_t now = 0;
    std::int64_t pair = 0;  // bytes of zero points
    asm volatile(
        "ldr q31, [%[words]]\n ldr d30, [%[factors]], #8\n"
        "movi v8.2d, #0\n movi v9.2d, #0\n movi v10.2d, #0\n movi v11.2d, #0\n"
        "movi v12.2d, #0\n movi v13.2d, #0\n movi v14.2d, #0\n movi v15.2d, #0\n"
        EVEN_ZEROS(0, 0) EVEN_ZEROS(1, 1) EVEN_ZEROS(2, 2) EVEN_ZEROS(3, 3) BEGIN(0) BEGIN(1) BEGIN(2) BEGIN(3)
        "1:\n"
        GROUP(0, 1, 2, 3, 16, 17, 18, 19, ODD_ZEROS) "add %[pair], %[pair], #4\n b.eq 2f\n"
        GROUP(16, 17, 18, 19, 0, 1, 2, 3, EVEN_ZEROS) "b.ne 1b\n"
        "2:\n ldr d30, [%[factors]]\n"
        WIDEN(0, 12, 0) WIDEN(1, 13, 1) WIDEN(2, 14, 2) WIDEN(3, 15, 3)
        SCALE(8, 12, 0) SCALE(9, 13, 1) SCALE(10, 14, 2) SCALE(11, 15, 3)
        "stp q8, q9, [%[given]]\n stp q10, q11, [%[given], #32]\n"
        : [w0] "+r"(four.values[0]), [w1] "+r"(four.values[1]), [w2] "+r"(four.values[2]), [w3] "+r"(four.values[3]),
          [x] "+r"(x), [factors] "+r"(factors), [before] "+r"(before), [now] "+r"(now), [pair] "+r"(pair),
          [count] "+r"(count)
        : [s0] "r"(four.scales[0]), [s1] "r"(four.scales[1]), [s2] "r"(four.scales[2]), [s3] "r"(four.scales[3]),
          [z0] "r"(four.zeros[0]), [z1] "r"(four.zeros[1]), [z2] "r"(four.zeros[2]), [z3] "r"(four.zeros[3]),
          [words] "r"(words), [given] "r"(given)
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
          "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc",
          "memory");
}
#undef WHOLE
#undef LOW
#undef AHEAD
#undef LANE
#undef LINE
#undef WIDEN
#undef SCALE
#undef BOTH_ZEROS
#undef EVEN_ZEROS
#undef ODD_ZEROS
#undef BEGIN
#undef GROUP

}  // namespace

void vector_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (first >= last) return;
    const std::int64_t groups = call.k / int4_group;
    const Int4Tiles lie(call.k);
    const std::vector<Factors>& factors = factors_of(call, groups);
    const auto* values = static_cast<const std::uint8_t*>(call.weights.values);
    const std::int64_t begin = first / int4_tile_rows;
    const std::int64_t end = (last + int4_tile_rows - 1) / int4_tile_rows;
    const std::int64_t stretch = spread_stretch((end - begin) / tiles, lie.values, way_bytes);
    side_by_side<tiles>(begin, end, stretch, [&](const std::int64_t(&at)[tiles]) {
        FourTiles four;
        for (int i = 0; i < tiles; ++i) {
            four.values[i] = values + at[i] * lie.values;
            four.scales[i] = call.weights.group_scales + at[i] * lie.scales;
            four.zeros[i] = call.weights.group_zeros + at[i] * lie.zeros;
        }
        float given[tiles * int4_tile_rows];
        multiply(four, static_cast<const std::int8_t*>(call.x), factors.data(), groups, given);
        for (int i = 0; i < tiles; ++i) {
            const std::int64_t row = at[i] * int4_tile_rows;
            std::copy_n(given + i * int4_tile_rows, std::min(int4_tile_rows, last - row), call.y + row);
        }
    });
}

}  // namespace roofline::bench::neon
#pragma GCC pop_options
#endif
