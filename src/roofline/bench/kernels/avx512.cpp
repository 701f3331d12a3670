// The products for x86-64 with AVX-512 and VNNI.
#include <type_traits>

#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/products.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma,prefer-vector-width=512")
namespace roofline::bench::avx512 {

/// VNNI multiplies unsigned with signed bytes: 128 is added to x, and 128 times the sum of w taken off again.
inline std::int32_t int8_dot(const std::int8_t* w, const std::int8_t* x, std::int64_t k) {
    __m512i products = _mm512_setzero_si512();
    __m512i excess = _mm512_setzero_si512();
    const __m512i shift = _mm512_set1_epi8(static_cast<char>(0x80));
    std::int64_t at = 0;
    for (; at + 64 <= k; at += 64) {
        const __m512i weights = _mm512_loadu_si512(w + at);
        products = _mm512_dpbusd_epi32(products, _mm512_xor_si512(_mm512_loadu_si512(x + at), shift), weights);
        excess = _mm512_dpbusd_epi32(excess, shift, weights);
    }
    alignas(64) std::int32_t sums[16];
    _mm512_store_si512(sums, _mm512_sub_epi32(products, excess));
    std::int32_t total = 0;
    for (const std::int32_t sum : sums) total += sum;
    for (; at < k; ++at) total += w[at] * x[at];
    return total;
}
#define ROOFLINE_INT8_DOT int8_dot
#define ROOFLINE_LANES 16
#include "roofline/bench/kernels/attention_lanes.inc"
#undef ROOFLINE_LANES
#undef ROOFLINE_INT8_DOT

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
