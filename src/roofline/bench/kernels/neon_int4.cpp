// One row of x against int4 weights, eight rows of W side by side.
//
// The budget on a Neoverse-V1: a core reads 36 GB/s at 2.6 GHz, 14 bytes a cycle, so a group of 64 bytes, a scale and a
// zero point (66.5 bytes) of eight rows may take 38 cycles, and four vector instructions start in each: 152. Taking
// half bytes apart costs 4 for every 16 bytes (mask, shift, two products), 128 for the group, and another 40 for sums,
// scales and zero points. So bytes are multiplied whole (narrow_for_whole_bytes): 16 l is the byte shifted left, l +
// 16 h the byte itself: 3 for every 16 bytes, 96 for the group. With what belongs to the group they are 120, and take
// 32 cycles for the products and 9 for the rest, on data in the caches.
//
// Products come in the order in which they are written here, each right after the load of its weights: an operand that
// was written long ago comes from the register file, which feeds two instructions a cycle, not four.
#include "roofline/bench/kernels/neon_vector.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <arm_neon.h>

#include "roofline/bench/kernels/side_by_side.hpp"

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16+i8mm+dotprod,tune=neoverse-v1")
namespace roofline::bench::neon {
namespace {

constexpr int runs = 8;
constexpr std::int64_t at_once = 8;            // groups whose sums are kept before scales and zero points come in
constexpr std::int64_t way_bytes = 16 * 1024;  // of a first-level cache of 64 KiB in four ways
constexpr std::int64_t factors_ahead = 32;     // groups: a line of scales
using Rows = std::int64_t[runs];

// A step: 16 bytes of each of the eight rows, v0 to v7, against L in v12 and H in v13; sums in v16 to v23. Two of the
// rows ask for what comes eight lines on: in four steps, each has moved on by a line.
#define LOAD(row, at) "ldr q" #row ", [%[w" #row "], #" #at "]\n"
#define AHEAD(row) "prfm pldl1keep, [%[w" #row "], #512]\n"
#define WHOLE(row, sum, low) "usdot v" #sum ".4s, v" #row ".16b, v13.16b\n shl v" #low ".16b, v" #row ".16b, #4\n"
#define LOW(low, sum) "usdot v" #sum ".4s, v" #low ".16b, v12.16b\n"
#define STEP(at, x_at, one, other)                                                                                    \
    "ldp q12, q13, [%[x], #" #x_at "]\n" LOAD(0, at) LOAD(1, at) LOAD(2, at) WHOLE(0, 16, 24) LOAD(3, at)             \
        WHOLE(1, 17, 25) AHEAD(one) LOAD(4, at) WHOLE(2, 18, 26) LOAD(5, at) WHOLE(3, 19, 27) LOW(24, 16) LOAD(6, at) \
            WHOLE(4, 20, 24) LOW(25, 17) LOAD(7, at) WHOLE(5, 21, 25) LOW(26, 18) AHEAD(other) WHOLE(6, 22, 26)       \
                LOW(27, 19) WHOLE(7, 23, 27) LOW(24, 20) LOW(25, 21) LOW(26, 22) LOW(27, 23)

/// The next `count` groups of eight rows against those of x: sums[group][row].
inline __attribute__((always_inline)) void multiply_groups(const std::uint8_t* (&w)[runs], const std::int8_t*& x,
                                                           std::int64_t count, std::int32_t* sums) {
    asm volatile(
        "1:\n"
        "movi v16.2d, #0\n movi v17.2d, #0\n movi v18.2d, #0\n movi v19.2d, #0\n"
        "movi v20.2d, #0\n movi v21.2d, #0\n movi v22.2d, #0\n movi v23.2d, #0\n"
        "prfm pldl1keep, [%[x], #512]\n prfm pldl1keep, [%[x], #576]\n"
        STEP(0, 0, 0, 1) STEP(16, 32, 2, 3) STEP(32, 64, 4, 5) STEP(48, 96, 6, 7)
        "add %[w0], %[w0], #64\n add %[w1], %[w1], #64\n add %[w2], %[w2], #64\n add %[w3], %[w3], #64\n"
        "add %[w4], %[w4], #64\n add %[w5], %[w5], #64\n add %[w6], %[w6], #64\n add %[w7], %[w7], #64\n"
        "add %[x], %[x], #128\n"
        "addp v16.4s, v16.4s, v17.4s\n addp v17.4s, v18.4s, v19.4s\n"
        "addp v18.4s, v20.4s, v21.4s\n addp v19.4s, v22.4s, v23.4s\n"
        "addp v16.4s, v16.4s, v17.4s\n addp v17.4s, v18.4s, v19.4s\n"
        "stp q16, q17, [%[sums]], #32\n subs %[count], %[count], #1\n b.ne 1b\n"
        : [w0] "+r"(w[0]), [w1] "+r"(w[1]), [w2] "+r"(w[2]), [w3] "+r"(w[3]), [w4] "+r"(w[4]), [w5] "+r"(w[5]),
          [w6] "+r"(w[6]), [w7] "+r"(w[7]), [x] "+r"(x), [count] "+r"(count), [sums] "+r"(sums)
        :
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v12", "v13", "v16", "v17", "v18", "v19", "v20", "v21", "v22",
          "v23", "v24", "v25", "v26", "v27", "cc", "memory");
}
#undef LOAD
#undef AHEAD
#undef WHOLE
#undef LOW
#undef STEP

/// Scales and zero points of eight groups of four rows. Scales half turned from rows of groups to groups of rows, while
/// they are still narrow: those of rows 0 and 2, and of 1 and 3. Zero points of even and of odd groups apart, a word of
/// four to a row.
struct EightGroups {
    uint16x8_t even_rows[2];
    uint16x8_t odd_rows[2];
    uint8x16_t zeros[2];
};

inline __attribute__((always_inline)) EightGroups load_eight(const Weights& weights, const std::int64_t* rows,
                                                             std::int64_t groups, std::int64_t begin) {
    uint16x8_t scales[4];
    uint32x2_t nibbles[4];
    for (int i = 0; i < 4; ++i) {
        const std::int64_t place = rows[i] * groups + begin;
        scales[i] = vld1q_u16(weights.group_scales + place);
        std::uint32_t word;
        __builtin_memcpy(&word, weights.group_zeros + place / 2, sizeof word);
        nibbles[i] = vset_lane_u32(word, vdup_n_u32(0), 0);
        __builtin_prefetch(weights.group_scales + place + factors_ahead);
        __builtin_prefetch(weights.group_zeros + place / 2 + factors_ahead);
    }
    const uint8x16_t both =
        vreinterpretq_u8_u32(vcombine_u32(vzip1_u32(nibbles[0], nibbles[1]), vzip1_u32(nibbles[2], nibbles[3])));
    return {{vzip1q_u16(scales[0], scales[2]), vzip2q_u16(scales[0], scales[2])},
            {vzip1q_u16(scales[1], scales[3]), vzip2q_u16(scales[1], scales[3])},
            {vandq_u8(both, vdupq_n_u8(15)), vshrq_n_u8(both, 4)}};
}

constexpr std::uint8_t none = 255;
/// From a word of four bytes to a row: byte `i` of each.
constexpr std::uint8_t byte_of_words[4][16] = {
    {0, none, none, none, 4, none, none, none, 8, none, none, none, 12, none, none, none},
    {1, none, none, none, 5, none, none, none, 9, none, none, none, 13, none, none, none},
    {2, none, none, none, 6, none, none, none, 10, none, none, none, 14, none, none, none},
    {3, none, none, none, 7, none, none, none, 11, none, none, none, 15, none, none, none}};

/// Four totals to every four rows, so that no addition waits for the one before.
using Totals = float32x4_t[2][4];

/// Adds group `lane` of four groups, from what it has given and its narrow scales.
template <int lane>
inline __attribute__((always_inline)) void add_group(const std::int32_t* sums, uint32x4_t wide_scales, int32x4_t zeros,
                                                     float32x4_t x_scales, int32x4_t x_sums, float32x4_t& total) {
    const int32x4_t dots = vmlsq_laneq_s32(vld1q_s32(sums), zeros, x_sums, lane);
    const float32x4_t scales = vmulq_laneq_f32(vreinterpretq_f32_u32(wide_scales), x_scales, lane);
    total = vfmaq_f32(total, vcvtq_f32_s32(dots), scales);
}

/// Adds what eight groups have given, `sums` as multiply_groups leaves them, to the totals of the rows.
inline __attribute__((always_inline)) void add_eight(const ProductCall& call, const Rows& rows, std::int64_t groups,
                                                     std::int64_t begin, const std::int32_t* sums, Totals& totals) {
    const EightGroups fours[2] = {load_eight(call.weights, rows, groups, begin),
                                  load_eight(call.weights, rows + 4, groups, begin)};
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
        const float32x4_t x_scales = vld1q_f32(call.x_scales + begin + 4 * half);
        const int32x4_t x_sums = vcvtq_s32_f32(vld1q_f32(call.x_sums + begin + 4 * half));
        const uint8x16_t picks[2] = {vld1q_u8(byte_of_words[2 * half]), vld1q_u8(byte_of_words[2 * half + 1])};
#pragma GCC unroll 2
        for (int four = 0; four < 2; ++four) {
            const EightGroups& factors = fours[four];
            const uint16x8_t first = vzip1q_u16(factors.even_rows[half], factors.odd_rows[half]);
            const uint16x8_t second = vzip2q_u16(factors.even_rows[half], factors.odd_rows[half]);
            const std::int32_t* from = sums + 4 * half * runs + 4 * four;
            const auto zeros = [&](int group) {
                return vreinterpretq_s32_u8(vqtbl1q_u8(factors.zeros[group % 2], picks[group / 2]));
            };
            auto& total = totals[four];
            add_group<0>(from, vshll_n_u16(vget_low_u16(first), 16), zeros(0), x_scales, x_sums, total[0]);
            add_group<1>(from + runs, vshll_high_n_u16(first, 16), zeros(1), x_scales, x_sums, total[1]);
            add_group<2>(from + 2 * runs, vshll_n_u16(vget_low_u16(second), 16), zeros(2), x_scales, x_sums, total[2]);
            add_group<3>(from + 3 * runs, vshll_high_n_u16(second, 16), zeros(3), x_scales, x_sums, total[3]);
        }
    }
}

/// The same for fewer groups, and where rows begin in the middle of a byte of zero points. Never inlined: it would take
/// registers from the loop that counts.
__attribute__((noinline)) void add_some(const ProductCall& call, const Rows& rows, std::int64_t groups,
                                        std::int64_t begin, std::int64_t count, const std::int32_t* sums,
                                        float (&rest)[runs]) {
    for (std::int64_t group = begin; group < begin + count; ++group) {
        for (int i = 0; i < runs; ++i) {
            const std::int64_t place = rows[i] * groups + group;
            const float dot = static_cast<float>(*sums++) - call.weights.group_zero(place) * call.x_sums[group];
            rest[i] += dot * call.weights.group_scale(place) * call.x_scales[group];
        }
    }
}

}  // namespace

void vector_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (first >= last) return;
    const std::int64_t groups = call.k / int4_group;
    const std::int64_t row_bytes = call.k / 2;
    const auto* weights = static_cast<const std::uint8_t*>(call.weights.values);
    const std::int64_t stretch = spread_stretch((last - first) / runs, row_bytes, runs, way_bytes);
    side_by_side<runs>(first, last, stretch, [&](const Rows& rows) {
        const std::uint8_t* w[runs];
        for (int i = 0; i < runs; ++i) w[i] = weights + rows[i] * row_bytes;
        const auto* x = static_cast<const std::int8_t*>(call.x);
        Totals totals;
        for (auto& four : totals) {
            for (auto& total : four) total = vdupq_n_f32(0.0F);
        }
        float rest[runs] = {};
        for (std::int64_t begin = 0; begin < groups; begin += at_once) {
            const std::int64_t count = std::min(groups - begin, at_once);
            alignas(64) std::int32_t sums[at_once * runs];
            multiply_groups(w, x, count, sums);
            if (count == at_once && groups % 2 == 0)
                add_eight(call, rows, groups, begin, sums, totals);
            else
                add_some(call, rows, groups, begin, count, sums, rest);
        }
        for (int four = 0; four < 2; ++four) {
            const auto& parts = totals[four];
            const float32x4_t total = vaddq_f32(vaddq_f32(parts[0], parts[1]), vaddq_f32(parts[2], parts[3]));
            float each[4];
            vst1q_f32(each, vaddq_f32(total, vld1q_f32(rest + 4 * four)));
            for (int i = 0; i < 4; ++i) call.y[rows[4 * four + i]] = each[i];
        }
    });
}

}  // namespace roofline::bench::neon
#pragma GCC pop_options
#endif
