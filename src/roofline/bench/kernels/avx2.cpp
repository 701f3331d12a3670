// The products for x86-64 with AVX2 and FMA.
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/e2m1.hpp"
#include "roofline/bench/kernels/fp8.hpp"
#include "roofline/bench/kernels/group_factors.hpp"
#include "roofline/bench/kernels/panels.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/side_by_side.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace roofline::bench::avx2 {

#define ROOFLINE_LANES 8
#include "roofline/bench/kernels/lanes.inc"
#define ROOFLINE_BLOCK 32
#include "roofline/bench/kernels/attention_lanes.inc"

constexpr int bytes_ahead = 1024;

inline __attribute__((always_inline)) __m256i load_bytes(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

/// The instruction multiplies unsigned with signed bytes and adds pairs in 16 bits: |w| with x signed as w. No sum is
/// beyond 2 x 127 x 127, because -128 is neither a weight nor an activation.
inline void int8_dots(const std::int8_t* const (&rows)[4], const std::int8_t* x, std::int64_t k, float,
                      float (&dots)[4]) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sums[4] = {};
    std::int64_t at = 0;
    for (; at + 32 <= k; at += 32) {
        const __m256i values = load_bytes(x + at);
        for (int i = 0; i < 4; ++i) {
            if (at % 64 == 0) __builtin_prefetch(rows[i] + at + bytes_ahead);
            const __m256i weights = load_bytes(rows[i] + at);
            const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(values, weights));
            sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(pairs, ones));
        }
    }
    for (int i = 0; i < 4; ++i) {
        alignas(32) std::int32_t parts[8];
        _mm256_store_si256(reinterpret_cast<__m256i*>(parts), sums[i]);
        std::int32_t total = 0;
        for (const std::int32_t part : parts) total += part;
        for (std::int64_t rest = at; rest < k; ++rest) total += rows[i][rest] * x[rest];
        dots[i] = static_cast<float>(total);
    }
}

/// Half bytes are unsigned as they are, and four pairs of products fit into 16 bits: 8 x 15 x 127.
inline __attribute__((always_inline)) void int4_sums(const std::uint8_t* const (&rows)[4], const std::int8_t* x,
                                                     Floats (&sums)[4]) {
    const __m256i low_half = _mm256_set1_epi8(15);
    __m256i first[2];   // what meets the low halves of two runs
    __m256i second[2];  // and the high ones
    for (int i = 0; i < 2; ++i) {
        const __m256i one = load_bytes(x + 64 * i);
        const __m256i two = load_bytes(x + 64 * i + 32);
        first[i] = _mm256_permute2x128_si256(one, two, 0x20);
        second[i] = _mm256_permute2x128_si256(one, two, 0x31);
    }
    for (int row = 0; row < 4; ++row) {
        __m256i pairs = _mm256_setzero_si256();
        for (int i = 0; i < 2; ++i) {
            const __m256i both = load_bytes(rows[row] + 32 * i);
            const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), low_half);
            pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(_mm256_and_si256(both, low_half), first[i]));
            pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(high, second[i]));
        }
        sums[row] = static_cast<Floats>(_mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))));
    }
}
#define ROOFLINE_INT8_DOTS int8_dots
#define ROOFLINE_INT4_SUMS int4_sums
#define ROOFLINE_AHEAD bytes_ahead
#include "roofline/bench/kernels/product_lanes.inc"
#undef ROOFLINE_LANES

}  // namespace roofline::bench::avx2
#pragma GCC pop_options

namespace roofline::bench {
const ProductKernels* avx2_products() {
    static constexpr ProductKernels kernels = {
        "AVX2", avx2::product_fp32, avx2::product_bf16, avx2::product_int8, avx2::product_int4, avx2_e2m1, avx2_fp8};
    const bool here = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    return here ? &kernels : nullptr;
}
const AttentionKernels* avx2_attention() {
    static constexpr AttentionKernels kernels = {
        "AVX2", avx2::attention_piece<Bf16>, avx2::attention_piece<Bf16>, avx2::attention_piece<float>, KvLayout::rows,
        16};
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
