// The products for x86-64 with AVX2 and FMA.
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/fp8.hpp"
#include "roofline/bench/kernels/groups.hpp"
#include "roofline/bench/kernels/panels.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/save_lanes.hpp"
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

/// Scales of up to eight groups from `place` on, and zero points times these; nothing beyond `count`.
struct EightGroups {
    __m256 scales;
    __m256 offsets;
};
inline __attribute__((always_inline)) EightGroups eight_groups(const Weights& weights, std::int64_t place,
                                                               std::int64_t count) {
    if (count < 8 || place % 2 != 0) {
        alignas(32) float scales[8] = {};
        alignas(32) float offsets[8] = {};
        for (std::int64_t i = 0; i < count; ++i) {
            scales[i] = weights.group_scale(place + i);
            offsets[i] = scales[i] * weights.group_zero(place + i);
        }
        return {_mm256_load_ps(scales), _mm256_load_ps(offsets)};
    }
    const __m128i narrow = _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights.group_scales + place));
    const __m256 scales = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(narrow), 16));
    std::int32_t halves;
    __builtin_memcpy(&halves, weights.group_zeros + place / 2, sizeof halves);
    const __m256i places = _mm256_set_epi32(28, 24, 20, 16, 12, 8, 4, 0);
    const __m256i zeros = _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(halves), places), _mm256_set1_epi32(15));
    return {scales, _mm256_mul_ps(scales, _mm256_cvtepi32_ps(zeros))};
}
/// Up to eight numbers, and zeros.
inline __attribute__((always_inline)) __m256 some_of(const float* from, std::int64_t count) {
    if (count >= 8) return _mm256_loadu_ps(from);
    alignas(32) float some[8] = {};
    for (std::int64_t i = 0; i < count; ++i) some[i] = from[i];
    return _mm256_load_ps(some);
}

/// A row of x as it meets W: of every 64 numbers first what meets the low halves of bytes (the first 16 of each 32),
/// and then the high ones.
void lay_by_halves(const std::int8_t* x, std::int64_t k, std::int8_t* to) {
    for (std::int64_t at = 0; at < k; at += 64) {
        const __m256i one = load_bytes(x + at);
        const __m256i two = load_bytes(x + at + 32);
        _mm256_store_si256(reinterpret_cast<__m256i*>(to + at), _mm256_permute2x128_si256(one, two, 0x20));
        _mm256_store_si256(reinterpret_cast<__m256i*>(to + at + 32), _mm256_permute2x128_si256(one, two, 0x31));
    }
}

/// A group of rows of W with those of rows of x. Half bytes are unsigned as they are, and four pairs of products fit
/// into 16 bits: 8 x 15 x 127.
template <int count, int columns>
inline __attribute__((always_inline)) void add_group(const std::uint8_t* const (&from)[count], const std::int8_t* x,
                                                     std::int64_t pitch, std::int64_t group,
                                                     const float (&factors)[count][columns][8], std::int64_t at,
                                                     __m256 (&totals)[count][columns]) {
    const __m256i low_half = _mm256_set1_epi8(15);
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        const std::uint8_t* bytes = from[i] + group * (int4_group / 2);
        __builtin_prefetch(bytes + bytes_ahead);
        __m256i halves[4];
#pragma GCC unroll 2
        for (int run = 0; run < 2; ++run) {
            const __m256i both = load_bytes(bytes + 32 * run);
            halves[2 * run] = _mm256_and_si256(both, low_half);
            halves[2 * run + 1] = _mm256_and_si256(_mm256_srli_epi16(both, 4), low_half);
        }
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) {
            const std::int8_t* with = x + j * pitch + group * int4_group;
            __m256i pairs = _mm256_maddubs_epi16(halves[0], load_bytes(with));
#pragma GCC unroll 3
            for (int part = 1; part < 4; ++part)
                pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(halves[part], load_bytes(with + 32 * part)));
            totals[i][j] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, ones)),
                                           _mm256_broadcast_ss(factors[i][j] + at), totals[i][j]);
        }
    }
}

template <int count, int columns>
inline __attribute__((always_inline)) void int4_dots(const ProductCall& call, const std::int64_t (&rows)[count],
                                                     const LaidRows<std::int8_t>& x, std::int64_t x_row) {
    const std::int64_t groups = call.k / int4_group;
    const std::uint8_t* from[count];
    __m256 totals[count][columns];
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        from[i] = static_cast<const std::uint8_t*>(call.weights.values) + rows[i] * (call.k / 2);
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) totals[i][j] = _mm256_setzero_ps();
    }
    for (std::int64_t begin = 0; begin < groups; begin += 8) {
        const std::int64_t some = std::min<std::int64_t>(8, groups - begin);
        alignas(32) float factors[count][columns][8];
        __m256 x_scales[columns];
        __m256 x_sums[columns];
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) {
            const std::int64_t place = (x_row + j) * groups + begin;
            x_scales[j] = some_of(call.x_scales + place, some);
            x_sums[j] = _mm256_mul_ps(x_scales[j], some_of(call.x_sums + place, some));
        }
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
            const EightGroups those = eight_groups(call.weights, rows[i] * groups + begin, some);
#pragma GCC unroll 4
            for (int j = 0; j < columns; ++j) {
                _mm256_store_ps(factors[i][j], _mm256_mul_ps(those.scales, x_scales[j]));
                totals[i][j] = _mm256_fnmadd_ps(those.offsets, x_sums[j], totals[i][j]);
            }
        }
        for (std::int64_t at = 0; at < some; ++at)
            add_group(from, x.row(x_row), x.pitch(), begin + at, factors, at, totals);
    }
    save_lanes(call, rows, x_row, totals);
}

void product_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    static thread_local LaidRows<std::int8_t> room;
    const LaidRows<std::int8_t>& x = room.laid(call, [&](std::int64_t row, std::int8_t* to) {
        lay_by_halves(static_cast<const std::int8_t*>(call.x) + row * call.k, call.k, to);
    });
    if (call.m == 1) {
        side_by_side<4>(first, last, [&](const std::int64_t(&rows)[4]) { int4_dots<4, 1>(call, rows, x, 0); });
        return;
    }
    by_panels<2, 4>(call, first, last,
                    [&]<int columns>(std::integral_constant<int, columns>, const std::int64_t(&rows)[2],
                                     std::int64_t x_row) { int4_dots<2, columns>(call, rows, x, x_row); });
}
#define ROOFLINE_INT4_PRODUCT
#define ROOFLINE_INT8_DOTS int8_dots
#define ROOFLINE_AHEAD bytes_ahead
#include "roofline/bench/kernels/product_lanes.inc"
#undef ROOFLINE_LANES

}  // namespace roofline::bench::avx2
#pragma GCC pop_options

namespace roofline::bench {
const ProductKernels* avx2_products() {
    static constexpr ProductKernels kernels = {
        "AVX2", avx2::product_fp32, avx2::product_bf16, avx2::product_int8, avx2::product_int4, avx2_groups, avx2_fp8};
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
