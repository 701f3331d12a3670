// Products with weights in small groups for AArch64 with dot products of bytes.
//
// What a core spends on 32 weights of mxfp4, 17 bytes: 8.25 vector instructions for one row of x (4 to take the bytes
// apart and look them up, 2 products, and 9 for the sums and scales of four groups together), and 3.5 for each further
// one. A Neoverse N1 starts two in a cycle, in which memory gives it 8 bytes: asking ahead gains nothing there.
#include "roofline/bench/kernels/groups.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>

#include "roofline/bench/kernels/e4m3.hpp"

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod")

namespace roofline::bench {
namespace {

constexpr int at_once = 4;  // groups whose sums and scales are lanes of one vector

/// A row of W and rows of x that it meets, from their first group on.
struct Rows {
    const Weights& weights;
    const std::uint8_t* w;
    std::int64_t first_group;  // of all
    std::int64_t row;
    const std::int8_t* x;
    const float* x_scales;
    const float* x_sums;
    std::int64_t k;
    std::int64_t groups;

    Rows(const ProductCall& call, std::int64_t row_of_w, std::int64_t x_row, std::int64_t block_bytes)
        : weights(call.weights),
          w(static_cast<const std::uint8_t*>(call.weights.values) + row_of_w * (call.k * block_bytes / k_block)),
          first_group(row_of_w * (call.k / small_group)),
          row(row_of_w),
          x(static_cast<const std::int8_t*>(call.x) + x_row * call.k),
          x_scales(call.x_scales + x_row * (call.k / small_group)),
          x_sums(call.x_sums + x_row * (call.k / small_group)),
          k(call.k),
          groups(call.k / small_group) {}

    const std::uint8_t* header(std::int64_t group, std::int64_t bytes) const {
        return weights.headers + (row * (k / k_block) + group / groups_of_block) * bytes;
    }
};

/// Numbers of a group: the first 16, and the others.
struct Numbers {
    int8x16_t low;
    int8x16_t high;
};
inline __attribute__((always_inline)) Numbers halves_of(const std::uint8_t* from) {
    const uint8x16_t both = vld1q_u8(from);
    return {vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(15))), vreinterpretq_s8_u8(vshrq_n_u8(both, 4))};
}
inline __attribute__((always_inline)) Numbers looked_up(const Numbers& at, int8x16_t values) {
    return {vqtbl1q_s8(values, vreinterpretq_u8_s8(at.low)), vqtbl1q_s8(values, vreinterpretq_u8_s8(at.high))};
}
inline __attribute__((always_inline)) int32x4_t dots_of(const Numbers& w, const std::int8_t* x) {
    return vdotq_s32(vdotq_s32(vdupq_n_s32(0), w.low, vld1q_s8(x)), w.high, vld1q_s8(x + 16));
}

// A format has
//   block_bytes            of the values of eight groups
//   unit                   of its numbers
//   has_off                whether something is taken off all weights of a group
//   numbers(rows, group)
//   scales(rows, group)    of four groups from there on, in that unit; off() likewise
// or, with a scale for each half of a group,
//   halves(rows, group)    both in all lanes

struct OfMxfp4 {
    static constexpr std::int64_t block_bytes = k_block / 2;
    static constexpr float unit = 0.5F;
    static constexpr bool has_off = false;
    static inline __attribute__((always_inline)) Numbers numbers(const Rows& rows, std::int64_t group) {
        return looked_up(halves_of(rows.w + group * 16), vld1q_s8(twice_e2m1));
    }
    static inline __attribute__((always_inline)) float32x4_t scales(const Rows& rows, std::int64_t group) {
        std::uint32_t four;
        __builtin_memcpy(&four, rows.weights.group_powers + rows.first_group + group, sizeof four);
        const uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
        return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vget_low_u16(wide)), 23));
    }
};

struct OfQ4_0 : OfMxfp4 {
    static constexpr float unit = 1.0F;
    static inline __attribute__((always_inline)) Numbers numbers(const Rows& rows, std::int64_t group) {
        const Numbers halves = halves_of(rows.w + group * 16);
        return {vsubq_s8(halves.low, vdupq_n_s8(8)), vsubq_s8(halves.high, vdupq_n_s8(8))};
    }
    static inline __attribute__((always_inline)) float32x4_t scales(const Rows& rows, std::int64_t group) {
        return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(rows.weights.half_scales + rows.first_group + group)));
    }
};

struct OfQ8_0 : OfQ4_0 {
    static constexpr std::int64_t block_bytes = k_block;
    static inline __attribute__((always_inline)) Numbers numbers(const Rows& rows, std::int64_t group) {
        const auto* from = reinterpret_cast<const std::int8_t*>(rows.w + group * small_group);
        return {vld1q_s8(from), vld1q_s8(from + 16)};
    }
};

struct OfQ4K : OfQ4_0 {
    static constexpr bool has_off = true;
    static inline __attribute__((always_inline)) Numbers numbers(const Rows& rows, std::int64_t group) {
        return halves_of(rows.w + group * 16);
    }
    /// Four numbers of six bits times a number in fp16.
    static inline __attribute__((always_inline)) float32x4_t six_bits(uint32x4_t low, uint32x4_t tops,
                                                                      float32x4_t times) {
        return vmulq_f32(vcvtq_f32_u32(vorrq_u32(low, vandq_u32(tops, vdupq_n_u32(0x30)))), times);
    }
    struct Header {
        uint32x4_t bytes;
        uint32x4_t tops;
        float32x4_t both;  // d, e
    };
    static inline __attribute__((always_inline)) Header header(const Rows& rows, std::int64_t group) {
        const std::uint8_t* from = rows.header(group, q4_k_header);
        std::uint32_t halves;
        std::uint32_t four;
        __builtin_memcpy(&halves, from, sizeof halves);
        __builtin_memcpy(&four, from + 4 + group % groups_of_block, sizeof four);
        const uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
        const int32x4_t places = {0, -4, -8, -12};
        const std::uint32_t tops = SixBits{from}.tops() >> (group % groups_of_block == 0 ? 0U : 16U);
        return {vmovl_u16(vget_low_u16(wide)), vshlq_u32(vdupq_n_u32(tops), places),
                vcvt_f32_f16(vreinterpret_f16_u32(vdup_n_u32(halves)))};
    }
    static inline __attribute__((always_inline)) float32x4_t scales(const Rows& rows, std::int64_t group) {
        const Header it = header(rows, group);
        return six_bits(vandq_u32(it.bytes, vdupq_n_u32(15)), vshlq_n_u32(it.tops, 4), vdupq_laneq_f32(it.both, 0));
    }
    static inline __attribute__((always_inline)) float32x4_t off(const Rows& rows, std::int64_t group) {
        const Header it = header(rows, group);
        return six_bits(vshrq_n_u32(it.bytes, 4), vshlq_n_u32(it.tops, 2), vdupq_laneq_f32(it.both, 1));
    }
};

struct OfQ5K : OfQ4K {
    static constexpr std::int64_t block_bytes = q5_k_block;
    /// 16 in every byte whose bit is set.
    static inline __attribute__((always_inline)) int8x16_t fifths(const std::uint8_t* bits) {
        const uint8x16_t own = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ULL));
        const uint8x16_t spread = vcombine_u8(vdup_n_u8(bits[0]), vdup_n_u8(bits[1]));
        return vreinterpretq_s8_u8(vandq_u8(vtstq_u8(spread, own), vdupq_n_u8(16)));
    }
    static inline __attribute__((always_inline)) Numbers numbers(const Rows& rows, std::int64_t group) {
        const std::uint8_t* block = rows.w + group / groups_of_block * q5_k_block;
        const std::int64_t inside = group % groups_of_block;
        const Numbers halves = halves_of(block + inside * 16);
        const std::uint8_t* bits = block + q5_k_low + inside / 4 * 16 + inside % 4 * 2;
        return {vorrq_s8(halves.low, fifths(bits)), vorrq_s8(halves.high, fifths(bits + 8))};
    }
};

/// Both scales of a group.
struct HalfScales {
    float low;
    float high;
};

struct OfNvfp4 : OfMxfp4 {
    static inline __attribute__((always_inline)) HalfScales halves(const Rows& rows, std::int64_t group) {
        const float half_of_all = 0.5F * rows.weights.scale_of_all;
        const std::uint8_t* small = rows.weights.small_scales + 2 * (rows.first_group + group);
        return {half_of_all * e4m3_values[small[0]], half_of_all * e4m3_values[small[1]]};
    }
};

struct OfQ6K {
    static constexpr std::int64_t block_bytes = q6_k_block;
    static inline __attribute__((always_inline)) Numbers numbers(const Rows& rows, std::int64_t group) {
        const std::uint8_t* block = rows.w + group / groups_of_block * q6_k_block;
        const std::int64_t inside = group % groups_of_block;
        const Numbers halves = halves_of(block + inside * 16);
        const int8x16_t to_bits = vdupq_n_s8(inside < 4 ? 0 : -4);
        const uint8x16_t upper = vshlq_u8(vld1q_u8(block + q6_k_low + inside % 4 * 16), to_bits);
        const uint8x16_t upper_bits = vdupq_n_u8(0x30);
        const auto number = [&](int8x16_t low, uint8x16_t top) __attribute__((always_inline)) {
            const int8x16_t all = vorrq_s8(low, vreinterpretq_s8_u8(vandq_u8(top, upper_bits)));
            return vsubq_s8(all, vdupq_n_s8(32));
        };
        return {number(halves.low, vshlq_n_u8(upper, 4)), number(halves.high, vshlq_n_u8(upper, 2))};
    }
    static inline __attribute__((always_inline)) HalfScales halves(const Rows& rows, std::int64_t group) {
        const std::uint8_t* header = rows.header(group, q6_k_header);
        const auto* small = reinterpret_cast<const std::int8_t*>(header + 2) + group % groups_of_block;
        std::uint16_t bits;
        __builtin_memcpy(&bits, header, sizeof bits);
        const float all = from_half(bits);
        return {all * small[0], all * small[groups_of_block]};
    }
};

/// Four groups at a time.
template <class Of, int columns>
inline __attribute__((always_inline)) void dots(const Rows& rows, float (&sums)[columns]) {
    float32x4_t totals[columns] = {};
    std::int64_t first = 0;
    for (; first + at_once <= rows.groups; first += at_once) {
        Numbers w[at_once];
#pragma GCC unroll 4
        for (int i = 0; i < at_once; ++i) w[i] = Of::numbers(rows, first + i);
        const float32x4_t scales = Of::scales(rows, first);
        float32x4_t off;
        if constexpr (Of::has_off) off = Of::off(rows, first);
#pragma GCC unroll 4
        for (int column = 0; column < columns; ++column) {
            const std::int8_t* x = rows.x + column * rows.k + first * small_group;
            int32x4_t parts[at_once];
#pragma GCC unroll 4
            for (int i = 0; i < at_once; ++i) parts[i] = dots_of(w[i], x + i * small_group);
            const int32x4_t four_sums = vpaddq_s32(vpaddq_s32(parts[0], parts[1]), vpaddq_s32(parts[2], parts[3]));
            const float32x4_t x_scales = vld1q_f32(rows.x_scales + column * rows.groups + first);
            totals[column] = vfmaq_f32(totals[column], vcvtq_f32_s32(four_sums), vmulq_f32(scales, x_scales));
            if constexpr (Of::has_off) {
                const float32x4_t x_sums = vld1q_f32(rows.x_sums + column * rows.groups + first);
                totals[column] = vfmsq_f32(totals[column], vmulq_f32(off, x_scales), x_sums);
            }
        }
    }
    for (; first < rows.groups; ++first) {  // none of formats with blocks
        const Numbers w = Of::numbers(rows, first);
        const float scale = take_apart(rows.weights, rows.row, first, rows.k).scale / Of::unit;
        for (int column = 0; column < columns; ++column) {
            const int32x4_t part = dots_of(w, rows.x + column * rows.k + first * small_group);
            totals[column] =
                vfmaq_n_f32(totals[column], vcvtq_f32_s32(part), scale * rows.x_scales[column * rows.groups + first]);
        }
    }
    for (int column = 0; column < columns; ++column) sums[column] = Of::unit * vaddvq_f32(totals[column]);
}

/// The same with a scale for each half of a group.
template <class Of, int columns>
inline __attribute__((always_inline)) void dots_of_halves(const Rows& rows, float (&sums)[columns]) {
    float32x4_t totals[columns] = {};
    for (std::int64_t at = 0; at < rows.groups; ++at) {
        const Numbers w = Of::numbers(rows, at);
        const HalfScales scales = Of::halves(rows, at);
#pragma GCC unroll 4
        for (int column = 0; column < columns; ++column) {
            const std::int8_t* x = rows.x + column * rows.k + at * small_group;
            const float32x4_t low = vcvtq_f32_s32(vdotq_s32(vdupq_n_s32(0), w.low, vld1q_s8(x)));
            const float32x4_t high = vcvtq_f32_s32(vdotq_s32(vdupq_n_s32(0), w.high, vld1q_s8(x + 16)));
            const float32x4_t both = vfmaq_n_f32(vmulq_n_f32(low, scales.low), high, scales.high);
            totals[column] = vfmaq_n_f32(totals[column], both, rows.x_scales[column * rows.groups + at]);
        }
    }
    for (int column = 0; column < columns; ++column) sums[column] = vaddvq_f32(totals[column]);
}

/// Goes over rows of W, and for each over the rows of x, four at a time and then one by one. (Two rows of W side by
/// side took a Neoverse N1 a quarter longer: it reads fastest at one place.)
template <class Of>
void product(const ProductCall& call, std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
        std::int64_t x_row = 0;
        const auto meet = [&]<int columns>() {
            float sums[columns];
            const Rows rows(call, row, x_row, Of::block_bytes);
            if constexpr (requires { Of::halves(rows, 0); })
                dots_of_halves<Of>(rows, sums);
            else
                dots<Of>(rows, sums);
            for (const float sum : sums) call.y[x_row++ * call.pitch() + row] = sum;
        };
        while (x_row + 4 <= call.m) meet.template operator()<4>();
        while (x_row < call.m) meet.template operator()<1>();
    }
}

}  // namespace

void neon_groups(const ProductCall& call, std::int64_t first, std::int64_t last) {
    switch (call.weights.type) {
        case WeightFormat::mxfp4:
            return product<OfMxfp4>(call, first, last);
        case WeightFormat::nvfp4:
            return product<OfNvfp4>(call, first, last);
        case WeightFormat::q4_0:
            return product<OfQ4_0>(call, first, last);
        case WeightFormat::q8_0:
            return product<OfQ8_0>(call, first, last);
        case WeightFormat::q4_k:
            return product<OfQ4K>(call, first, last);
        case WeightFormat::q5_k:
            return product<OfQ5K>(call, first, last);
        default:
            return product<OfQ6K>(call, first, last);
    }
}

}  // namespace roofline::bench

#pragma GCC pop_options
#endif
