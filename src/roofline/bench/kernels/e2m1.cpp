// Products with weights in mxfp4 or nvfp4 for every instruction set but AVX-512. A weight is looked up in a table of
// twice its value, a byte; x is int8 with a scale for each 32 values, as llama.cpp does it. In nvfp4 the first 16 of
// them, in low halves of bytes, have another scale than the second 16.
//
// What a core spends on 32 weights, 17 bytes: AArch64 with dot products 8.25 vector instructions for one row of x (4 to
// take the bytes apart and look them up, 2 products, and 9 for the sums and scales of four groups together), and 3.5
// for each further one. A Neoverse N1 starts two in a cycle, in which memory gives it 8 bytes: asking ahead gains
// nothing there.
#include "roofline/bench/kernels/e2m1.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

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
            low += twice_e2m1[w[i] & 15] * x[i];
            high += twice_e2m1[w[i] >> 4] * x[i + 16];
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
    const int8x16_t values = vld1q_s8(twice_e2m1);
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
    const int8x16_t values = vld1q_s8(twice_e2m1);
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
#pragma GCC target("avx2,fma,f16c")

namespace {

constexpr std::int64_t scales_at_once = 8;  // groups whose scales are one register
constexpr std::int64_t bytes_ahead = 1024;
constexpr char shifted_by = 12;  // so that no weight in the table is below zero

/// Four bytes of one group beside four of the other: scales of a pair are then the same in every 64 bits, which a load
/// alone can do.
inline __attribute__((always_inline)) __m256i by_groups(const __m256i& pair_of_groups) {
    return _mm256_permutevar8x32_epi32(pair_of_groups, _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0));
}
/// 16 bytes of a group, and of its neighbour where there is one.
inline __attribute__((always_inline)) __m256i load_groups(const std::uint8_t* from, bool both) {
    if (both) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm256_set_m128i(_mm_setzero_si128(), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

/// Eight groups of x as they meet W: in pairs what meets low halves of bytes, and high ones. Of each also half of its
/// scale, because the table has twice the weights, and what its products are too large by, because 12 is added to what
/// a weight is looked up as: the instruction multiplies unsigned with signed bytes. In nvfp4 that is of the first 16
/// and of the second 16. What is beyond the last group is zeros.
template <bool nv>
struct MetByEight {
    static constexpr int kinds = nv ? 2 : 1;  // of scales

    __m256i low[4];
    __m256i high[4];
    __m256 scales;
    __m256 off[kinds];
};

template <bool nv>
void lay_by_eights(const std::int8_t* x, const float* scales, std::int64_t groups, std::int8_t* to) {
    const __m256i shift = _mm256_set1_epi8(shifted_by);
    const __m256i ones = _mm256_set1_epi16(1);
    for (std::int64_t begin = 0; begin < groups; begin += scales_at_once, to += sizeof(MetByEight<nv>)) {
        const auto here = [&](std::int64_t at) {
            const auto* from = reinterpret_cast<const __m256i*>(x + (begin + at) * group);
            return begin + at < groups ? _mm256_loadu_si256(from) : _mm256_setzero_si256();
        };
        MetByEight<nv> met;
        __m256i sums[met.kinds][4];
        for (int i = 0; i < 4; ++i) {
            const __m256i one = here(2 * i);
            const __m256i two = here(2 * i + 1);
            const __m256i low = _mm256_permute2x128_si256(one, two, 0x20);
            const __m256i high = _mm256_permute2x128_si256(one, two, 0x31);
            met.low[i] = by_groups(low);
            met.high[i] = by_groups(high);
            sums[0][i] = _mm256_madd_epi16(_mm256_maddubs_epi16(shift, low), ones);
            const __m256i of_high = _mm256_madd_epi16(_mm256_maddubs_epi16(shift, high), ones);
            if constexpr (nv)
                sums[1][i] = of_high;
            else
                sums[0][i] = _mm256_add_epi32(sums[0][i], of_high);
        }
        for (int kind = 0; kind < met.kinds; ++kind) {
            // Even groups in the lower half, odd ones in the upper.
            const __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[kind][0], sums[kind][1]),
                                                  _mm256_hadd_epi32(sums[kind][2], sums[kind][3]));
            met.off[kind] = _mm256_cvtepi32_ps(by_groups(all));
        }
        alignas(32) float some[scales_at_once] = {};
        for (std::int64_t i = 0; i < std::min(scales_at_once, groups - begin); ++i) some[i] = 0.5F * scales[begin + i];
        met.scales = _mm256_load_ps(some);
        __builtin_memcpy(to, &met, sizeof met);
    }
}

/// Scales of `some` groups of a row, and nothing beyond; in nvfp4 of their first and of their second halves.
template <bool nv>
inline __attribute__((always_inline)) void some_scales(const Weights& weights, std::int64_t place, std::int64_t some,
                                                       __m256 (&scales)[nv ? 2 : 1]) {
    alignas(16) std::uint8_t bytes[16] = {};
    const std::uint8_t* from = nv ? weights.small_scales + 2 * place : weights.group_powers + place;
    if (some < scales_at_once) {
        __builtin_memcpy(bytes, from, static_cast<std::size_t>(nv ? 2 * some : some));
        from = bytes;
    }
    if constexpr (nv) {
        const __m128i halves = _mm_set_epi8(15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0);
        const __m128i all = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)), halves);
        const __m256i words = _mm256_slli_epi16(_mm256_cvtepu8_epi16(all), 7);
        const __m256 unit = _mm256_set1_ps(e4m3_of_half * weights.scale_of_all);
        scales[0] = _mm256_mul_ps(unit, _mm256_cvtph_ps(_mm256_castsi256_si128(words)));
        scales[1] = _mm256_mul_ps(unit, _mm256_cvtph_ps(_mm256_extracti128_si256(words, 1)));
    } else {
        const __m128i powers = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
        scales[0] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(powers), 23));
    }
}

/// Two numbers by turns, as a load alone: told in other words a compiler moves them from register to register.
inline __attribute__((always_inline)) __m256 by_turns(const float* two) {
    __m256 all;
    asm("vbroadcastsd %1, %0" : "=x"(all) : "m"(*reinterpret_cast<const float(*)[2]>(two)));
    return all;
}

/// Two groups of rows of W with those of rows of x, pair `at` of eight. No two pairs of products are beyond 16 bits: 4
/// x 24 x 127.
template <bool nv, int count, int columns>
inline __attribute__((always_inline)) void add_pair(
    const std::uint8_t* const (&from)[count], std::int64_t byte, bool both, const MetByEight<nv>* const (&met)[columns],
    std::int64_t at, const float (&factors)[count][columns][MetByEight<nv>::kinds][scales_at_once],
    __m256 (&totals)[count][columns]) {
    const __m256i values =
        _mm256_add_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(twice_e2m1))),
                        _mm256_set1_epi8(shifted_by));
    const __m256i low_half = _mm256_set1_epi8(15);
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        const __m256i bytes = by_groups(load_groups(from[i] + byte, both));
        const __m256i low = _mm256_shuffle_epi8(values, _mm256_and_si256(bytes, low_half));
        const __m256i high = _mm256_shuffle_epi8(values, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low_half));
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) {
            const auto add = [&](const __m256i& pairs, int kind) __attribute__((always_inline)) {
                const __m256 sums = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, ones));
                totals[i][j] = _mm256_fmadd_ps(sums, by_turns(factors[i][j][kind] + 2 * at), totals[i][j]);
            };
            const __m256i of_low = _mm256_maddubs_epi16(low, met[j]->low[at]);
            const __m256i of_high = _mm256_maddubs_epi16(high, met[j]->high[at]);
            if constexpr (nv) {
                add(of_low, 0);
                add(of_high, 1);
            } else {
                add(_mm256_add_epi16(of_low, of_high), 0);
            }
        }
    }
}

/// Rows of W, each in a stretch of its own, with rows of x.
template <bool nv, int count, int columns>
inline __attribute__((always_inline)) void avx2_dots(const ProductCall& call, const std::int64_t (&rows)[count],
                                                     const LaidRows<std::int8_t>& x, std::int64_t x_row) {
    constexpr int kinds = MetByEight<nv>::kinds;
    const std::int64_t groups = call.k / group;
    const std::uint8_t* from[count];
    const MetByEight<nv>* met[columns];
    __m256 totals[count][columns];
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) met[j] = reinterpret_cast<const MetByEight<nv>*>(x.row(x_row + j));
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        from[i] = static_cast<const std::uint8_t*>(call.weights.values) + rows[i] * (call.k / 2);
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) totals[i][j] = _mm256_setzero_ps();
    }
    for (std::int64_t begin = 0; begin < groups; begin += scales_at_once) {
        const std::int64_t some = std::min(scales_at_once, groups - begin);
        const std::int64_t byte = begin * group / 2;
        alignas(32) float factors[count][columns][kinds][scales_at_once];
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
            __builtin_prefetch(from[i] + byte + bytes_ahead);
            __builtin_prefetch(from[i] + byte + bytes_ahead + 64);
            __m256 scales[kinds];
            some_scales<nv>(call.weights, rows[i] * groups + begin, some, scales);
#pragma GCC unroll 4
            for (int j = 0; j < columns; ++j) {
                for (int kind = 0; kind < kinds; ++kind) {
                    const __m256 factor = _mm256_mul_ps(scales[kind], met[j]->scales);
                    _mm256_store_ps(factors[i][j][kind], factor);
                    totals[i][j] = _mm256_fnmadd_ps(factor, met[j]->off[kind], totals[i][j]);
                }
            }
        }
        std::int64_t at = 0;
        for (; 2 * at + 2 <= some; ++at) add_pair<nv>(from, byte + at * group, true, met, at, factors, totals);
        if (2 * at < some) add_pair<nv>(from, byte + at * group, false, met, at, factors, totals);
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) ++met[j];
    }
    save_lanes(call, rows, x_row, totals);
}

template <bool nv>
inline __attribute__((always_inline)) void avx2_product(const ProductCall& call, std::int64_t first,
                                                        std::int64_t last) {
    static thread_local LaidRows<std::int8_t> room;
    const std::int64_t groups = call.k / group;
    const std::int64_t wide =
        (groups + scales_at_once - 1) / scales_at_once * static_cast<std::int64_t>(sizeof(MetByEight<nv>));
    const LaidRows<std::int8_t>& x = room.laid(call.m, wide, [&](std::int64_t row, std::int8_t* to) {
        lay_by_eights<nv>(static_cast<const std::int8_t*>(call.x) + row * call.k, call.x_scales + row * groups, groups,
                          to);
    });
    if (call.m == 1) {
        side_by_side<4>(first, last, [&](const std::int64_t(&rows)[4]) { avx2_dots<nv, 4, 1>(call, rows, x, 0); });
        return;
    }
    by_panels<2, 4>(call, first, last,
                    [&]<int columns>(std::integral_constant<int, columns>, const std::int64_t(&rows)[2],
                                     std::int64_t x_row) { avx2_dots<nv, 2, columns>(call, rows, x, x_row); });
}

}  // namespace

void avx2_e2m1(const ProductCall& call, std::int64_t first, std::int64_t last) {
    call.weights.type == WeightFormat::nvfp4 ? avx2_product<true>(call, first, last)
                                             : avx2_product<false>(call, first, last);
}

#pragma GCC pop_options

#endif

}  // namespace roofline::bench
