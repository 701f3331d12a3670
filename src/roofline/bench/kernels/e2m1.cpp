// Products with weights in mxfp4 or nvfp4 for every instruction set. A weight is looked up in a table of twice its
// value, a byte; x is int8 with a scale for each 32 values, as llama.cpp does it. In nvfp4 the first 16 of them, in low
// halves of bytes, have another scale than the second 16.
//
// What a core spends on 32 weights, 17 bytes: AArch64 with dot products 8.25 vector instructions for one row of x (4 to
// take the bytes apart and look them up, 2 products, and 9 for the sums and scales of four groups together), and 3.5
// for each further one. A Neoverse N1 starts two in a cycle, in which memory gives it 8 bytes: asking ahead gains
// nothing there. AVX-512 spends 10 on four groups of mxfp4, 68 bytes, with one row of x (6 to take the bytes apart and
// look them up, 2 products, 2 for sums and scales) and 4 for each further one; 12 and 6 in nvfp4. Rows of x are laid as
// they meet W once for a call, with what is to be taken off because weights are looked up as no less than nothing.
#include "roofline/bench/kernels/e2m1.hpp"

#include <algorithm>
#include <bit>

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

constexpr std::int64_t group = mxfp4_group;
/// Twice the values of e2m1.
constexpr std::int8_t table[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Half of a scale: what the table's values are multiplied by. (Of the two least powers it is one that is a little too
/// large or zero: no weight has them.)
float half_of(std::uint8_t power) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(power) << 23U) * 0.5F;
}

/// What the low and the high halves of a run of 16 bytes are multiplied by.
struct RunScales {
    float low;
    float high;
};

/// Of two kinds of scales a format has one.
const std::uint8_t* scales_of_row(const std::uint8_t* all, std::int64_t place) {
    return all != nullptr ? all + place : nullptr;
}

/// A row of W and rows of x that it meets, from their first group on.
struct Rows {
    const std::uint8_t* w;
    const std::uint8_t* powers;
    const std::uint8_t* small_scales;
    float half_of_all;
    const std::int8_t* x;
    const float* x_scales;
    std::int64_t k;
    std::int64_t groups;

    Rows(const ProductCall& call, std::int64_t row, std::int64_t x_row)
        : w(static_cast<const std::uint8_t*>(call.weights.values) + row * call.k / 2),
          powers(scales_of_row(call.weights.group_powers, row * (call.k / group))),
          small_scales(scales_of_row(call.weights.small_scales, row * (call.k / nvfp4_group))),
          half_of_all(0.5F * call.weights.scale_of_all),
          x(static_cast<const std::int8_t*>(call.x) + x_row * call.k),
          x_scales(call.x_scales + x_row * (call.k / group)),
          k(call.k),
          groups(call.k / group) {}

    template <bool nv>
    RunScales scales(std::int64_t at) const {
        if constexpr (nv)
            return {half_of_all * e4m3_values[small_scales[2 * at]],
                    half_of_all * e4m3_values[small_scales[2 * at + 1]]};
        const float scale = half_of(powers[at]);
        return {scale, scale};
    }
};

template <bool nv>
float plain_sum(const Rows& rows, std::int64_t x_row) {
    float total = 0.0F;
    for (std::int64_t at = 0; at < rows.groups; ++at) {
        const std::uint8_t* w = rows.w + at * 16;
        const std::int8_t* x = rows.x + x_row * rows.k + at * group;
        std::int32_t low = 0;
        std::int32_t high = 0;
        for (int i = 0; i < 16; ++i) {
            low += table[w[i] & 15] * x[i];
            high += table[w[i] >> 4] * x[i + 16];
        }
        const RunScales scales = rows.scales<nv>(at);
        total += rows.x_scales[x_row * rows.groups + at] *
                 (scales.low * static_cast<float>(low) + scales.high * static_cast<float>(high));
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

void portable_e2m1(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const bool nv = call.weights.type == WeightFormat::nvfp4;
    all_rows(call, first, last, [&]<int columns>(const Rows& rows, float(&sums)[columns]) {
        for (int column = 0; column < columns; ++column)
            sums[column] = nv ? plain_sum<true>(rows, column) : plain_sum<false>(rows, column);
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

/// The same with a scale for each half of a run.
template <int columns>
void neon_dots_of_halves(const Rows& rows, float (&sums)[columns]) {
    const int8x16_t values = vld1q_s8(table);
    float32x4_t totals[columns] = {};
    for (std::int64_t at = 0; at < rows.groups; ++at) {
        const Looked w = look_up(rows.w + at * 16, values);
        const RunScales scales = rows.scales<true>(at);
#pragma GCC unroll 4
        for (int column = 0; column < columns; ++column) {
            const std::int8_t* x = rows.x + column * rows.k + at * group;
            const float32x4_t low = vcvtq_f32_s32(vdotq_s32(vdupq_n_s32(0), w.low, vld1q_s8(x)));
            const float32x4_t high = vcvtq_f32_s32(vdotq_s32(vdupq_n_s32(0), w.high, vld1q_s8(x + 16)));
            const float32x4_t both = vfmaq_n_f32(vmulq_n_f32(low, scales.low), high, scales.high);
            totals[column] = vfmaq_n_f32(totals[column], both, rows.x_scales[column * rows.groups + at]);
        }
    }
    for (int column = 0; column < columns; ++column) sums[column] = vaddvq_f32(totals[column]);
}

}  // namespace

void neon_e2m1(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (call.weights.type == WeightFormat::nvfp4)
        return all_rows(call, first, last,
                        []<int columns>(const Rows& rows, float(&sums)[columns]) { neon_dots_of_halves(rows, sums); });
    all_rows(call, first, last, []<int columns>(const Rows& rows, float(&sums)[columns]) { neon_dots(rows, sums); });
}

#pragma GCC pop_options

#elif defined(__x86_64__)

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace {

/// The instruction multiplies unsigned with signed bytes and adds pairs in 16 bits: |w| with x signed as w, 2 x 12 x
/// 127 at most.
template <bool nv, int columns>
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
        const RunScales scales = rows.scales<nv>(at);
        const __m256 factors = _mm256_set_m128(_mm_set1_ps(scales.high), _mm_set1_ps(scales.low));
#pragma GCC unroll 4
        for (int column = 0; column < columns; ++column) {
            const auto* from = reinterpret_cast<const __m256i*>(rows.x + column * rows.k + at * group);
            const __m256i x = _mm256_sign_epi8(_mm256_loadu_si256(from), w);
            const __m256i sum = _mm256_madd_epi16(_mm256_maddubs_epi16(sizes, x), ones);
            const __m256 factor = _mm256_mul_ps(factors, _mm256_set1_ps(rows.x_scales[column * rows.groups + at]));
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

void avx2_e2m1(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const bool nv = call.weights.type == WeightFormat::nvfp4;
    all_rows(call, first, last, [&]<int columns>(const Rows& rows, float(&sums)[columns]) {
        nv ? avx2_dots<true>(rows, sums) : avx2_dots<false>(rows, sums);
    });
}

#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma,f16c,prefer-vector-width=512")

namespace {

constexpr std::int64_t run = 4 * group;      // weights whose bytes are one register
constexpr std::int64_t scales_at_once = 16;  // groups whose scales are one register
constexpr std::int64_t bytes_ahead = 1024;
constexpr char shifted_by = 12;  // so that no weight in the table is below zero

/// A run of x as it meets one of W, and what the products are too large by, because 12 is added to what a weight is
/// looked up as: the instruction multiplies unsigned with signed bytes.
template <bool nv>
struct MetByRun {
    __m512i low;   // what meets low halves of bytes
    __m512i high;  // and high ones
    __m512i off[nv ? 2 : 1];
};

/// Four bytes of each group side by side, as a lane of 128 bits, instead of 16 bytes of a group: scales of four groups
/// are then the same in every such lane, which a load alone can do.
inline __attribute__((always_inline)) __m512i by_groups(__m512i run_of_groups) {
    const __m512i places = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    return _mm512_maskz_permutexvar_epi32(0xFFFF, places, run_of_groups);
}

template <bool nv>
void lay_by_runs(const std::int8_t* x, std::int64_t k, std::int8_t* to) {
    const __m512i zero = _mm512_setzero_si512();
    const __m512i shift = _mm512_set1_epi8(shifted_by);
    for (std::int64_t at = 0; at < k; at += run, to += sizeof(MetByRun<nv>)) {
        const auto here = [&](std::int64_t first) {
            const std::int64_t left = std::clamp<std::int64_t>(k - at - first, 0, 64);
            const __mmask64 there = left == 0 ? 0 : ~__mmask64{0} >> static_cast<unsigned>(64 - left);
            return _mm512_maskz_loadu_epi8(there, x + at + first);
        };
        const __m512i one = here(0);
        const __m512i two = here(64);
        MetByRun<nv> met;
        met.low = by_groups(_mm512_maskz_shuffle_i64x2(0xFF, one, two, 0x88));
        met.high = by_groups(_mm512_maskz_shuffle_i64x2(0xFF, one, two, 0xDD));
        const __m512i low_off = _mm512_sub_epi32(zero, _mm512_dpbusd_epi32(zero, shift, met.low));
        const __m512i high_off = _mm512_sub_epi32(zero, _mm512_dpbusd_epi32(zero, shift, met.high));
        if constexpr (nv) {
            met.off[0] = low_off;
            met.off[1] = high_off;
        } else {
            met.off[0] = _mm512_add_epi32(low_off, high_off);
        }
        __builtin_memcpy(to, &met, sizeof met);
    }
}

/// Scales of 16 groups of a row, of the low halves of their bytes and of the high ones, in units of the table.
template <bool nv>
inline __attribute__((always_inline)) void some_scales(const ProductCall& call, std::int64_t place, __mmask16 here,
                                                       __m512 (&scales)[nv ? 2 : 1]) {
    if constexpr (nv) {
        const auto there = static_cast<__mmask32>(~std::uint32_t{0} >> (32 - 2 * std::popcount(here)));
        const __m256i bytes = _mm256_maskz_loadu_epi8(there, call.weights.small_scales + 2 * place);
        const auto words = reinterpret_cast<__v8di>(
            _mm512_maskz_slli_epi16(~__mmask32{0}, _mm512_maskz_cvtepu8_epi16(~__mmask32{0}, bytes), 7));
        const __m512 one =
            _mm512_maskz_cvtph_ps(0xFFFF, reinterpret_cast<__m256i>(__builtin_shufflevector(words, words, 0, 1, 2, 3)));
        const __m512 two =
            _mm512_maskz_cvtph_ps(0xFFFF, reinterpret_cast<__m256i>(__builtin_shufflevector(words, words, 4, 5, 6, 7)));
        const __m512 all = _mm512_set1_ps(0.5F * e4m3_of_half * call.weights.scale_of_all);
        const __m512i evens = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
        const __m512i odds = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
        scales[0] = _mm512_mul_ps(all, _mm512_maskz_permutex2var_ps(0xFFFF, one, evens, two));
        scales[1] = _mm512_mul_ps(all, _mm512_maskz_permutex2var_ps(0xFFFF, one, odds, two));
    } else {
        const __m128i powers = _mm_maskz_loadu_epi8(here, call.weights.group_powers + place);
        const __m512i wide = _mm512_maskz_cvtepu8_epi32(0xFFFF, powers);
        scales[0] = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xFFFF, wide, 23)), _mm512_set1_ps(0.5F));
    }
}

/// One run of rows of W with one of rows of x, from `at` on among the groups that the factors are of. The last run of a
/// row may have fewer groups than the others.
template <bool nv, bool whole, int count, int columns>
inline __attribute__((always_inline)) void add_run(const std::uint8_t* const (&from)[count], std::int64_t byte,
                                                   __mmask64 there, const std::int8_t* x, std::int64_t pitch,
                                                   const float (&factors)[count][columns][nv ? 2 : 1][scales_at_once],
                                                   std::int64_t at, __m512 (&totals)[count][columns]) {
    const __m512i values =
        _mm512_add_epi8(_mm512_maskz_broadcast_i32x4(0xFFFF, _mm_loadu_si128(reinterpret_cast<const __m128i*>(table))),
                        _mm512_set1_epi8(shifted_by));
    const __m512i low_half = _mm512_set1_epi8(15);
    const MetByRun<nv>* met[columns];
    __m512i met_low[columns];
    __m512i met_high[columns];
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) {
        met[j] = reinterpret_cast<const MetByRun<nv>*>(x + j * pitch);
        met_low[j] = met[j]->low;
        met_high[j] = met[j]->high;
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        __builtin_prefetch(from[i] + byte + bytes_ahead);
        const __m512i both =
            by_groups(whole ? _mm512_loadu_si512(from[i] + byte) : _mm512_maskz_loadu_epi8(there, from[i] + byte));
        const __m512i low = _mm512_shuffle_epi8(values, _mm512_and_si512(both, low_half));
        const __m512i high = _mm512_shuffle_epi8(values, _mm512_and_si512(_mm512_srli_epi16(both, 4), low_half));
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) {
            const auto add = [&](__m512i sums, int kind) __attribute__((always_inline)) {
                const __m512 scales = _mm512_maskz_broadcast_f32x4(0xFFFF, _mm_load_ps(factors[i][j][kind] + at));
                totals[i][j] = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(0xFFFF, sums), scales, totals[i][j]);
            };
            const __m512i of_low = _mm512_dpbusd_epi32(met[j]->off[0], low, met_low[j]);
            if constexpr (nv) {
                add(of_low, 0);
                add(_mm512_dpbusd_epi32(met[j]->off[1], high, met_high[j]), 1);
            } else {
                add(_mm512_dpbusd_epi32(of_low, high, met_high[j]), 0);
            }
        }
    }
}

/// Rows of W, each in a stretch of its own, with rows of x. A lane adds up what four bytes of a group give.
template <bool nv, int count, int columns>
inline __attribute__((always_inline)) void avx512_dots(const ProductCall& call, const std::int64_t (&rows)[count],
                                                       const LaidRows<std::int8_t>& x, std::int64_t x_row) {
    constexpr int kinds = nv ? 2 : 1;  // of scales
    const std::int64_t groups = call.k / group;
    const std::uint8_t* from[count];
    __m512 totals[count][columns];
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        from[i] = static_cast<const std::uint8_t*>(call.weights.values) + rows[i] * (call.k / 2);
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) totals[i][j] = _mm512_setzero_ps();
    }
    const std::int8_t* met = x.row(x_row);
    for (std::int64_t begin = 0; begin < groups; begin += scales_at_once) {
        const std::int64_t some = std::min(scales_at_once, groups - begin);
        const auto here = static_cast<__mmask16>((1U << static_cast<unsigned>(some)) - 1);
        alignas(64) float factors[count][columns][kinds][scales_at_once];
        __m512 of_x[columns];
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j)
            of_x[j] = _mm512_maskz_loadu_ps(here, call.x_scales + (x_row + j) * groups + begin);
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
            __m512 scales[kinds];
            some_scales<nv>(call, rows[i] * groups + begin, here, scales);
#pragma GCC unroll 4
            for (int j = 0; j < columns; ++j) {
                for (int kind = 0; kind < kinds; ++kind)
                    _mm512_store_ps(factors[i][j][kind], _mm512_mul_ps(scales[kind], of_x[j]));
            }
        }
        std::int64_t at = 0;
        for (; at + 4 <= some; at += 4, met += sizeof(MetByRun<nv>))
            add_run<nv, true>(from, (begin + at) * group / 2, 0, met, x.pitch(), factors, at, totals);
        if (at < some) {
            const __mmask64 there = ~__mmask64{0} >> static_cast<unsigned>(64 - (some - at) * group / 2);
            add_run<nv, false>(from, (begin + at) * group / 2, there, met, x.pitch(), factors, at, totals);
        }
    }
    save_lanes(call, rows, x_row, totals);
}

template <bool nv>
inline __attribute__((always_inline)) void avx512_product(const ProductCall& call, std::int64_t first,
                                                          std::int64_t last) {
    static thread_local LaidRows<std::int8_t> room;
    const auto* from = static_cast<const std::int8_t*>(call.x);
    const std::int64_t wide = (call.k + run - 1) / run * static_cast<std::int64_t>(sizeof(MetByRun<nv>));
    const LaidRows<std::int8_t>& x = room.laid(
        call.m, wide, [&](std::int64_t row, std::int8_t* to) { lay_by_runs<nv>(from + row * call.k, call.k, to); });
    if (call.m == 1) {
        side_by_side<8>(first, last, [&](const std::int64_t(&rows)[8]) { avx512_dots<nv, 8, 1>(call, rows, x, 0); });
        return;
    }
    by_panels<4, 4>(call, first, last,
                    [&]<int columns>(std::integral_constant<int, columns>, const std::int64_t(&rows)[4],
                                     std::int64_t x_row) { avx512_dots<nv, 4, columns>(call, rows, x, x_row); });
}

}  // namespace

void avx512_e2m1(const ProductCall& call, std::int64_t first, std::int64_t last) {
    call.weights.type == WeightFormat::nvfp4 ? avx512_product<true>(call, first, last)
                                             : avx512_product<false>(call, first, last);
}

#pragma GCC pop_options

#endif

}  // namespace roofline::bench
