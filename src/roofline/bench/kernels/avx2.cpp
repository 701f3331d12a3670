// The products for x86-64 with AVX2 and FMA.
#include <type_traits>

#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/products.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace roofline::bench::avx2 {

inline __attribute__((always_inline)) __m256i widened(const std::int8_t* from) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

inline std::int32_t int8_dot(const std::int8_t* a, const std::int8_t* b, std::int64_t k) {
    __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    std::int64_t at = 0;
    for (; at + 32 <= k; at += 32) {
        for (int i = 0; i < 2; ++i)
            sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(widened(a + at + 16 * i), widened(b + at + 16 * i)));
    }
    alignas(32) std::int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), _mm256_add_epi32(sums[0], sums[1]));
    std::int32_t total = 0;
    for (const std::int32_t lane : lanes) total += lane;
    for (; at < k; ++at) total += a[at] * b[at];
    return total;
}
#define ROOFLINE_INT8_DOT int8_dot
#define ROOFLINE_LANES 8
#include "roofline/bench/kernels/attention_lanes.inc"
#undef ROOFLINE_LANES
#undef ROOFLINE_INT8_DOT

}  // namespace roofline::bench::avx2
#pragma GCC pop_options

namespace roofline::bench {
const ProductKernels* avx2_products() {
    static constexpr ProductKernels kernels = {
        "AVX2", avx2::product_fp32, avx2::product_bf16, avx2::product_int8, avx2::product_int4, false};
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kernels : nullptr;
}
const AttentionKernels* avx2_attention() {
    static constexpr AttentionKernels kernels = {"AVX2", avx2::attention_piece<Bf16>, avx2::attention_piece<float>};
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kernels : nullptr;
}
}  // namespace roofline::bench
#else
namespace roofline::bench {
const ProductKernels* avx2_products() {
    return nullptr;
}
const AttentionKernels* avx2_attention() {
    return nullptr;
}
}  // namespace roofline::bench
#endif
