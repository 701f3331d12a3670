// Products with weights in mxfp4, as they lie in a checkpoint, for every instruction set. A weight is looked up in a
// table of twice its value, a byte; x is int8 with a scale for each 32 values, as llama.cpp does it.
//
// What a core spends on 32 weights, 17 bytes: AArch64 with dot products 8.25 vector instructions for one row of x (4 to
// take the bytes apart and look them up, 2 products, and 9 for the sums and scales of four groups together), and 3.5
// for each further one. A Neoverse N1 starts two in a cycle, in which memory gives it 8 bytes: asking ahead gains
// nothing there.
#include "roofline/bench/kernels/mxfp4.hpp"

#include <algorithm>
#include <bit>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

namespace roofline::bench {

namespace {

constexpr std::int64_t group = mxfp4_group;
/// Twice the values of e2m1.
constexpr std::int8_t table[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Half of a scale: what the table's values are multiplied by. (Of the two least powers it is one that is a little too
/// large or zero: no weight has them.)
float half_of(std::uint8_t power) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(power) << 23U) * 0.5F;
}

/// A row of W and rows of x that it meets, from their first group on.
struct Rows {
    const std::uint8_t* w;
    const std::uint8_t* powers;
    const std::int8_t* x;
    const float* x_scales;
    std::int64_t k;
    std::int64_t groups;

    Rows(const ProductCall& call, std::int64_t row, std::int64_t x_row)
        : w(static_cast<const std::uint8_t*>(call.weights.values) + row * call.k / 2),
          powers(call.weights.group_powers + row * (call.k / group)),
          x(static_cast<const std::int8_t*>(call.x) + x_row * call.k),
          x_scales(call.x_scales + x_row * (call.k / group)),
          k(call.k),
          groups(call.k / group) {}
};

float plain_sum(const Rows& rows, std::int64_t x_row) {
    float total = 0.0F;
    for (std::int64_t at = 0; at < rows.groups; ++at) {
        const std::uint8_t* w = rows.w + at * 16;
        const std::int8_t* x = rows.x + x_row * rows.k + at * group;
        std::int32_t sum = 0;
        for (int i = 0; i < 16; ++i) sum += table[w[i] & 15] * x[i] + table[w[i] >> 4] * x[i + 16];
        total += half_of(rows.powers[at]) * rows.x_scales[x_row * rows.groups + at] * static_cast<float>(sum);
    }
    return total;
}

/// Goes over rows of W, and for each over the rows of x, four at a time and then one by one. (Two rows of W side by
/// side took a Neoverse N1 a quarter longer: it reads fastest at one place.)
template <class Dots>
void all_rows(const ProductCall& call, std::int64_t first, std::int64_t last, const Dots& dots) {
    for (std::int64_t row = first; row < last; ++row) {
        std::int64_t x_row = 0;
        const auto meet = [&]<int columns>() {
            float sums[columns];
            dots(Rows(call, row, x_row), sums);
            for (const float sum : sums) call.y[x_row++ * call.n + row] = sum;
        };
        while (x_row + 4 <= call.m) meet.template operator()<4>();
        while (x_row < call.m) meet.template operator()<1>();
    }
}

}  // namespace

void portable_mxfp4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    all_rows(call, first, last, []<int columns>(const Rows& rows, float(&sums)[columns]) {
        for (int column = 0; column < columns; ++column) sums[column] = plain_sum(rows, column);
    });
}

#if defined(__aarch64__)

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod")

namespace {

/// Twice the weights of a group, those in the low halves and those in the high ones.
struct Looked {
    int8x16_t low;
    int8x16_t high;
};
inline __attribute__((always_inline)) Looked look_up(const std::uint8_t* from, int8x16_t values) {
    const uint8x16_t both = vld1q_u8(from);
    return {vqtbl1q_s8(values, vandq_u8(both, vdupq_n_u8(15))), vqtbl1q_s8(values, vshrq_n_u8(both, 4))};
}
inline __attribute__((always_inline)) int32x4_t dots_of(const Looked& w, const std::int8_t* x) {
    return vdotq_s32(vdotq_s32(vdupq_n_s32(0), w.low, vld1q_s8(x)), w.high, vld1q_s8(x + 16));
}

/// Four groups at a time: their sums and scales are lanes of one vector.
template <int columns>
void neon_dots(const Rows& rows, float (&sums)[columns]) {
    constexpr int at_once = 4;
    const int8x16_t values = vld1q_s8(table);
    float32x4_t totals[columns] = {};
    std::int64_t first = 0;
    for (; first + at_once <= rows.groups; first += at_once) {
        const std::uint8_t* w = rows.w + first * 16;
        Looked looked[at_once];
#pragma GCC unroll 4
        for (int i = 0; i < at_once; ++i) looked[i] = look_up(w + i * 16, values);
        std::uint32_t four;
        __builtin_memcpy(&four, rows.powers + first, sizeof four);
        const uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
        const float32x4_t scales = vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vget_low_u16(wide)), 23));
#pragma GCC unroll 4
        for (int column = 0; column < columns; ++column) {
            const std::int8_t* x = rows.x + column * rows.k + first * group;
            int32x4_t parts[at_once];
#pragma GCC unroll 4
            for (int i = 0; i < at_once; ++i) parts[i] = dots_of(looked[i], x + i * group);
            const int32x4_t four_sums = vpaddq_s32(vpaddq_s32(parts[0], parts[1]), vpaddq_s32(parts[2], parts[3]));
            const float32x4_t x_scales = vld1q_f32(rows.x_scales + column * rows.groups + first);
            totals[column] = vfmaq_f32(totals[column], vcvtq_f32_s32(four_sums), vmulq_f32(scales, x_scales));
        }
    }
    for (; first < rows.groups; ++first) {
        const Looked w = look_up(rows.w + first * 16, values);
        const float scale = 2.0F * half_of(rows.powers[first]);
        for (int column = 0; column < columns; ++column) {
            const int32x4_t part = dots_of(w, rows.x + column * rows.k + first * group);
            totals[column] =
                vfmaq_n_f32(totals[column], vcvtq_f32_s32(part), scale * rows.x_scales[column * rows.groups + first]);
        }
    }
    for (int column = 0; column < columns; ++column) sums[column] = 0.5F * vaddvq_f32(totals[column]);
}

}  // namespace

void neon_mxfp4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    all_rows(call, first, last, []<int columns>(const Rows& rows, float(&sums)[columns]) { neon_dots(rows, sums); });
}

#pragma GCC pop_options

#elif defined(__x86_64__)

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace {

/// The instruction multiplies unsigned with signed bytes and adds pairs in 16 bits: |w| with x signed as w, 2 x 12 x
/// 127 at most.
template <int columns>
void avx2_dots(const Rows& rows, float (&sums)[columns]) {
    const __m256i values = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
    const __m128i low_half = _mm_set1_epi8(15);
    const __m256i ones = _mm256_set1_epi16(1);
    __m256 totals[columns];
    for (__m256& total : totals) total = _mm256_setzero_ps();
    for (std::int64_t at = 0; at < rows.groups; ++at) {
        const __m128i both = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows.w + at * 16));
        const __m128i low = _mm_and_si128(both, low_half);
        const __m128i high = _mm_and_si128(_mm_srli_epi16(both, 4), low_half);
        const __m256i w = _mm256_shuffle_epi8(values, _mm256_set_m128i(high, low));
        const __m256i sizes = _mm256_abs_epi8(w);
        const float scale = half_of(rows.powers[at]);
#pragma GCC unroll 4
        for (int column = 0; column < columns; ++column) {
            const auto* from = reinterpret_cast<const __m256i*>(rows.x + column * rows.k + at * group);
            const __m256i x = _mm256_sign_epi8(_mm256_loadu_si256(from), w);
            const __m256i sum = _mm256_madd_epi16(_mm256_maddubs_epi16(sizes, x), ones);
            const __m256 factor = _mm256_set1_ps(scale * rows.x_scales[column * rows.groups + at]);
            totals[column] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), factor, totals[column]);
        }
    }
    for (int column = 0; column < columns; ++column) {
        alignas(32) float lanes[8];
        _mm256_store_ps(lanes, totals[column]);
        sums[column] = 0.0F;
        for (const float lane : lanes) sums[column] += lane;
    }
}

}  // namespace

void avx2_mxfp4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    all_rows(call, first, last, []<int columns>(const Rows& rows, float(&sums)[columns]) { avx2_dots(rows, sums); });
}

#pragma GCC pop_options

#endif

}  // namespace roofline::bench
