// The products for x86-64 with AVX-512 and VNNI.
#include <utility>
#include <vector>

#include "roofline/bench/kernels/attention.hpp"
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

/// VNNI multiplies unsigned with signed bytes: 128 is added to w, and 128 times the sum of x taken off again.
inline void int8_dots(const std::int8_t* const (&rows)[4], const std::int8_t* x, std::int64_t k, float x_sum,
                      float (&dots)[4]) {
    const __m512i shift = _mm512_set1_epi8(static_cast<char>(0x80));
    __m512i sums[4];
    for (auto& sum : sums) sum = _mm512_setzero_si512();
    for (std::int64_t at = 0; at < k; at += 64) {
        const __mmask64 there = k - at >= 64 ? ~__mmask64{0} : (__mmask64{1} << (k - at)) - 1;
        const __m512i values = _mm512_maskz_loadu_epi8(there, x + at);
        for (int i = 0; i < 4; ++i) {
            const __m512i weights = _mm512_maskz_loadu_epi8(there, rows[i] + at);
            sums[i] = _mm512_dpbusd_epi32(sums[i], _mm512_xor_si512(weights, shift), values);
        }
    }
    const auto excess = 128 * static_cast<std::int32_t>(x_sum);
    for (int i = 0; i < 4; ++i) {
        const auto parts = reinterpret_cast<Integers>(sums[i]);
        std::int32_t total = 0;
        for (int lane = 0; lane < lanes; ++lane) total += parts[lane];
        dots[i] = static_cast<float>(total - excess);
    }
}

/// A group is one register. Its low halves are the first 16 of every 32 weights, its high halves the others.
inline __attribute__((always_inline)) void int4_sums(const std::uint8_t* const (&rows)[4], const std::int8_t* x,
                                                     Floats (&sums)[4]) {
    const __m512i low_half = _mm512_set1_epi8(15);
    const __m512i one = _mm512_loadu_si512(x);
    const __m512i two = _mm512_loadu_si512(x + 64);
    // With a mask of all: GCC 12 warns about its own header otherwise.
    const __m512i first = _mm512_maskz_shuffle_i64x2(0xFF, one, two, 0x88);
    const __m512i second = _mm512_maskz_shuffle_i64x2(0xFF, one, two, 0xDD);
    for (int row = 0; row < 4; ++row) {
        const __m512i both = _mm512_loadu_si512(rows[row]);
        const __m512i high = _mm512_and_si512(_mm512_srli_epi16(both, 4), low_half);
        __m512i dots = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_and_si512(both, low_half), first);
        dots = _mm512_dpbusd_epi32(dots, high, second);
        sums[row] = __builtin_convertvector(reinterpret_cast<Integers>(dots), Floats);
    }
}
#define ROOFLINE_INT8_DOTS int8_dots
#define ROOFLINE_INT4_SUMS int4_sums
#include "roofline/bench/kernels/attention_lanes.inc"
#include "roofline/bench/kernels/product_lanes.inc"
#undef ROOFLINE_LANES

}  // namespace roofline::bench::avx512
#pragma GCC pop_options

namespace roofline::bench {
const ProductKernels* avx512_products() {
    static constexpr ProductKernels kernels = {
        "AVX-512", avx512::product_fp32, avx512::product_bf16, avx512::product_int8, avx512::product_int4, false};
    const bool here = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vnni");
    return here ? &kernels : nullptr;
}
const AttentionKernels* avx512_attention() {
    static constexpr AttentionKernels kernels = {"AVX-512", avx512::attention_piece<Bf16>,
                                                 avx512::attention_piece<float>};
    return avx512_products() != nullptr ? &kernels : nullptr;
}
}  // namespace roofline::bench
#else
namespace roofline::bench {
const ProductKernels* avx512_products() {
    return nullptr;
}
const AttentionKernels* avx512_attention() {
    return nullptr;
}
}  // namespace roofline::bench
#endif
