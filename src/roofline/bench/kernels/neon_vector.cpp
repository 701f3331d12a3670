// One row of x: W streams past it once, so nothing but memory should hold it back. Four rows of W go side by side and
// share every load of x, a whole line of each at a time. int4 is in neon_int4.cpp.
//
// What comes 8 KiB on in each row is asked for into the third-level cache, a line with each line that is read. On a
// Neoverse-V1 a core has too few misses under way to read more than 35 GB/s by itself; what waits in the shared cache
// it fetches at 45. It takes all of it: a line in two halves with other rows between them, or asked for twice, is
// slower than not asking at all.
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

template <class T>
inline __attribute__((always_inline)) void ask_for_what_comes(const T* at) {
    constexpr std::int64_t ahead = 8192;  // bytes: 6 to 24 KiB do as well, 4 KiB is too late
    __builtin_prefetch(reinterpret_cast<const char*>(at) + ahead, 0, 1);
}

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
        for (std::int64_t at = 0; at < call.k; at += 16) {
            float32x4_t line[4];
            for (int j = 0; j < 4; ++j) line[j] = vld1q_f32(x + at + 4 * j);
            for (int i = 0; i < runs; ++i) {
                const float* row = w + rows[i] * call.k + at;
                ask_for_what_comes(row);
                for (int j = 0; j < 4; ++j) sums[i][j % 2] = vfmaq_f32(sums[i][j % 2], vld1q_f32(row + 4 * j), line[j]);
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
        std::int64_t at = 0;
        for (; at + 32 <= call.k; at += 32) {
            bfloat16x8_t line[4];
            for (int j = 0; j < 4; ++j) line[j] = vld1q_bf16(x + at + 8 * j);
            for (int i = 0; i < runs; ++i) {
                const bfloat16_t* row = w + rows[i] * call.k + at;
                ask_for_what_comes(row);
                for (int j = 0; j < 4; ++j)
                    sums[i][j % 2] = vbfdotq_f32(sums[i][j % 2], vld1q_bf16(row + 8 * j), line[j]);
            }
        }
        for (; at < call.k; at += 8) {
            for (int i = 0; i < runs; ++i)
                sums[i][0] = vbfdotq_f32(sums[i][0], vld1q_bf16(w + rows[i] * call.k + at), vld1q_bf16(x + at));
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
        for (; at + 64 <= call.k; at += 64) {
            int8x16_t line[4];
            for (int j = 0; j < 4; ++j) line[j] = vld1q_s8(x + at + 16 * j);
            for (int i = 0; i < runs; ++i) {
                const std::int8_t* row = w + rows[i] * call.k + at;
                ask_for_what_comes(row);
                for (int j = 0; j < 4; ++j) sums[i][j % 2] = vdotq_s32(sums[i][j % 2], vld1q_s8(row + 16 * j), line[j]);
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

}  // namespace roofline::bench::neon
#pragma GCC pop_options
#endif
