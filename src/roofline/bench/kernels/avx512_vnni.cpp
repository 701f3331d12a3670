// The products for x86-64 with AVX-512 and VNNI: of whole and half bytes by its instruction that multiplies them and
// adds up four, all others as avx512.cpp has them.
#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>
#include <vector>

#include "roofline/bench/kernels/e4m3.hpp"
#include "roofline/bench/kernels/groups.hpp"
#include "roofline/bench/kernels/panels.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/save_lanes.hpp"
#include "roofline/bench/kernels/side_by_side.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma,f16c,prefer-vector-width=512")
namespace roofline::bench::avx512_vnni {

#define ROOFLINE_LANES 16
#include "roofline/bench/kernels/lanes.inc"

constexpr int rows_at_once = 8;
constexpr int bytes_ahead = 1024;
using NarrowX = std::int8_t;

/// VNNI multiplies unsigned with signed bytes: 128 is added to w, and 128 times the sum of x taken off again.
template <bool ask, int count, int columns>
inline __attribute__((always_inline)) void add_bytes(const std::int8_t* const (&rows)[count], const std::int8_t* x,
                                                     std::int64_t pitch, std::int64_t at, __mmask64 there,
                                                     __m512i (&sums)[count][columns]) {
    const __m512i shift = _mm512_set1_epi8(static_cast<char>(0x80));
    __m512i values[columns];
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) values[j] = _mm512_maskz_loadu_epi8(there, x + j * pitch + at);
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        if (ask) __builtin_prefetch(rows[i] + at + bytes_ahead);
        const __m512i weights = _mm512_xor_si512(_mm512_maskz_loadu_epi8(there, rows[i] + at), shift);
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) sums[i][j] = _mm512_dpbusd_epi32(sums[i][j], weights, values[j]);
    }
}

inline std::int32_t too_much(const ProductCall& call, std::int64_t x_row) {
    return 128 * static_cast<std::int32_t>(call.x_sums[x_row]);
}

inline __attribute__((always_inline)) __m512i add_dots(__m512i sums, __m512i weights, __m512i x) {
    return _mm512_dpbusd_epi32(sums, weights, x);
}
inline __attribute__((always_inline)) __m512i add_dots(__m512i sums, __m512i weights, __m512i x, __m512i others,
                                                       __m512i their_x) {
    return add_dots(add_dots(sums, weights, x), others, their_x);
}
constexpr int signed_shift = 128;
inline __attribute__((always_inline)) __m512i add_signed(__m512i sums, __m512i weights, __m512i x) {
    return add_dots(sums, _mm512_xor_si512(weights, _mm512_set1_epi8(static_cast<char>(0x80))), x);
}
#include "roofline/bench/kernels/avx512_bytes.inc"
#include "roofline/bench/kernels/avx512_groups.inc"

void product_int8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const auto* x = static_cast<const std::int8_t*>(call.x);
    if (call.m == 1) {
        side_by_side<rows_at_once>(first, last, [&](const std::int64_t(&rows)[rows_at_once]) {
            bytes_product<true, rows_at_once, 1>(call, rows, 0, x, call.k);
        });
        return;
    }
    static thread_local LaidRows<std::int8_t> room;
    const LaidRows<std::int8_t>& laid =
        room.laid(call, [&](std::int64_t row, std::int8_t* to) { std::copy_n(x + row * call.k, call.k, to); });
    panels_of_bytes(call, first, last, laid);
}
#undef ROOFLINE_LANES

}  // namespace roofline::bench::avx512_vnni
#pragma GCC pop_options

namespace roofline::bench {
const ProductKernels* avx512_vnni_products() {
    static const ProductKernels* const here = []() -> const ProductKernels* {
        const ProductKernels* others = avx512_products();
        if (others == nullptr || !__builtin_cpu_supports("avx512vnni")) return nullptr;
        static const ProductKernels kernels = [&] {
            ProductKernels some = *others;
            some.name = "AVX-512 with VNNI";
            some.int8 = avx512_vnni::product_int8;
            some.int4 = avx512_vnni::product_int4;
            some.groups = avx512_vnni::product_groups;
            return some;
        }();
        return &kernels;
    }();
    return here;
}
}  // namespace roofline::bench
#else
namespace roofline::bench {
const ProductKernels* avx512_vnni_products() {
    return nullptr;
}
}  // namespace roofline::bench
#endif
