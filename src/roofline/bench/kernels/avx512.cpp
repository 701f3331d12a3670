// The products for x86-64 with AVX-512. Bytes are multiplied without VNNI here, which is in avx512_vnni.cpp.
#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>
#include <vector>

#include "roofline/bench/kernels/e4m3.hpp"
#include "roofline/bench/kernels/fp8.hpp"
#include "roofline/bench/kernels/groups.hpp"
#include "roofline/bench/kernels/panels.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/save_lanes.hpp"
#include "roofline/bench/kernels/side_by_side.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma,f16c,prefer-vector-width=512")
namespace roofline::bench::avx512 {

#define ROOFLINE_LANES 16
#include "roofline/bench/kernels/lanes.inc"

constexpr int rows_at_once = 8;
constexpr int bytes_ahead = 1024;
using NarrowX = std::int16_t;

inline __attribute__((always_inline)) __m512i widened(const __m256i& bytes) {
    return _mm512_maskz_cvtepi8_epi16(~__mmask32{0}, bytes);
}

/// 64 bytes of each row of W, or what is `there` of them, widened to 16 bits; rows of x lie so already. (Unsigned with
/// signed bytes, as AVX2 has it, would take an instruction more: AVX-512 cannot give a byte the sign of another.)
template <bool ask, int count, int columns>
inline __attribute__((always_inline)) void add_bytes(const std::int8_t* const (&rows)[count], const std::int16_t* x,
                                                     std::int64_t pitch, std::int64_t at, __mmask64 there,
                                                     __m512i (&sums)[count][columns]) {
#pragma GCC unroll 2
    for (std::int64_t half = 0; half < 2; ++half) {
        const std::int64_t from = at + 32 * half;
        const auto some = static_cast<__mmask32>(there >> (32 * half));
        __m512i values[columns];
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) values[j] = _mm512_maskz_loadu_epi16(some, x + j * pitch + from);
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
            if (ask && half == 0) __builtin_prefetch(rows[i] + from + bytes_ahead);
            const __m512i weights = widened(_mm256_maskz_loadu_epi8(some, rows[i] + from));
#pragma GCC unroll 4
            for (int j = 0; j < columns; ++j)
                sums[i][j] = _mm512_add_epi32(sums[i][j], _mm512_madd_epi16(weights, values[j]));
        }
    }
}

inline std::int32_t too_much(const ProductCall&, std::int64_t) {
    return 0;
}

/// Pairs of products are added up in 16 bits, and of two registers with weights up to 31 too: 4 x 31 x 127.
inline __attribute__((always_inline)) __m512i add_pairs(__m512i sums, __m512i pairs) {
    return _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
inline __attribute__((always_inline)) __m512i add_dots(__m512i sums, __m512i weights, __m512i x) {
    return add_pairs(sums, _mm512_maddubs_epi16(weights, x));
}
inline __attribute__((always_inline)) __m512i add_dots(__m512i sums, __m512i weights, __m512i x, __m512i others,
                                                       __m512i their_x) {
    return add_pairs(sums, _mm512_add_epi16(_mm512_maddubs_epi16(weights, x), _mm512_maddubs_epi16(others, their_x)));
}
/// The sign of a weight goes over to x: no two products are then beyond 16 bits.
constexpr int signed_shift = 0;
inline __attribute__((always_inline)) __m512i add_signed(__m512i sums, __m512i weights, __m512i x) {
    const __m512i turned = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(weights), _mm512_setzero_si512(), x);
    return add_dots(sums, _mm512_maskz_abs_epi8(~__mmask64{0}, weights), turned);
}
#include "roofline/bench/kernels/avx512_bytes.inc"
#include "roofline/bench/kernels/avx512_groups.inc"

void product_int8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    static thread_local LaidRows<std::int16_t> room;
    const LaidRows<std::int16_t>& x = room.laid(call, [&](std::int64_t row, std::int16_t* to) {
        std::copy_n(static_cast<const std::int8_t*>(call.x) + row * call.k, call.k, to);
    });
    if (call.m == 1) {
        side_by_side<rows_at_once>(first, last, [&](const std::int64_t(&rows)[rows_at_once]) {
            bytes_product<true, rows_at_once, 1>(call, rows, 0, x.row(0), x.pitch());
        });
        return;
    }
    panels_of_bytes(call, first, last, x);
}
#define ROOFLINE_INT8_PRODUCT

#define ROOFLINE_RUNS rows_at_once
#define ROOFLINE_AHEAD bytes_ahead
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
                                           avx512::product_groups,
                                           __builtin_cpu_supports("avx512fp16") ? avx512_fp16_fp8 : avx512_fp8};
    const bool here = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
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
