// Products with weights in e4m3, as they lie in a checkpoint, with x in fp32, for every instruction set.
//
// A weight is s eeee mmm. With three zeros before its exponent and seven behind its fraction it is a number of 16 bits
// (s 0eeee mmm0000000) that is 2^-8 of it, the smallest ones too, which have no leading one in either; instructions
// widen that to 32 bits. (As a number of 32 bits at once the smallest would be below the least normal one, where
// arithmetic takes a hundred times as long.)
//
// What a core spends on 64 weights with one row of x: AVX-512 13 vector instructions (5 to make numbers of 16 bits of
// the bytes, 4 to widen these out of memory, 4 products) beside 2 stores, and 4 for each further row of x; it starts
// two a cycle. AVX2 36, AArch64 48.
#include "roofline/bench/kernels/fp8.hpp"

#include <algorithm>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

#include "roofline/bench/kernels/e4m3.hpp"
#include "roofline/bench/kernels/panels.hpp"
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

constexpr std::int64_t at_once = 64;  // weights that are widened together

/// Out of memory: out of a register a conversion takes two instructions and this one, of which a core starts one a
/// cycle, and a load takes none of those.
inline __attribute__((always_inline)) __m512 wide(const __m256i& numbers) {
    __m512 floats;
    asm("vcvtph2ps %1, %0" : "=v"(floats) : "m"(numbers));
    return floats;
}

/// A row of x as it meets W where bytes are taken apart in pairs: of every 64 numbers first those at even places, and
/// then the others; zeros behind the last.
void lay_by_pairs(const float* x, std::int64_t k, float* to) {
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
    for (std::int64_t at = 0; at < k; at += at_once) {
        __m512 some[4];
        for (std::int64_t i = 0; i < 4; ++i)
            some[i] = at + 16 * i < k ? _mm512_loadu_ps(x + at + 16 * i) : _mm512_setzero_ps();
        for (std::int64_t i = 0; i < 2; ++i) {
            _mm512_storeu_ps(to + at + 16 * i, _mm512_permutex2var_ps(some[2 * i], even, some[2 * i + 1]));
            _mm512_storeu_ps(to + at + 32 + 16 * i, _mm512_permutex2var_ps(some[2 * i], odd, some[2 * i + 1]));
        }
    }
}

/// 64 weights as numbers of 16 bits: in pairs, those at even places first, or as they lie, which takes one instruction
/// more. The sign is copied into the highest place of the exponent, and taken away there.
template <bool pairs>
inline __attribute__((always_inline)) void unpack(const std::uint8_t* from, __mmask64 there, __m256i (&numbers)[4]) {
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

/// With one row of x, which is as large as four of W, the nearest cache has no room for more.
template <int columns>
constexpr std::int64_t ahead_of = columns == 1 ? bytes_ahead / 2 : bytes_ahead;

/// Adds what `some` weights from `at` on of each row give; of the last of a row there may be less than 64. Where bytes
/// are in pairs all 64 numbers of x are there.
template <bool pairs, int some, int count, int columns>
inline __attribute__((always_inline)) void add_some(const std::uint8_t* const (&from)[count], const float* x,
                                                    std::int64_t pitch, std::int64_t at,
                                                    __m512 (&sums)[count][columns]) {
    alignas(64) __m256i numbers[count][4];
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        __builtin_prefetch(from[i] + at + ahead_of<columns>);
        unpack<pairs>(from[i] + at, ~__mmask64{0} >> (64 - some), numbers[i]);
    }
#pragma GCC unroll 4
    for (int part = 0; part < (pairs ? 4 : some / 16); ++part) {
        __m512 with[columns];
#pragma GCC unroll 4
        for (int column = 0; column < columns; ++column)
            with[column] = _mm512_loadu_ps(x + column * pitch + at + 16 * part);
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
            const __m512 w = wide(numbers[i][part]);
#pragma GCC unroll 4
            for (int column = 0; column < columns; ++column)
                sums[i][column] = _mm512_fmadd_ps(w, with[column], sums[i][column]);
        }
    }
}

template <bool pairs, int count, int columns>
inline __attribute__((always_inline)) void avx512_dots(const ProductCall& call, const std::int64_t (&rows)[count],
                                                       const float* x, std::int64_t pitch, std::int64_t x_row) {
    // Columns that share a scale.
    const std::int64_t together = call.weights.block_scales != nullptr ? block : call.k;
    const std::uint8_t* from[count];
    const float* scales[count];
    __m512 totals[count][columns];
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        from[i] = static_cast<const std::uint8_t*>(call.weights.values) + rows[i] * call.k;
        scales[i] = call.weights.fp8_scales(rows[i], call.k);
#pragma GCC unroll 4
        for (int column = 0; column < columns; ++column) totals[i][column] = _mm512_setzero_ps();
    }
    x += x_row * pitch;
    for (std::int64_t begin = 0; begin < call.k; begin += together) {
        __m512 sums[count][columns];
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
#pragma GCC unroll 4
            for (int column = 0; column < columns; ++column) sums[i][column] = _mm512_setzero_ps();
        }
        const std::int64_t end = std::min(call.k, begin + together);
        std::int64_t at = begin;
        for (; at + at_once <= end; at += at_once) add_some<pairs, at_once>(from, x, pitch, at, sums);
        if (end - at == 48) add_some<pairs, 48>(from, x, pitch, at, sums);
        if (end - at == 32) add_some<pairs, 32>(from, x, pitch, at, sums);
        if (end - at == 16) add_some<pairs, 16>(from, x, pitch, at, sums);
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
            const __m512 scale = _mm512_set1_ps(*scales[i]++);
#pragma GCC unroll 4
            for (int column = 0; column < columns; ++column)
                totals[i][column] = _mm512_fmadd_ps(sums[i][column], scale, totals[i][column]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
#pragma GCC unroll 4
        for (int column = 0; column < columns; ++column)
            totals[i][column] = _mm512_mul_ps(totals[i][column], _mm512_set1_ps(e4m3_of_half));
    }
    save_lanes(call, rows, x_row, totals);
}

template <bool pairs>
void panels_of_fp8(const ProductCall& call, std::int64_t first, std::int64_t last, const float* x, std::int64_t pitch) {
    by_panels<4, 4>(
        call, first, last,
        [&]<int columns>(std::integral_constant<int, columns>, const std::int64_t(&rows)[4], std::int64_t x_row) {
            avx512_dots<pairs, 4, columns>(call, rows, x, pitch, x_row);
        });
}

}  // namespace

void avx512_fp8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const auto* x = static_cast<const float*>(call.x);
    if (call.m > most_laid_wide) return panels_of_fp8<false>(call, first, last, x, call.k);
    static thread_local LaidRows<float> room;
    const LaidRows<float>& laid =
        room.laid(call.m, (call.k + at_once - 1) / at_once * at_once,
                  [&](std::int64_t row, float* to) { lay_by_pairs(x + row * call.k, call.k, to); });
    if (call.m > 1) return panels_of_fp8<true>(call, first, last, laid.row(0), laid.pitch());
    side_by_side<8>(first, last, [&](const std::int64_t(&rows)[8]) {
        avx512_dots<true, 8, 1>(call, rows, laid.row(0), laid.pitch(), 0);
    });
}

#pragma GCC pop_options

#endif

}  // namespace roofline::bench
