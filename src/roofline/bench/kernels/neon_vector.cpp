// One row of x: W streams past it once, so nothing but memory should hold it back. Four rows of W go side by side and
// share every load of x. On a Neoverse-V1 a core reads some 12 bytes a cycle and has four vector pipes: 21 operations
// for the 64 bytes of a group of int4, which take 19.
#include "roofline/bench/kernels/neon_vector.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <arm_neon.h>

#include "roofline/bench/kernels/side_by_side.hpp"

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16+i8mm+dotprod,tune=neoverse-v1")  // the order of instructions is a tenth
namespace roofline::bench::neon {
namespace {

constexpr int runs = 4;
using Rows = std::int64_t[runs];

/// Sums of four vectors side by side.
inline float32x4_t sums_of(const float32x4_t (&all)[runs]) {
    return vpaddq_f32(vpaddq_f32(all[0], all[1]), vpaddq_f32(all[2], all[3]));
}

inline void store(const Rows& rows, float32x4_t values, float* y) {
    float each[runs];
    vst1q_f32(each, values);
    for (int i = 0; i < runs; ++i) y[rows[i]] = each[i];
}

}  // namespace

void vector_fp32(const ProductCall& call, std::int64_t column, std::int64_t first, std::int64_t last) {
    const auto* w = static_cast<const float*>(call.weights.values);
    const float* x = static_cast<const float*>(call.x) + column * call.k;
    side_by_side<runs>(first, last, [&](const Rows& rows) {
        float32x4_t sums[runs][2];
        for (auto& row : sums) row[0] = row[1] = vdupq_n_f32(0.0F);
        for (std::int64_t at = 0; at < call.k; at += 8) {
            const float32x4_t x0 = vld1q_f32(x + at);
            const float32x4_t x1 = vld1q_f32(x + at + 4);
            for (int i = 0; i < runs; ++i) {
                const float* row = w + rows[i] * call.k + at;
                sums[i][0] = vfmaq_f32(sums[i][0], vld1q_f32(row), x0);
                sums[i][1] = vfmaq_f32(sums[i][1], vld1q_f32(row + 4), x1);
            }
        }
        float32x4_t totals[runs];
        for (int i = 0; i < runs; ++i) totals[i] = vaddq_f32(sums[i][0], sums[i][1]);
        store(rows, sums_of(totals), call.y + column * call.n);
    });
}

void vector_bf16(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const auto* w = static_cast<const bfloat16_t*>(call.weights.values);
    const auto* x = static_cast<const bfloat16_t*>(call.x);
    side_by_side<runs>(first, last, [&](const Rows& rows) {
        float32x4_t sums[runs][2];
        for (auto& row : sums) row[0] = row[1] = vdupq_n_f32(0.0F);
        for (std::int64_t at = 0; at < call.k; at += 16) {
            const bfloat16x8_t x0 = vld1q_bf16(x + at);
            const bfloat16x8_t x1 = vld1q_bf16(x + at + 8);
            for (int i = 0; i < runs; ++i) {
                const bfloat16_t* row = w + rows[i] * call.k + at;
                sums[i][0] = vbfdotq_f32(sums[i][0], vld1q_bf16(row), x0);
                sums[i][1] = vbfdotq_f32(sums[i][1], vld1q_bf16(row + 8), x1);
            }
        }
        float32x4_t totals[runs];
        for (int i = 0; i < runs; ++i) totals[i] = vaddq_f32(sums[i][0], sums[i][1]);
        store(rows, sums_of(totals), call.y);
    });
}

void vector_int8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const auto* w = static_cast<const std::int8_t*>(call.weights.values);
    const auto* x = static_cast<const std::int8_t*>(call.x);
    side_by_side<runs>(first, last, [&](const Rows& rows) {
        int32x4_t sums[runs][2];
        for (auto& row : sums) row[0] = row[1] = vdupq_n_s32(0);
        std::int64_t at = 0;
        for (; at + 32 <= call.k; at += 32) {
            const int8x16_t x0 = vld1q_s8(x + at);
            const int8x16_t x1 = vld1q_s8(x + at + 16);
            for (int i = 0; i < runs; ++i) {
                const std::int8_t* row = w + rows[i] * call.k + at;
                sums[i][0] = vdotq_s32(sums[i][0], vld1q_s8(row), x0);
                sums[i][1] = vdotq_s32(sums[i][1], vld1q_s8(row + 16), x1);
            }
        }
        for (; at < call.k; at += 16) {
            for (int i = 0; i < runs; ++i)
                sums[i][0] = vdotq_s32(sums[i][0], vld1q_s8(w + rows[i] * call.k + at), vld1q_s8(x + at));
        }
        for (int i = 0; i < runs; ++i) {
            call.y[rows[i]] = static_cast<float>(vaddvq_s32(vaddq_s32(sums[i][0], sums[i][1]))) *
                              call.weights.row_scales[rows[i]] * call.x_scales[0];
        }
    });
}

namespace {

/// Scales and zero points of up to eight groups of four rows, the rows side by side.
struct GroupFactors {
    static constexpr std::int64_t most = 8;
    float32x4_t scale[most];
    float32x4_t zero[most];
};

/// Eight groups of each row: bf16 scales are turned from rows of groups to groups of rows while they are still narrow.
inline __attribute__((always_inline)) void load_eight(const Weights& weights, const std::int64_t (&places)[runs],
                                                      GroupFactors& factors) {
    uint16x8_t scales[runs];
    std::uint32_t nibbles[runs];
    for (int i = 0; i < runs; ++i) {
        scales[i] = vld1q_u16(weights.group_scales + places[i]);
        __builtin_memcpy(&nibbles[i], weights.group_zeros + places[i] / 2, sizeof nibbles[i]);
    }
    const uint16x8_t even[2] = {vzip1q_u16(scales[0], scales[2]), vzip2q_u16(scales[0], scales[2])};
    const uint16x8_t odd[2] = {vzip1q_u16(scales[1], scales[3]), vzip2q_u16(scales[1], scales[3])};
    uint32x4_t zeros = vld1q_u32(nibbles);
    for (int half = 0; half < 2; ++half) {
        const uint16x8_t turned[2] = {vzip1q_u16(even[half], odd[half]), vzip2q_u16(even[half], odd[half])};
        for (int pair = 0; pair < 2; ++pair) {
            const uint16x8_t two = turned[pair];
            const int group = 4 * half + 2 * pair;
            factors.scale[group] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(two), 16));
            factors.scale[group + 1] = vreinterpretq_f32_u32(vshll_high_n_u16(two, 16));
        }
    }
    for (auto& zero : factors.zero) {
        zero = vcvtq_f32_u32(vandq_u32(zeros, vdupq_n_u32(15)));
        zeros = vshrq_n_u32(zeros, 4);
    }
}

inline void load_some(const Weights& weights, const std::int64_t (&places)[runs], std::int64_t count,
                      GroupFactors& factors) {
    for (std::int64_t group = 0; group < count; ++group) {
        float scales[runs];
        float zeros[runs];
        for (int i = 0; i < runs; ++i) {
            scales[i] = weights.group_scale(places[i] + group);
            zeros[i] = weights.group_zero(places[i] + group);
        }
        factors.scale[group] = vld1q_f32(scales);
        factors.zero[group] = vld1q_f32(zeros);
    }
}

}  // namespace

/// Dot products run on from group to group, so that no accumulator has to be set to zero; what a group adds to them is
/// the difference to the last. Scales and zero points come in when that is one number a row, for four rows at once.
/// Integers hold the sum of any row that fits into memory: 127 x 15 x k.
void vector_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const std::int64_t groups = call.k / int4_group;
    const auto* w = static_cast<const std::uint8_t*>(call.weights.values);
    const auto* x = static_cast<const std::int8_t*>(call.x);
    const uint8x16_t low_half = vdupq_n_u8(15);
    side_by_side<runs>(first, last, [&](const Rows& rows) {
        const std::uint8_t* from[runs];
        for (int i = 0; i < runs; ++i) from[i] = w + rows[i] * (call.k / 2);
        const std::int8_t* with = x;
        float32x4_t totals = vdupq_n_f32(0.0F);
        int32x4_t before = vdupq_n_s32(0);
        int32x4_t sums[runs];
        for (auto& sum : sums) sum = vdupq_n_s32(0);
        for (std::int64_t begin = 0; begin < groups; begin += GroupFactors::most) {
            const std::int64_t count = std::min(groups - begin, GroupFactors::most);
            std::int64_t places[runs];
            for (int i = 0; i < runs; ++i) places[i] = rows[i] * groups + begin;
            GroupFactors factors;
            if (count == GroupFactors::most && groups % 2 == 0)
                load_eight(call.weights, places, factors);
            else
                load_some(call.weights, places, count, factors);
            for (std::int64_t group = 0; group < count; ++group) {
                for (int run = 0; run < 4; ++run) {
                    const int8x16_t x0 = vld1q_s8(with + run * 32);
                    const int8x16_t x1 = vld1q_s8(with + run * 32 + 16);
                    for (int i = 0; i < runs; ++i) {
                        const uint8x16_t both = vld1q_u8(from[i] + run * 16);
                        sums[i] = vdotq_s32(sums[i], vreinterpretq_s8_u8(vandq_u8(both, low_half)), x0);
                        sums[i] = vdotq_s32(sums[i], vreinterpretq_s8_u8(vshrq_n_u8(both, 4)), x1);
                    }
                }
                with += int4_group;
                for (auto& row : from) row += int4_group / 2;
                const int32x4_t now = vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3]));
                const float32x4_t dots = vcvtq_f32_s32(vsubq_s32(now, before));
                before = now;
                const float32x4_t centred = vfmsq_n_f32(dots, factors.zero[group], call.x_sums[begin + group]);
                const float32x4_t scale = vmulq_n_f32(factors.scale[group], call.x_scales[begin + group]);
                totals = vfmaq_f32(totals, centred, scale);
            }
        }
        store(rows, totals, call.y);
    });
}

}  // namespace roofline::bench::neon
#pragma GCC pop_options
#endif
