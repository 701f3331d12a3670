// Attention for AArch64 with the bf16 instructions: scores by bf16 dot products, everything else as anywhere.
#include <type_traits>

#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/products.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16+i8mm+dotprod")
namespace roofline::bench::neon_attention_lanes {

#define ROOFLINE_LANES 4
#include "roofline/bench/kernels/lanes.inc"

template <class T>
inline __attribute__((always_inline)) void score_block(const float* q, const Bf16* narrow, std::int64_t rows,
                                                       const T* keys, std::int64_t count, std::int64_t head_dim,
                                                       float* scores);

/// Four positions at a time: their sums end side by side in one register.
template <>
inline __attribute__((always_inline)) void score_block<Bf16>(const float*, const Bf16* narrow, std::int64_t rows,
                                                             const Bf16* keys, std::int64_t count,
                                                             std::int64_t head_dim, float* scores) {
    for (std::int64_t position = 0; position < count; position += 4) {
        const bfloat16_t* key[4];
        for (std::int64_t i = 0; i < 4; ++i) {
            const std::int64_t place = position + i < count ? position + i : count - 1;
            key[i] = reinterpret_cast<const bfloat16_t*>(keys + place * head_dim);
        }
        std::int64_t row = 0;
        const auto dots = [&](auto width) {
            constexpr int rows_at_once = decltype(width)::value;
            float32x4_t sums[rows_at_once][4];
            for (auto& line : sums) {
                for (auto& total : line) total = vdupq_n_f32(0.0F);
            }
            for (std::int64_t at = 0; at < head_dim; at += 8) {
                bfloat16x8_t loaded[4];
                for (int i = 0; i < 4; ++i) loaded[i] = vld1q_bf16(key[i] + at);
                for (int j = 0; j < rows_at_once; ++j) {
                    const bfloat16x8_t query =
                        vld1q_bf16(reinterpret_cast<const bfloat16_t*>(narrow + (row + j) * head_dim + at));
                    for (int i = 0; i < 4; ++i) sums[j][i] = vbfdotq_f32(sums[j][i], loaded[i], query);
                }
            }
            for (int j = 0; j < rows_at_once; ++j) {
                const float32x4_t pairs =
                    vpaddq_f32(vpaddq_f32(sums[j][0], sums[j][1]), vpaddq_f32(sums[j][2], sums[j][3]));
                vst1q_f32(scores + (row + j) * 32 + position, pairs);
            }
        };
        for (; row + 4 <= rows; row += 4) dots(std::integral_constant<int, 4>{});
        for (; row < rows; ++row) dots(std::integral_constant<int, 1>{});
    }
}

template <>
inline __attribute__((always_inline)) void score_block<float>(const float* q, const Bf16*, std::int64_t rows,
                                                              const float* keys, std::int64_t count,
                                                              std::int64_t head_dim, float* scores) {
    for (std::int64_t position = 0; position < count; ++position) {
        for (std::int64_t row = 0; row < rows; ++row) {
            float32x4_t sums[4];
            for (auto& total : sums) total = vdupq_n_f32(0.0F);
            for (std::int64_t at = 0; at < head_dim; at += 16) {
                for (int i = 0; i < 4; ++i) {
                    sums[i] = vfmaq_f32(sums[i], vld1q_f32(keys + position * head_dim + at + 4 * i),
                                        vld1q_f32(q + row * head_dim + at + 4 * i));
                }
            }
            scores[row * 32 + position] =
                vaddvq_f32(vaddq_f32(vaddq_f32(sums[0], sums[1]), vaddq_f32(sums[2], sums[3])));
        }
    }
}

#define ROOFLINE_OWN_SCORES
#include "roofline/bench/kernels/attention_lanes.inc"
#undef ROOFLINE_OWN_SCORES
#undef ROOFLINE_LANES

}  // namespace roofline::bench::neon_attention_lanes
#pragma GCC pop_options

namespace roofline::bench {
const AttentionKernels* neon_attention() {
    static constexpr AttentionKernels kernels = {"NEON with bf16", neon_attention_lanes::attention_piece<Bf16>,
                                                 neon_attention_lanes::attention_piece<float>};
    return (::getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0 ? &kernels : nullptr;
}
}  // namespace roofline::bench
#else
namespace roofline::bench {
const AttentionKernels* neon_attention() {
    return nullptr;
}
}  // namespace roofline::bench
#endif
