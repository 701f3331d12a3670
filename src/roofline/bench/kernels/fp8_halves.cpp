// Products with weights in e4m3 for x86-64 with arithmetic of 16 bits (AVX512-FP16: Xeons since 2023).
//
// A weight s eeee mmm with three zeros before its exponent and seven behind its fraction is a number of 16 bits that is
// 2^-8 of it (fp8.cpp), so nothing needs to be widened: x becomes numbers of 16 bits too, brought by a power of two to
// less than 2^12, and four products are added up before they meet others in 32 bits. None of these sums is beyond what
// 16 bits hold: 4 x 2^12 x 480 / 256 < 65504. x is rounded to 11 bits, where beside weights in bf16 it has eight.
// (MXCSR has no say in numbers of 16 bits: the smallest ones count, and cost nothing more.)
//
// For 64 weights and one row of x that is 11.5 vector instructions, of which AVX-512 starts two a cycle, where fp8.cpp
// takes 14: 1 to load, 5 to take the bytes apart, 2 to multiply, and 3.5 to widen sums.
#include "roofline/bench/kernels/fp8.hpp"

#if defined(__x86_64__)
#include <algorithm>
#include <cmath>
#include <immintrin.h>
#include <vector>

#include "roofline/bench/kernels/e4m3.hpp"
#include "roofline/bench/kernels/save_lanes.hpp"
#include "roofline/bench/kernels/side_by_side.hpp"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512fp16,fma,f16c,prefer-vector-width=512")

namespace roofline::bench {

namespace {

constexpr std::int64_t line = 64;         // weights of a register
constexpr std::int64_t block = 2 * line;  // whose products are added up in 16 bits
constexpr std::int64_t bytes_ahead = 1024;
constexpr int largest_power = 12;  // of two, that x stays below
static_assert(block <= fp8_block_side && fp8_block_side % block == 0);

/// 64 values of x in 16 bits as they meet a register of weights: those at even places, and those at odd ones.
struct alignas(64) MetByLine {
    __m512h even;
    __m512h odd;
};
/// Rows of x, with zeros behind them up to a whole block.
struct HalfRows {
    std::int64_t lines = 0;
    std::vector<MetByLine> values;  // [row][line]
    std::vector<float> scales;      // that bring a row's sums back, and those of weights

    const MetByLine* row(std::int64_t at) const { return values.data() + at * lines; }
};

/// Sixteen values from `at` on, of which a row has k. (Masks of all, here and below: GCC 12 warns about its own headers
/// otherwise.)
inline __m512 sixteen(const float* x, std::int64_t at, std::int64_t k) {
    const std::int64_t left = std::clamp<std::int64_t>(k - at, 0, 16);
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << static_cast<unsigned>(left)) - 1U), x + at);
}

void narrow(const float* x, std::int64_t k, HalfRows& rows, std::int64_t row) {
    constexpr __mmask16 all = 0xFFFF;
    constexpr __mmask32 all_halves = ~__mmask32{0};
    __m512 most = _mm512_setzero_ps();
    for (std::int64_t at = 0; at < k; at += 16) most = _mm512_maskz_max_ps(all, most, _mm512_abs_ps(sixteen(x, at, k)));
    alignas(64) float lanes[16];
    _mm512_store_ps(lanes, most);
    const float largest = *std::max_element(lanes, lanes + 16);
    const int power = largest > 0.0F && std::isfinite(largest) ? largest_power - 1 - std::ilogb(largest) : 0;
    rows.scales[static_cast<std::size_t>(row)] = std::ldexp(e4m3_of_half, -power);
    const __m512 by = _mm512_set1_ps(static_cast<float>(power));
    const auto halves_at = [&](std::int64_t at) {
        const __m512 values = _mm512_maskz_scalef_ps(all, sixteen(x, at, k), by);
        return _mm512_maskz_cvtps_ph(all, values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    };
    const auto both = [&](std::int64_t at) {
        return _mm512_maskz_inserti64x4(0xFF, _mm512_castsi256_si512(halves_at(at)), halves_at(at + 16), 1);
    };
    const __m512i evens = _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 26,
                                           24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odds = _mm512_maskz_add_epi16(all_halves, evens, _mm512_set1_epi16(1));
    MetByLine* to = rows.values.data() + row * rows.lines;
    for (std::int64_t at = 0; at < rows.lines * line; at += line, ++to) {
        const __m512i first = both(at);
        const __m512i second = both(at + line / 2);
        to->even = _mm512_castsi512_ph(_mm512_maskz_permutex2var_epi16(all_halves, first, evens, second));
        to->odd = _mm512_castsi512_ph(_mm512_maskz_permutex2var_epi16(all_halves, first, odds, second));
    }
}

/// Those bytes of a line that a row still has.
inline __mmask64 first_of_line(std::int64_t left) {
    if (left >= line) return ~__mmask64{0};
    return left > 0 ? (__mmask64{1} << static_cast<unsigned>(left)) - 1 : 0;
}

/// (The compiler's own shuffle: GCC 12 warns about its header's.)
template <int half>
inline __attribute__((always_inline)) __m512 wide(__m512h sums) {
    const auto words = reinterpret_cast<__v8di>(sums);
    const auto some = __builtin_shufflevector(words, words, 4 * half, 4 * half + 1, 4 * half + 2, 4 * half + 3);
    return _mm512_maskz_cvtph_ps(0xFFFF, reinterpret_cast<__m256i>(some));
}

template <int count, int columns>
inline __attribute__((always_inline)) void dots(const ProductCall& call, const HalfRows& x,
                                                const std::int64_t (&rows)[count], std::int64_t x_row) {
    // A shift to the right copies the sign into the highest place of the exponent.
    const __m512i of_number = _mm512_set1_epi16(static_cast<std::int16_t>(0xBF80));
    const std::uint8_t* from[count];
    __m512 totals[count][columns];
    for (int i = 0; i < count; ++i) {
        from[i] = static_cast<const std::uint8_t*>(call.weights.values) + rows[i] * call.k;
        for (__m512& total : totals[i]) total = _mm512_setzero_ps();
    }
    for (std::int64_t begin = 0; begin < call.k; begin += block) {
        __m512h sums[count][columns];
        for (auto& row : sums) {
            for (__m512h& sum : row) sum = _mm512_setzero_ph();
        }
#pragma GCC unroll 2
        for (std::int64_t at = begin; at < begin + block; at += line) {
            const __mmask64 there = first_of_line(call.k - at);
            MetByLine met[columns];
            for (int column = 0; column < columns; ++column) met[column] = x.row(x_row + column)[at / line];
            for (int i = 0; i < count; ++i) {
                __builtin_prefetch(from[i] + at + bytes_ahead);
                const __m512i bytes = _mm512_maskz_loadu_epi8(there, from[i] + at);
                const __m512i even = _mm512_and_si512(_mm512_srai_epi16(_mm512_slli_epi16(bytes, 8), 1), of_number);
                const __m512i odd = _mm512_and_si512(_mm512_srai_epi16(bytes, 1), of_number);
                for (int column = 0; column < columns; ++column) {
                    __m512h& sum = sums[i][column];
                    sum = _mm512_fmadd_ph(_mm512_castsi512_ph(even), met[column].even, sum);
                    sum = _mm512_fmadd_ph(_mm512_castsi512_ph(odd), met[column].odd, sum);
                }
            }
        }
        for (int i = 0; i < count; ++i) {
            const __m512 scale = _mm512_set1_ps(call.weights.fp8_scale(rows[i], begin, call.k));
            for (int column = 0; column < columns; ++column) {
                totals[i][column] = _mm512_fmadd_ps(wide<0>(sums[i][column]), scale, totals[i][column]);
                totals[i][column] = _mm512_fmadd_ps(wide<1>(sums[i][column]), scale, totals[i][column]);
            }
        }
    }
    for (int column = 0; column < columns; ++column) {
        const __m512 back = _mm512_set1_ps(x.scales[static_cast<std::size_t>(x_row + column)]);
        for (auto& row : totals) row[column] = _mm512_mul_ps(row[column], back);
    }
    save_lanes(call, rows, x_row, totals);
}

}  // namespace

void avx512_fp16_fp8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    // By each thread for itself: a part of W has 128 rows and more, so it is a hundredth of the work.
    static thread_local HalfRows x;
    x.lines = (call.k + block - 1) / block * (block / line);
    x.values.resize(static_cast<std::size_t>(call.m * x.lines));
    x.scales.resize(static_cast<std::size_t>(call.m));
    for (std::int64_t row = 0; row < call.m; ++row)
        narrow(static_cast<const float*>(call.x) + row * call.k, call.k, x, row);
    if (call.m == 1) {
        side_by_side<8>(first, last, [&](const std::int64_t(&rows)[8]) { dots<8, 1>(call, x, rows, 0); });
        return;
    }
    side_by_side<4>(first, last, [&](const std::int64_t(&rows)[4]) {
        std::int64_t x_row = 0;
        for (; x_row + 4 <= call.m; x_row += 4) dots<4, 4>(call, x, rows, x_row);
        for (; x_row + 2 <= call.m; x_row += 2) dots<4, 2>(call, x, rows, x_row);
        for (; x_row < call.m; ++x_row) dots<4, 1>(call, x, rows, x_row);
    });
}

}  // namespace roofline::bench

#pragma GCC pop_options
#endif
