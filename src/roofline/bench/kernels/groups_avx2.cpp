// Products with weights in small groups for AVX2, which multiplies unsigned with signed bytes: weights are numbers that
// are not below zero, and what x meets too much is taken off by its sums.
#include "roofline/bench/kernels/groups.hpp"

#if defined(__x86_64__)
#include <algorithm>
#include <immintrin.h>
#include <type_traits>

#include "roofline/bench/kernels/e4m3.hpp"
#include "roofline/bench/kernels/panels.hpp"
#include "roofline/bench/kernels/save_lanes.hpp"
#include "roofline/bench/kernels/side_by_side.hpp"

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace roofline::bench {
namespace {

constexpr std::int64_t scales_at_once = 8;  // groups whose scales are one register
constexpr std::int64_t bytes_ahead = 1024;

/// Four bytes of one group beside four of the other: scales of a pair are then the same in every 64 bits, which a load
/// alone can do.
inline __attribute__((always_inline)) __m256i by_groups(const __m256i& pair_of_groups) {
    return _mm256_permutevar8x32_epi32(pair_of_groups, _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0));
}
inline __attribute__((always_inline)) __m256i load(const std::uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
/// 16 bytes of a group, and of its neighbour where there is one.
inline __attribute__((always_inline)) __m256i load_groups(const std::uint8_t* from, bool both) {
    if (both) return load(from);
    return _mm256_set_m128i(_mm_setzero_si128(), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

/// Numbers of two groups: the first 16 of each, and the others.
struct Numbers {
    __m256i low;
    __m256i high;
};
inline __attribute__((always_inline)) Numbers halves_of(const __m256i& bytes) {
    const __m256i low_half = _mm256_set1_epi8(15);
    return {_mm256_and_si256(bytes, low_half), _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low_half)};
}
inline __attribute__((always_inline)) Numbers looked_up(const Numbers& at, char shift) {
    const __m256i values =
        _mm256_add_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(twice_e2m1))),
                        _mm256_set1_epi8(shift));
    return {_mm256_shuffle_epi8(values, at.low), _mm256_shuffle_epi8(values, at.high)};
}

/// Products of numbers up to 63 and x, in pairs of 16 bits, added up by fours.
inline __attribute__((always_inline)) __m256i dots_of(const __m256i& numbers, const __m256i& x) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(numbers, x), _mm256_set1_epi16(1));
}

/// Scales of eight groups from `place` on of numbers in fp16; of `some`, and zeros.
inline __attribute__((always_inline)) __m256 half_scales(const Weights& weights, std::int64_t place,
                                                         std::int64_t some) {
    const std::uint16_t* from = weights.half_scales + place;
    alignas(16) std::uint16_t few[8] = {};
    if (some < scales_at_once) from = std::copy_n(from, some, few) - some;
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline __attribute__((always_inline)) __m256 by_all(const std::uint8_t* half) {
    std::uint16_t bits;
    __builtin_memcpy(&bits, half, sizeof bits);
    return _mm256_cvtph_ps(_mm_set1_epi16(static_cast<std::int16_t>(bits)));
}
inline __attribute__((always_inline)) __m128i load_eight(const std::uint8_t* from) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}

// A format has
//   kinds          scales of a group: one, or one of the first 16 weights and one of the others
//   shift          that is in its numbers, so that none is below zero
//   unit           of its numbers
//   has_off        whether something is taken off all weights of a group
//   block_bytes    of the values of eight groups
//   pair(from, at, both)                      numbers of pair `at` of the eight groups that begin there, by groups
//   dots(numbers, low of x, high of x)        with x, of both halves (where they have one scale)
//   scales(call, row, begin, some, scales)    of eight groups; off() likewise

struct OfMxfp4 {
    static constexpr int kinds = 1;
    static constexpr char shift = 12;
    static constexpr float unit = 0.5F;
    static constexpr bool has_off = false;
    static constexpr std::int64_t block_bytes = k_block / 2;
    static inline __attribute__((always_inline)) Numbers pair(const std::uint8_t* from, std::int64_t at, bool both) {
        return looked_up(halves_of(by_groups(load_groups(from + at * 32, both))), shift);
    }
    /// No two pairs of products are beyond 16 bits: 4 x 31 x 127.
    static inline __attribute__((always_inline)) __m256i dots(const Numbers& w, const __m256i& low,
                                                              const __m256i& high) {
        const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(w.low, low), _mm256_maddubs_epi16(w.high, high));
        return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    }
    static inline __attribute__((always_inline)) void scales(const ProductCall& call, std::int64_t row,
                                                             std::int64_t begin, std::int64_t some,
                                                             __m256 (&scales)[kinds]) {
        const std::uint8_t* from = call.weights.group_powers + row * (call.k / small_group) + begin;
        alignas(8) std::uint8_t few[8] = {};
        if (some < scales_at_once) from = std::copy_n(from, some, few) - some;
        scales[0] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(load_eight(from)), 23));
    }
};

struct OfNvfp4 : OfMxfp4 {
    static constexpr int kinds = 2;
    static inline __attribute__((always_inline)) void scales(const ProductCall& call, std::int64_t row,
                                                             std::int64_t begin, std::int64_t some,
                                                             __m256 (&scales)[kinds]) {
        const std::uint8_t* from = call.weights.small_scales + 2 * (row * (call.k / small_group) + begin);
        alignas(16) std::uint8_t few[16] = {};
        if (some < scales_at_once) from = std::copy_n(from, 2 * some, few) - 2 * some;
        const __m128i halves = _mm_set_epi8(15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0);
        const __m128i all = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)), halves);
        const __m256i words = _mm256_slli_epi16(_mm256_cvtepu8_epi16(all), 7);
        const __m256 one = _mm256_set1_ps(e4m3_of_half * call.weights.scale_of_all);
        scales[0] = _mm256_mul_ps(one, _mm256_cvtph_ps(_mm256_castsi256_si128(words)));
        scales[1] = _mm256_mul_ps(one, _mm256_cvtph_ps(_mm256_extracti128_si256(words, 1)));
    }
};

struct OfQ4_0 : OfMxfp4 {
    static constexpr char shift = 8;
    static constexpr float unit = 1.0F;
    static inline __attribute__((always_inline)) Numbers pair(const std::uint8_t* from, std::int64_t at, bool both) {
        return halves_of(by_groups(load_groups(from + at * 32, both)));
    }
    static inline __attribute__((always_inline)) void scales(const ProductCall& call, std::int64_t row,
                                                             std::int64_t begin, std::int64_t some,
                                                             __m256 (&scales)[kinds]) {
        scales[0] = half_scales(call.weights, row * (call.k / small_group) + begin, some);
    }
};

struct OfQ8_0 : OfQ4_0 {
    static constexpr char shift = 0;
    static constexpr std::int64_t block_bytes = k_block;
    static inline __attribute__((always_inline)) Numbers pair(const std::uint8_t* from, std::int64_t at, bool both) {
        const __m256i one = load(from + at * 64);
        const __m256i two = both ? load(from + at * 64 + 32) : _mm256_setzero_si256();
        return {by_groups(_mm256_permute2x128_si256(one, two, 0x20)),
                by_groups(_mm256_permute2x128_si256(one, two, 0x31))};
    }
    /// Without its sign, which x takes over.
    static inline __attribute__((always_inline)) __m256i dots(const Numbers& w, const __m256i& low,
                                                              const __m256i& high) {
        return _mm256_add_epi32(dots_of(_mm256_abs_epi8(w.low), _mm256_sign_epi8(low, w.low)),
                                dots_of(_mm256_abs_epi8(w.high), _mm256_sign_epi8(high, w.high)));
    }
};

struct OfQ4K : OfQ4_0 {
    static constexpr char shift = 1;  // off() is of sums of x
    static constexpr bool has_off = true;
    static inline __attribute__((always_inline)) __m256 six_bits(const __m256i& low, const __m256i& high) {
        return _mm256_cvtepi32_ps(_mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi32(0x30))));
    }
    static inline __attribute__((always_inline)) void scales_and_off(const ProductCall& call, std::int64_t row,
                                                                     std::int64_t begin, __m256 (&scales)[kinds],
                                                                     __m256& off) {
        const std::uint8_t* header =
            call.weights.headers + (row * (call.k / k_block) + begin / groups_of_block) * q4_k_header;
        const __m256i bytes = _mm256_cvtepu8_epi32(load_eight(header + 4));
        const __m256i places = _mm256_set_epi32(28, 24, 20, 16, 12, 8, 4, 0);
        const __m256i tops =
            _mm256_srlv_epi32(_mm256_set1_epi32(static_cast<std::int32_t>(SixBits{header}.tops())), places);
        scales[0] = _mm256_mul_ps(by_all(header),
                                  six_bits(_mm256_and_si256(bytes, _mm256_set1_epi32(15)), _mm256_slli_epi32(tops, 4)));
        off = _mm256_mul_ps(by_all(header + 2), six_bits(_mm256_srli_epi32(bytes, 4), _mm256_slli_epi32(tops, 2)));
    }
};

struct OfQ5K : OfQ4K {
    static constexpr std::int64_t block_bytes = q5_k_block;
    /// 16 in every byte whose bit is set.
    static inline __attribute__((always_inline)) __m256i fifths(const std::uint8_t* bits) {
        std::int32_t all;
        __builtin_memcpy(&all, bits, sizeof all);
        const __m256i bytes = _mm256_set_epi8(3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0,
                                              0, 0, 0, 0, 0, 0, 0);
        const __m256i own = _mm256_set1_epi64x(static_cast<std::int64_t>(0x8040201008040201ULL));
        const __m256i spread = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(all), bytes), own);
        return _mm256_and_si256(_mm256_cmpeq_epi8(spread, own), _mm256_set1_epi8(16));
    }
    static inline __attribute__((always_inline)) Numbers pair(const std::uint8_t* from, std::int64_t at, bool) {
        const Numbers halves = halves_of(load(from + at * 32));
        const std::uint8_t* bits = from + q5_k_low + at / 2 * 16 + at % 2 * 4;
        return {by_groups(_mm256_or_si256(halves.low, fifths(bits))),
                by_groups(_mm256_or_si256(halves.high, fifths(bits + 8)))};
    }
};

struct OfQ6K : OfQ4_0 {
    static constexpr int kinds = 2;
    static constexpr char shift = 32;
    static constexpr std::int64_t block_bytes = q6_k_block;
    static inline __attribute__((always_inline)) Numbers pair(const std::uint8_t* from, std::int64_t at, bool) {
        const __m256i upper_bits = _mm256_set1_epi8(0x30);
        const Numbers halves = halves_of(by_groups(load(from + at * 32)));
        __m256i upper = by_groups(load(from + q6_k_low + at % 2 * 32));
        if (at >= 2) upper = _mm256_srli_epi16(upper, 4);
        return {_mm256_or_si256(halves.low, _mm256_and_si256(_mm256_slli_epi16(upper, 4), upper_bits)),
                _mm256_or_si256(halves.high, _mm256_and_si256(_mm256_slli_epi16(upper, 2), upper_bits))};
    }
    static inline __attribute__((always_inline)) void scales(const ProductCall& call, std::int64_t row,
                                                             std::int64_t begin, std::int64_t,
                                                             __m256 (&scales)[kinds]) {
        const std::uint8_t* header =
            call.weights.headers + (row * (call.k / k_block) + begin / groups_of_block) * q6_k_header;
        for (int kind = 0; kind < kinds; ++kind) {
            const __m256i small = _mm256_cvtepi8_epi32(load_eight(header + 2 + 8 * kind));
            scales[kind] = _mm256_mul_ps(by_all(header), _mm256_cvtepi32_ps(small));
        }
    }
};

/// Eight groups of x as they meet W: in pairs what meets the first 16 weights of each, and the others. Also scales, in
/// the unit of the format, and what products are too large by because of its shift; of two kinds that is of the first
/// 16 and of the second 16. What is beyond the last group is zeros.
template <int kinds>
struct MetByEight {
    __m256i low[4];
    __m256i high[4];
    __m256 scales;
    __m256 off[kinds];
};

template <class Of>
void lay_by_eights(const std::int8_t* x, const float* scales, std::int64_t groups, std::int8_t* to) {
    const __m256i shift = _mm256_set1_epi8(Of::shift);
    for (std::int64_t begin = 0; begin < groups; begin += scales_at_once, to += sizeof(MetByEight<Of::kinds>)) {
        const auto here = [&](std::int64_t at) {
            const auto* from = reinterpret_cast<const __m256i*>(x + (begin + at) * small_group);
            return begin + at < groups ? _mm256_loadu_si256(from) : _mm256_setzero_si256();
        };
        MetByEight<Of::kinds> met;
        __m256i sums[Of::kinds][4];
        for (int i = 0; i < 4; ++i) {
            const __m256i one = here(2 * i);
            const __m256i two = here(2 * i + 1);
            const __m256i low = _mm256_permute2x128_si256(one, two, 0x20);
            const __m256i high = _mm256_permute2x128_si256(one, two, 0x31);
            met.low[i] = by_groups(low);
            met.high[i] = by_groups(high);
            sums[0][i] = dots_of(shift, low);
            const __m256i of_high = dots_of(shift, high);
            if constexpr (Of::kinds == 2)
                sums[1][i] = of_high;
            else
                sums[0][i] = _mm256_add_epi32(sums[0][i], of_high);
        }
        for (int kind = 0; kind < Of::kinds; ++kind) {
            // Even groups in the lower half, odd ones in the upper.
            const __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[kind][0], sums[kind][1]),
                                                  _mm256_hadd_epi32(sums[kind][2], sums[kind][3]));
            met.off[kind] = _mm256_cvtepi32_ps(by_groups(all));
        }
        alignas(32) float some[scales_at_once] = {};
        for (std::int64_t i = 0; i < std::min(scales_at_once, groups - begin); ++i)
            some[i] = Of::unit * scales[begin + i];
        met.scales = _mm256_load_ps(some);
        __builtin_memcpy(to, &met, sizeof met);
    }
}

/// Two numbers by turns, as a load alone: told in other words a compiler moves them from register to register.
inline __attribute__((always_inline)) __m256 by_turns(const float* two) {
    __m256 all;
    asm("vbroadcastsd %1, %0" : "=x"(all) : "m"(*reinterpret_cast<const float(*)[2]>(two)));
    return all;
}

/// Two groups of rows of W with those of rows of x, pair `at` of eight.
template <class Of, int count, int columns>
inline __attribute__((always_inline)) void add_pair(const std::uint8_t* const (&from)[count], std::int64_t byte,
                                                    bool both, const MetByEight<Of::kinds>* const (&met)[columns],
                                                    std::int64_t at,
                                                    const float (&factors)[count][columns][Of::kinds][scales_at_once],
                                                    __m256 (&totals)[count][columns]) {
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        const Numbers w = Of::pair(from[i] + byte, at, both);
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) {
            const auto add = [&](const __m256i& sums, int kind) __attribute__((always_inline)) {
                totals[i][j] =
                    _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), by_turns(factors[i][j][kind] + 2 * at), totals[i][j]);
            };
            if constexpr (Of::kinds == 2) {
                add(dots_of(w.low, met[j]->low[at]), 0);
                add(dots_of(w.high, met[j]->high[at]), 1);
            } else {
                add(Of::dots(w, met[j]->low[at], met[j]->high[at]), 0);
            }
        }
    }
}

/// Rows of W, each in a stretch of its own, with rows of x.
template <class Of, int count, int columns>
inline __attribute__((always_inline)) void dots(const ProductCall& call, const std::int64_t (&rows)[count],
                                                const LaidRows<std::int8_t>& x, std::int64_t x_row) {
    constexpr int kinds = Of::kinds;
    const std::int64_t groups = call.k / small_group;
    const std::uint8_t* from[count];
    const MetByEight<kinds>* met[columns];
    __m256 totals[count][columns];
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) met[j] = reinterpret_cast<const MetByEight<kinds>*>(x.row(x_row + j));
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
        from[i] =
            static_cast<const std::uint8_t*>(call.weights.values) + rows[i] * (call.k * Of::block_bytes / k_block);
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) totals[i][j] = _mm256_setzero_ps();
    }
    for (std::int64_t begin = 0; begin < groups; begin += scales_at_once) {
        const std::int64_t some = std::min(scales_at_once, groups - begin);
        const std::int64_t byte = begin / scales_at_once * Of::block_bytes;
        alignas(32) float factors[count][columns][kinds][scales_at_once];
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
#pragma GCC unroll 4
            for (std::int64_t line = 0; line < Of::block_bytes; line += 64)
                __builtin_prefetch(from[i] + byte + bytes_ahead + line);
            __m256 scales[kinds];
            __m256 off;
            if constexpr (Of::has_off)
                Of::scales_and_off(call, rows[i], begin, scales, off);
            else
                Of::scales(call, rows[i], begin, some, scales);
#pragma GCC unroll 4
            for (int j = 0; j < columns; ++j) {
                for (int kind = 0; kind < kinds; ++kind) {
                    const __m256 factor = _mm256_mul_ps(scales[kind], met[j]->scales);
                    _mm256_store_ps(factors[i][j][kind], factor);
                    if constexpr (!Of::has_off)
                        totals[i][j] = _mm256_fnmadd_ps(factor, met[j]->off[kind], totals[i][j]);
                    else
                        totals[i][j] =
                            _mm256_fnmadd_ps(_mm256_mul_ps(off, met[j]->scales), met[j]->off[kind], totals[i][j]);
                }
            }
        }
        std::int64_t at = 0;
        for (; 2 * at + 2 <= some; ++at) add_pair<Of>(from, byte, true, met, at, factors, totals);
        if (2 * at < some) add_pair<Of>(from, byte, false, met, at, factors, totals);
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) ++met[j];
    }
    save_lanes(call, rows, x_row, totals);
}

template <class Of>
void product(const ProductCall& call, std::int64_t first, std::int64_t last) {
    static thread_local LaidRows<std::int8_t> room;
    const std::int64_t groups = call.k / small_group;
    const std::int64_t wide =
        (groups + scales_at_once - 1) / scales_at_once * static_cast<std::int64_t>(sizeof(MetByEight<Of::kinds>));
    const LaidRows<std::int8_t>& x = room.laid(call.m, wide, [&](std::int64_t row, std::int8_t* to) {
        lay_by_eights<Of>(static_cast<const std::int8_t*>(call.x) + row * call.k, call.x_scales + row * groups, groups,
                          to);
    });
    if (call.m == 1) {
        side_by_side<4>(first, last, [&](const std::int64_t(&rows)[4]) { dots<Of, 4, 1>(call, rows, x, 0); });
        return;
    }
    by_panels<2, 4>(call, first, last,
                    [&]<int columns>(std::integral_constant<int, columns>, const std::int64_t(&rows)[2],
                                     std::int64_t x_row) { dots<Of, 2, columns>(call, rows, x, x_row); });
}

}  // namespace

void avx2_groups(const ProductCall& call, std::int64_t first, std::int64_t last) {
    switch (call.weights.type) {
        case WeightFormat::mxfp4:
            return product<OfMxfp4>(call, first, last);
        case WeightFormat::nvfp4:
            return product<OfNvfp4>(call, first, last);
        case WeightFormat::q4_0:
            return product<OfQ4_0>(call, first, last);
        case WeightFormat::q8_0:
            return product<OfQ8_0>(call, first, last);
        case WeightFormat::q4_k:
            return product<OfQ4K>(call, first, last);
        case WeightFormat::q5_k:
            return product<OfQ5K>(call, first, last);
        default:
            return product<OfQ6K>(call, first, last);
    }
}

}  // namespace roofline::bench

#pragma GCC pop_options
#endif
