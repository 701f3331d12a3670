// Products with weights in e4m3, as they lie in a checkpoint, with x in fp32, for every instruction set.
//
// A weight is s eeee mmm. With three zeros before its exponent and seven behind its fraction it is a number of 16 bits
// (s 0eeee mmm0000000) that is 2^-8 of it, the smallest ones too, which have no leading one in either; instructions
// widen that to 32 bits. (As a number of 32 bits at once the smallest would be below the least normal one, where
// arithmetic takes a hundred times as long.)
//
// What a core spends on 64 weights with one row of x: AVX-512 19.5 vector instructions (5 to take the bytes apart, 10
// to widen them, of which it counts conversions twice, 4 products, and what is shared by eight rows), of which it
// starts two a cycle; AVX2 36, AArch64 48.
#include "roofline/bench/kernels/fp8.hpp"

#include <algorithm>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

#include "roofline/bench/kernels/e4m3.hpp"
#include "roofline/bench/kernels/save_lanes.hpp"
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
            for (const float total : totals) call.y[x_row++ * call.n + row] = total;
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

template <int columns>
inline void avx2_dots(const std::uint8_t* w, const float* x, std::int64_t k, std::int64_t count,
                      float (&sums)[columns]) {
    const __m256i without_copy = _mm256_set1_epi16(static_cast<std::int16_t>(0xBFFF));
    __m256 totals[columns][2];
    for (auto& total : totals) total[0] = total[1] = _mm256_setzero_ps();
    for (std::int64_t at = 0; at < count; at += 16) {
        if (at % 64 == 0) __builtin_prefetch(w + at + bytes_ahead);
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w + at));
        // The sign is copied into the highest place of the exponent, and taken away there.
        const __m256i numbers = _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 7), without_copy);
        const __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(numbers));
        const __m256 high = _mm256_cvtph_ps(_mm256_extracti128_si256(numbers, 1));
#pragma GCC unroll 4
        for (int column = 0; column < columns; ++column) {
            const float* with = x + column * k + at;
            totals[column][0] = _mm256_fmadd_ps(low, _mm256_loadu_ps(with), totals[column][0]);
            totals[column][1] = _mm256_fmadd_ps(high, _mm256_loadu_ps(with + 8), totals[column][1]);
        }
    }
    for (int column = 0; column < columns; ++column) {
        const __m256 both = _mm256_add_ps(totals[column][0], totals[column][1]);
        __m128 four = _mm_add_ps(_mm256_castps256_ps128(both), _mm256_extractf128_ps(both, 1));
        four = _mm_add_ps(four, _mm_movehl_ps(four, four));
        sums[column] = e4m3_of_half * (_mm_cvtss_f32(four) + _mm_cvtss_f32(_mm_movehdup_ps(four)));
    }
}

}  // namespace

void avx2_fp8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    all_rows(call, first, last,
             []<int columns>(const std::uint8_t* w, const float* x, std::int64_t k, std::int64_t count,
                             float(&sums)[columns]) { avx2_dots(w, x, k, count, sums); });
}

#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma,f16c,prefer-vector-width=512")

namespace {

constexpr std::int64_t line = 64;  // weights of a register

/// 64 values of x as they meet a register of weights: those at even places, and those at odd ones.
struct MetByLine {
    __m512 even[2];
    __m512 odd[2];
};
inline __attribute__((always_inline)) MetByLine met_by_line(const float* x, std::int64_t left) {
    const __m512i evens = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odds = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    MetByLine met;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
        const __m512 one = _mm512_maskz_loadu_ps(left > 32 * half ? 0xFFFF : 0, x + 32 * half);
        const __m512 two = _mm512_maskz_loadu_ps(left > 32 * half + 16 ? 0xFFFF : 0, x + 32 * half + 16);
        met.even[half] = _mm512_maskz_permutex2var_ps(0xFFFF, one, evens, two);
        met.odd[half] = _mm512_maskz_permutex2var_ps(0xFFFF, one, odds, two);
    }
    return met;
}

/// (The compiler's own shuffle: GCC 12 warns about its header's.)
template <int half>
inline __attribute__((always_inline)) __m512 wide(__m512i numbers) {
    const auto words = reinterpret_cast<__v8di>(numbers);
    const auto some = __builtin_shufflevector(words, words, 4 * half, 4 * half + 1, 4 * half + 2, 4 * half + 3);
    return _mm512_maskz_cvtph_ps(0xFFFF, reinterpret_cast<__m256i>(some));
}

template <int count, int columns>
inline __attribute__((always_inline)) void avx512_dots(const ProductCall& call, const std::int64_t (&rows)[count],
                                                       std::int64_t x_row) {
    const __m512i without_copy = _mm512_set1_epi16(static_cast<std::int16_t>(0xBFFF));
    const std::uint8_t* from[count];
    __m512 totals[count][columns];
    for (int i = 0; i < count; ++i) {
        from[i] = static_cast<const std::uint8_t*>(call.weights.values) + rows[i] * call.k;
        for (__m512& total : totals[i]) total = _mm512_setzero_ps();
    }
    const float* x = static_cast<const float*>(call.x) + x_row * call.k;
    for (std::int64_t begin = 0; begin < call.k; begin += block) {
        __m512 sums[count][columns];
        for (auto& row : sums) {
            for (__m512& sum : row) sum = _mm512_setzero_ps();
        }
        for (std::int64_t at = begin; at < std::min(call.k, begin + block); at += line) {
            const std::int64_t left = call.k - at;
            const __mmask64 there = left >= line ? ~__mmask64{0} : (__mmask64{1} << static_cast<unsigned>(left)) - 1;
            MetByLine met[columns];
            for (int column = 0; column < columns; ++column) met[column] = met_by_line(x + column * call.k + at, left);
            for (int i = 0; i < count; ++i) {
                __builtin_prefetch(from[i] + at + bytes_ahead);
                const __m512i bytes = _mm512_maskz_loadu_epi8(there, from[i] + at);
                // Bytes at even places are the lower ones of 16 bits. A shift to the right copies the sign.
                const __m512i even = _mm512_and_si512(_mm512_srai_epi16(_mm512_slli_epi16(bytes, 8), 1), without_copy);
                const __m512i odd =
                    _mm512_and_si512(_mm512_srai_epi16(bytes, 1), _mm512_set1_epi16(static_cast<std::int16_t>(0xBF80)));
                const __m512 evens[2] = {wide<0>(even), wide<1>(even)};
                const __m512 odds[2] = {wide<0>(odd), wide<1>(odd)};
                for (int column = 0; column < columns; ++column) {
#pragma GCC unroll 2
                    for (int half = 0; half < 2; ++half) {
                        sums[i][column] = _mm512_fmadd_ps(evens[half], met[column].even[half], sums[i][column]);
                        sums[i][column] = _mm512_fmadd_ps(odds[half], met[column].odd[half], sums[i][column]);
                    }
                }
            }
        }
        for (int i = 0; i < count; ++i) {
            const __m512 scale = _mm512_set1_ps(e4m3_of_half * call.weights.fp8_scale(rows[i], begin, call.k));
            for (int column = 0; column < columns; ++column)
                totals[i][column] = _mm512_fmadd_ps(sums[i][column], scale, totals[i][column]);
        }
    }
    save_lanes(call, rows, x_row, totals);
}

}  // namespace

void avx512_fp8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (call.m == 1) {
        side_by_side<8>(first, last, [&](const std::int64_t(&rows)[8]) { avx512_dots<8, 1>(call, rows, 0); });
        return;
    }
    side_by_side<4>(first, last, [&](const std::int64_t(&rows)[4]) {
        std::int64_t x_row = 0;
        for (; x_row + 4 <= call.m; x_row += 4) avx512_dots<4, 4>(call, rows, x_row);
        for (; x_row + 2 <= call.m; x_row += 2) avx512_dots<4, 2>(call, rows, x_row);
        for (; x_row < call.m; ++x_row) avx512_dots<4, 1>(call, rows, x_row);
    });
}

#pragma GCC pop_options

#endif

}  // namespace roofline::bench
