// The products for x86-64 with AVX-512 and VNNI.
#include <utility>
#include <vector>

#include "roofline/bench/kernels/e2m1.hpp"
#include "roofline/bench/kernels/fp8.hpp"
#include "roofline/bench/kernels/group_factors.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/side_by_side.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma,prefer-vector-width=512")
namespace roofline::bench::avx512 {

#define ROOFLINE_LANES 16
#include "roofline/bench/kernels/lanes.inc"

constexpr int rows_at_once = 8;
constexpr int bytes_ahead = 1024;

/// VNNI multiplies unsigned with signed bytes: 128 is added to w, and 128 times the sum of x taken off again.
inline void int8_dots(const std::int8_t* const (&rows)[rows_at_once], const std::int8_t* x, std::int64_t k, float x_sum,
                      float (&dots)[rows_at_once]) {
    const __m512i shift = _mm512_set1_epi8(static_cast<char>(0x80));
    __m512i sums[rows_at_once];
    for (auto& one : sums) one = _mm512_setzero_si512();
    std::int64_t at = 0;
    for (; at + 64 <= k; at += 64) {
        const __m512i values = _mm512_loadu_si512(x + at);
        for (int i = 0; i < rows_at_once; ++i) {
            __builtin_prefetch(rows[i] + at + bytes_ahead);
            const __m512i weights = _mm512_loadu_si512(rows[i] + at);
            sums[i] = _mm512_dpbusd_epi32(sums[i], _mm512_xor_si512(weights, shift), values);
        }
    }
    if (at < k) {
        const __mmask64 there = (__mmask64{1} << (k - at)) - 1;
        const __m512i values = _mm512_maskz_loadu_epi8(there, x + at);
        for (int i = 0; i < rows_at_once; ++i) {
            const __m512i weights = _mm512_maskz_loadu_epi8(there, rows[i] + at);
            sums[i] = _mm512_dpbusd_epi32(sums[i], _mm512_xor_si512(weights, shift), values);
        }
    }
    const auto excess = 128 * static_cast<std::int32_t>(x_sum);
    for (int i = 0; i < rows_at_once; ++i)
        dots[i] = static_cast<float>(sum(reinterpret_cast<Integers>(sums[i])) - excess);
}

/// Factors of up to 16 groups from `begin` on of a row of W; returns what their zero points take off, still in lanes.
inline __attribute__((always_inline)) __m512 sixteen_factors(const ProductCall& call, std::int64_t row,
                                                             std::int64_t column, std::int64_t begin,
                                                             std::int64_t groups, float (&factors)[16]) {
    const std::int64_t count = groups - begin < 16 ? groups - begin : 16;
    const std::int64_t place = row * groups + begin;
    const float* x_scales = call.x_scales + column * groups + begin;
    const float* x_sums = call.x_sums + column * groups + begin;
    alignas(64) float off[16] = {};
    if (count < 16 || place % 2 != 0) {
        for (std::int64_t i = 0; i < count; ++i) {
            factors[i] = call.weights.group_scale(place + i) * x_scales[i];
            off[i] = factors[i] * call.weights.group_zero(place + i) * x_sums[i];
        }
        return _mm512_load_ps(off);
    }
    const auto scales = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(call.weights.group_scales + place));
    const __m512i wide_scales = _mm512_maskz_slli_epi32(0xFFFF, _mm512_maskz_cvtepu16_epi32(0xFFFF, scales), 16);
    const __m512 factor = _mm512_mul_ps(_mm512_castsi512_ps(wide_scales), _mm512_loadu_ps(x_scales));
    std::int32_t halves[2];
    __builtin_memcpy(halves, call.weights.group_zeros + place / 2, sizeof halves);
    const __m512i both = _mm512_mask_set1_epi32(_mm512_set1_epi32(halves[0]), 0xFF00, halves[1]);
    const __m512i places = _mm512_set_epi32(28, 24, 20, 16, 12, 8, 4, 0, 28, 24, 20, 16, 12, 8, 4, 0);
    const __m512i zeros = _mm512_and_si512(_mm512_maskz_srlv_epi32(0xFFFF, both, places), _mm512_set1_epi32(15));
    _mm512_storeu_ps(factors, factor);
    return _mm512_mul_ps(_mm512_mul_ps(factor, _mm512_maskz_cvtepi32_ps(0xFFFF, zeros)), _mm512_loadu_ps(x_sums));
}

/// A group is one register. Its low halves are the first 16 of every 32 weights, its high halves the others. (Masks of
/// all: GCC 12 warns about its own headers otherwise.)
void product_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const std::int64_t groups = call.k / int4_group;
    const auto* w = static_cast<const std::uint8_t*>(call.weights.values);
    const auto* x = static_cast<const std::int8_t*>(call.x);
    const __m512i low_half = _mm512_set1_epi8(15);
    side_by_side<rows_at_once>(first, last, [&](const std::int64_t(&rows)[rows_at_once]) {
        for (std::int64_t column = 0; column < call.m; ++column) {
            const std::uint8_t* from[rows_at_once];
            __m512 totals[rows_at_once];
            for (int i = 0; i < rows_at_once; ++i) {
                from[i] = w + rows[i] * (call.k / 2);
                totals[i] = _mm512_setzero_ps();
                __builtin_prefetch(call.weights.group_scales + (rows[i] + 1) * groups);
                __builtin_prefetch(call.weights.group_zeros + (rows[i] + 1) * groups / 2);
            }
            const std::int8_t* with = x + column * call.k;
            for (std::int64_t begin = 0; begin < groups; begin += 16) {
                alignas(64) float factors[rows_at_once][16];
                for (int i = 0; i < rows_at_once; ++i) {
                    totals[i] =
                        _mm512_sub_ps(totals[i], sixteen_factors(call, rows[i], column, begin, groups, factors[i]));
                }
                for (std::int64_t group = 0; group < 16 && begin + group < groups; ++group, with += int4_group) {
                    const __m512i one = _mm512_loadu_si512(with);
                    const __m512i two = _mm512_loadu_si512(with + 64);
                    const __m512i lower = _mm512_maskz_shuffle_i64x2(0xFF, one, two, 0x88);
                    const __m512i upper = _mm512_maskz_shuffle_i64x2(0xFF, one, two, 0xDD);
                    for (int i = 0; i < rows_at_once; ++i) {
                        __builtin_prefetch(from[i] + bytes_ahead);
                        const __m512i both = _mm512_loadu_si512(from[i]);
                        const __m512i high = _mm512_and_si512(_mm512_srli_epi16(both, 4), low_half);
                        __m512i dots =
                            _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_and_si512(both, low_half), lower);
                        dots = _mm512_dpbusd_epi32(dots, high, upper);
                        totals[i] = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(0xFFFF, dots),
                                                    _mm512_set1_ps(factors[i][group]), totals[i]);
                        from[i] += int4_group / 2;
                    }
                }
            }
            for (int i = 0; i < rows_at_once; ++i)
                call.y[column * call.n + rows[i]] = sum(reinterpret_cast<Floats>(totals[i]));
        }
    });
}
#define ROOFLINE_RUNS rows_at_once
#define ROOFLINE_AHEAD bytes_ahead
#define ROOFLINE_INT8_DOTS int8_dots
#define ROOFLINE_INT4_PRODUCT
#include "roofline/bench/kernels/product_lanes.inc"
#undef ROOFLINE_LANES

}  // namespace roofline::bench::avx512
#pragma GCC pop_options

namespace roofline::bench {
const ProductKernels* avx512_products() {
    static const ProductKernels kernels = {"AVX-512",
                                           avx512::product_fp32,
                                           avx512::product_bf16,
                                           avx512::product_int8,
                                           avx512::product_int4,
                                           avx512_e2m1,
                                           __builtin_cpu_supports("avx512fp16") ? avx512_fp16_fp8 : avx512_fp8};
    const bool here = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vnni");
    return here ? &kernels : nullptr;
}
}  // namespace roofline::bench
#else
namespace roofline::bench {
const ProductKernels* avx512_products() {
    return nullptr;
}
}  // namespace roofline::bench
#endif
