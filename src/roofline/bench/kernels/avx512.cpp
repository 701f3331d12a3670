// The products for x86-64 with AVX-512 and VNNI.
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "roofline/bench/kernels/e2m1.hpp"
#include "roofline/bench/kernels/fp8.hpp"
#include "roofline/bench/kernels/group_factors.hpp"
#include "roofline/bench/kernels/panels.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/save_lanes.hpp"
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

template <bool ask, int count, int columns>
inline __attribute__((always_inline)) void bytes_product(const ProductCall& call, const std::int64_t (&rows)[count],
                                                         std::int64_t x_row, const std::int8_t* x, std::int64_t pitch) {
    const std::int8_t* from[count];
    __m512i sums[count][columns];
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        from[i] = static_cast<const std::int8_t*>(call.weights.values) + rows[i] * call.k;
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) sums[i][j] = _mm512_setzero_si512();
    }
    std::int64_t at = 0;
    for (; at + 64 <= call.k; at += 64) add_bytes<ask>(from, x, pitch, at, ~__mmask64{0}, sums);
    if (at < call.k) add_bytes<false>(from, x, pitch, at, (__mmask64{1} << (call.k - at)) - 1, sums);
    Integers vectors[count][columns];
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) vectors[i][j] = reinterpret_cast<Integers>(sums[i][j]);
    }
    std::int32_t dots[count][columns];
    add_up(vectors, dots);
    for (int j = 0; j < columns; ++j) {
        const auto excess = 128 * static_cast<std::int32_t>(call.x_sums[x_row + j]);
        for (int i = 0; i < count; ++i) {
            call.y[(x_row + j) * call.n + rows[i]] =
                static_cast<float>(dots[i][j] - excess) * call.weights.row_scales[rows[i]] * call.x_scales[x_row + j];
        }
    }
}

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
    by_panels<4, 4>(
        call, first, last,
        [&]<int columns>(std::integral_constant<int, columns>, const std::int64_t(&rows)[4], std::int64_t x_row) {
            const auto product = x_row == 0 ? bytes_product<true, 4, columns> : bytes_product<false, 4, columns>;
            product(call, rows, x_row, laid.row(x_row), laid.pitch());
        });
}
#define ROOFLINE_INT8_PRODUCT

/// Scales of up to 16 groups from `begin` on of a row of W, and zero points times these; nothing beyond `count`.
struct SixteenGroups {
    __m512 scales;
    __m512 offsets;
};
inline __attribute__((always_inline)) SixteenGroups sixteen_groups(const Weights& weights, std::int64_t place,
                                                                   std::int64_t count) {
    if (count < 16 || place % 2 != 0) {
        alignas(64) float scales[16] = {};
        alignas(64) float offsets[16] = {};
        for (std::int64_t i = 0; i < count; ++i) {
            scales[i] = weights.group_scale(place + i);
            offsets[i] = scales[i] * weights.group_zero(place + i);
        }
        return {_mm512_load_ps(scales), _mm512_load_ps(offsets)};
    }
    const auto narrow = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights.group_scales + place));
    const __m512 scales =
        _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xFFFF, _mm512_maskz_cvtepu16_epi32(0xFFFF, narrow), 16));
    std::int32_t halves[2];
    __builtin_memcpy(halves, weights.group_zeros + place / 2, sizeof halves);
    const __m512i both = _mm512_mask_set1_epi32(_mm512_set1_epi32(halves[0]), 0xFF00, halves[1]);
    const __m512i places = _mm512_set_epi32(28, 24, 20, 16, 12, 8, 4, 0, 28, 24, 20, 16, 12, 8, 4, 0);
    const __m512i zeros = _mm512_and_si512(_mm512_maskz_srlv_epi32(0xFFFF, both, places), _mm512_set1_epi32(15));
    return {scales, _mm512_mul_ps(scales, _mm512_maskz_cvtepi32_ps(0xFFFF, zeros))};
}

/// A row of x as it meets W: of a group of 128, first what meets the low halves of bytes, and then the high ones. (A
/// group of W is one register; its low halves are the first 16 of every 32 weights. Masks of all, here and above: GCC
/// 12 warns about its own headers otherwise.)
void lay_by_halves(const std::int8_t* x, std::int64_t k, std::int8_t* to) {
    for (std::int64_t at = 0; at < k; at += int4_group) {
        const __m512i one = _mm512_loadu_si512(x + at);
        const __m512i two = _mm512_loadu_si512(x + at + 64);
        _mm512_storeu_si512(to + at, _mm512_maskz_shuffle_i64x2(0xFF, one, two, 0x88));
        _mm512_storeu_si512(to + at + 64, _mm512_maskz_shuffle_i64x2(0xFF, one, two, 0xDD));
    }
}

template <int count, int columns>
inline __attribute__((always_inline)) void int4_dots(const ProductCall& call, const std::int64_t (&rows)[count],
                                                     const LaidRows<std::int8_t>& x, std::int64_t x_row) {
    const std::int64_t groups = call.k / int4_group;
    const __m512i low_half = _mm512_set1_epi8(15);
    const std::uint8_t* from[count];
    __m512 totals[count][columns];
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        from[i] = static_cast<const std::uint8_t*>(call.weights.values) + rows[i] * (call.k / 2);
        __builtin_prefetch(call.weights.group_scales + (rows[i] + 1) * groups);
        __builtin_prefetch(call.weights.group_zeros + (rows[i] + 1) * groups / 2);
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) totals[i][j] = _mm512_setzero_ps();
    }
    for (std::int64_t begin = 0; begin < groups; begin += 16) {
        const std::int64_t end = groups - begin < 16 ? groups - begin : 16;
        const auto here = static_cast<__mmask16>((1U << static_cast<unsigned>(end)) - 1);
        alignas(64) float factors[count][columns][16];
        __m512 x_scales[columns];
        __m512 x_sums[columns];
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) {
            x_scales[j] = _mm512_maskz_loadu_ps(here, call.x_scales + (x_row + j) * groups + begin);
            x_sums[j] =
                _mm512_mul_ps(x_scales[j], _mm512_maskz_loadu_ps(here, call.x_sums + (x_row + j) * groups + begin));
        }
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
            const SixteenGroups some = sixteen_groups(call.weights, rows[i] * groups + begin, end);
#pragma GCC unroll 4
            for (int j = 0; j < columns; ++j) {
                _mm512_store_ps(factors[i][j], _mm512_mul_ps(some.scales, x_scales[j]));
                totals[i][j] = _mm512_fnmadd_ps(some.offsets, x_sums[j], totals[i][j]);
            }
        }
        for (std::int64_t group = 0; group < end; ++group) {
            const std::int8_t* with = x.row(x_row) + (begin + group) * int4_group;
#pragma GCC unroll 8
            for (int i = 0; i < count; ++i) {
                const std::uint8_t* at = from[i] + (begin + group) * (int4_group / 2);
                __builtin_prefetch(at + bytes_ahead);
                const __m512i both = _mm512_loadu_si512(at);
                const __m512i low = _mm512_and_si512(both, low_half);
                const __m512i high = _mm512_and_si512(_mm512_srli_epi16(both, 4), low_half);
#pragma GCC unroll 4
                for (int j = 0; j < columns; ++j) {
                    __m512i dots =
                        _mm512_dpbusd_epi32(_mm512_setzero_si512(), low, _mm512_load_si512(with + j * x.pitch()));
                    dots = _mm512_dpbusd_epi32(dots, high, _mm512_load_si512(with + j * x.pitch() + 64));
                    totals[i][j] = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(0xFFFF, dots),
                                                   _mm512_set1_ps(factors[i][j][group]), totals[i][j]);
                }
            }
        }
    }
    save_lanes(call, rows, x_row, totals);
}

void product_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    static thread_local LaidRows<std::int8_t> room;
    const LaidRows<std::int8_t>& x = room.laid(call, [&](std::int64_t row, std::int8_t* to) {
        lay_by_halves(static_cast<const std::int8_t*>(call.x) + row * call.k, call.k, to);
    });
    if (call.m == 1) {
        side_by_side<rows_at_once>(first, last, [&](const std::int64_t(&rows)[rows_at_once]) {
            int4_dots<rows_at_once, 1>(call, rows, x, 0);
        });
        return;
    }
    by_panels<4, 4>(call, first, last,
                    [&]<int columns>(std::integral_constant<int, columns>, const std::int64_t(&rows)[4],
                                     std::int64_t x_row) { int4_dots<4, columns>(call, rows, x, x_row); });
}
#define ROOFLINE_INT4_PRODUCT
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
