// Products with weights in e4m3, as they lie in a checkpoint, with x in fp32, for every instruction set.
//
// A weight is s eeee mmm. With three zeros before its exponent and seven behind its fraction it is a number of 16 bits
// (s 0eeee mmm0000000) that is 2^-8 of it, the smallest ones too, which have no leading one in either; instructions
// widen that to 32 bits. (As a number of 32 bits at once the smallest would be below the least normal one, where
// arithmetic takes a hundred times as long.)
//
// What a core spends on 64 weights with one row of x: AVX-512 13 vector instructions (5 to make numbers of 16 bits of
// the bytes, 4 to widen these out of memory, 4 products) beside 2 stores, and 4 for each further row of x; it starts
// two a cycle. AVX2 26 beside 4 stores, and 8 for each further row; it starts three, two of them products. AArch64 48.
#include "roofline/bench/kernels/fp8.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

#include "roofline/bench/kernels/e4m3.hpp"
#include "roofline/bench/kernels/panels.hpp"
#include "roofline/bench/kernels/side_by_side.hpp"

namespace roofline::bench {

namespace {

/// Values of a row that share a scale at the most; sums are multiplied by it once for each.
constexpr std::int64_t block = fp8_block_side;
/// Goes over rows of W, and for each over the rows of x, four at a time and then one by one.
template <class Dots>
void all_rows(const ProductCall& call, std::int64_t first, std::int64_t last, const Dots& dots) {
    for (std::int64_t row = first; row < last; ++row) {
        const auto* w = static_cast<const std::uint8_t*>(call.weights.values) + row * call.k;
        std::int64_t x_row = 0;
        const auto meet = [&]<int columns>() {
            const float* x = static_cast<const float*>(call.x) + x_row * call.k;
            float totals[columns] = {};
            for (std::int64_t at = 0; at < call.k; at += block) {
                float sums[columns];
                dots(w + at, x + at, call.k, std::min(block, call.k - at), sums);
                const float scale = call.weights.fp8_scale(row, at, call.k);
                for (int column = 0; column < columns; ++column) totals[column] += scale * sums[column];
            }
            for (const float total : totals) call.y[x_row++ * call.pitch() + row] = total;
        };
        while (x_row + 4 <= call.m) meet.template operator()<4>();
        while (x_row < call.m) meet.template operator()<1>();
    }
}

}  // namespace

void portable_fp8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    all_rows(call, first, last,
             []<int columns>(const std::uint8_t* w, const float* x, std::int64_t k, std::int64_t count,
                             float(&sums)[columns]) {
                 for (float& sum : sums) sum = 0.0F;
                 for (std::int64_t i = 0; i < count; ++i) {
                     for (int column = 0; column < columns; ++column)
                         sums[column] += e4m3_values[w[i]] * x[column * k + i];
                 }
             });
}

#if defined(__aarch64__)

namespace {

template <int columns>
inline __attribute__((always_inline)) void neon_dots(const std::uint8_t* w, const float* x, std::int64_t k,
                                                     std::int64_t count, float (&sums)[columns]) {
    float32x4_t totals[columns][2] = {};
    for (std::int64_t at = 0; at < count; at += 16) {
        const int8x16_t bytes = vld1q_s8(reinterpret_cast<const std::int8_t*>(w + at));
        const int16x8_t halves[2] = {vshll_n_s8(vget_low_s8(bytes), 7), vshll_high_n_s8(bytes, 7)};
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
            // The sign was copied into the highest place of the exponent.
            const int16x8_t numbers = vbicq_s16(halves[half], vdupq_n_s16(0x4000));
            const float16x8_t narrow = vreinterpretq_f16_s16(numbers);
            const float32x4_t low = vcvt_f32_f16(vget_low_f16(narrow));
            const float32x4_t high = vcvt_high_f32_f16(narrow);
#pragma GCC unroll 4
            for (int column = 0; column < columns; ++column) {
                const float* with = x + column * k + at + 8 * half;
                totals[column][0] = vfmaq_f32(totals[column][0], low, vld1q_f32(with));
                totals[column][1] = vfmaq_f32(totals[column][1], high, vld1q_f32(with + 4));
            }
        }
    }
    for (int column = 0; column < columns; ++column)
        sums[column] = e4m3_of_half * vaddvq_f32(vaddq_f32(totals[column][0], totals[column][1]));
}

}  // namespace

void neon_fp8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    all_rows(call, first, last,
             []<int columns>(const std::uint8_t* w, const float* x, std::int64_t k, std::int64_t count,
                             float(&sums)[columns]) { neon_dots(w, x, k, count, sums); });
}

#elif defined(__x86_64__)

namespace {

constexpr std::int64_t bytes_ahead = 1024;

}  // namespace

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace {
namespace avx2 {

using NarrowFloats = __m128i;

#define ROOFLINE_LANES 8
#include "roofline/bench/kernels/lanes.inc"

/// Out of memory: out of a register a conversion takes two instructions and this one, and a load takes none of those.
inline __attribute__((always_inline)) Floats wide(const NarrowFloats& numbers) {
    Floats floats;
    asm("vcvtph2ps %1, %0" : "=x"(floats) : "m"(numbers));
    return floats;
}

/// The sign is copied into the highest place of the exponent, and taken away there.
template <bool pairs, int some>
inline __attribute__((always_inline)) void unpack(const std::uint8_t* from, NarrowFloats (&numbers)[4]) {
    const auto sixteen = [&](int at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)); };
    const auto save = [&](int at, const __m256i& four) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(numbers + at), four);
    };
    if constexpr (pairs) {
        const __m256i exact = _mm256_set1_epi16(static_cast<std::int16_t>(0xBF80));
        const __m256i bytes = some == 32 ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))
                                         : _mm256_set_m128i(_mm_setzero_si128(), sixteen(0));
        save(0, _mm256_and_si256(_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 1), exact));
        save(2, _mm256_and_si256(_mm256_srai_epi16(bytes, 1), exact));
    } else {
        const __m256i without_copy = _mm256_set1_epi16(static_cast<std::int16_t>(0xBFFF));
        for (int at = 0; at < some; at += 16)
            save(at / 8, _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(sixteen(at)), 7), without_copy));
    }
}

#include "roofline/bench/kernels/fp8_lanes.inc"
#undef ROOFLINE_LANES

}  // namespace avx2
}  // namespace

void avx2_fp8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    avx2::product_fp8(call, first, last);
}

#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma,f16c,prefer-vector-width=512")

namespace {
namespace avx512 {

using NarrowFloats = __m256i;

#define ROOFLINE_LANES 16
#include "roofline/bench/kernels/lanes.inc"

/// As above; of what widens a core starts one a cycle.
inline __attribute__((always_inline)) Floats wide(const NarrowFloats& numbers) {
    Floats floats;
    asm("vcvtph2ps %1, %0" : "=v"(floats) : "m"(numbers));
    return floats;
}

template <bool pairs, int some>
inline __attribute__((always_inline)) void unpack(const std::uint8_t* from, NarrowFloats (&numbers)[4]) {
    constexpr __mmask64 there = ~__mmask64{0} >> (64 - some);
    if constexpr (pairs) {
        const __m512i exact = _mm512_set1_epi16(static_cast<std::int16_t>(0xBF80));
        const __m512i bytes = _mm512_maskz_loadu_epi8(there, from);
        const __m512i lower = _mm512_maskz_slli_epi16(~__mmask32{0}, bytes, 8);
        const auto placed = [&](const __m512i& upper) {
            return _mm512_and_si512(_mm512_maskz_srai_epi16(~__mmask32{0}, upper, 1), exact);
        };
        _mm512_store_si512(numbers, placed(lower));
        _mm512_store_si512(numbers + 2, placed(bytes));
    } else {
        const __m512i without_copy = _mm512_set1_epi16(static_cast<std::int16_t>(0xBFFF));
        for (int half = 0; half < 2; ++half) {
            const __m256i bytes =
                _mm256_maskz_loadu_epi8(static_cast<__mmask32>(there >> (32 * half)), from + 32 * half);
            const __m512i words = _mm512_maskz_cvtepi8_epi16(~__mmask32{0}, bytes);
            _mm512_store_si512(numbers + 2 * half,
                               _mm512_and_si512(_mm512_maskz_slli_epi16(~__mmask32{0}, words, 7), without_copy));
        }
    }
}

#include "roofline/bench/kernels/fp8_lanes.inc"
#undef ROOFLINE_LANES

}  // namespace avx512
}  // namespace

void avx512_fp8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    avx512::product_fp8(call, first, last);
}

#pragma GCC pop_options

#endif

}  // namespace roofline::bench
