// Sixty-four bytes of JSON at once, as masks with one bit a byte: where quotes, backslashes, brackets and braces are.
// Vector instructions where the machine has them, else one byte after another.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace roofline::analyze::scanning {

inline constexpr std::ptrdiff_t block_bytes = 64;

struct BlockMasks {
    std::uint64_t quotes = 0;
    std::uint64_t slashes = 0;
    std::uint64_t brackets = 0;  // braces too, opening and closing
};

#if defined(__ARM_NEON) && defined(__aarch64__)

/// Bytes of all ones or all zeros become bits.
inline std::uint64_t bits(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {
    const uint8x16_t places = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t low = vpaddq_u8(vandq_u8(a, places), vandq_u8(b, places));
    const uint8x16_t high = vpaddq_u8(vandq_u8(c, places), vandq_u8(d, places));
    const uint8x16_t pairs = vpaddq_u8(low, high);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(pairs, pairs)), 0);
}

inline BlockMasks masks_of(const char* at) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(at);
    const uint8x16_t part[4] = {vld1q_u8(bytes), vld1q_u8(bytes + 16), vld1q_u8(bytes + 32), vld1q_u8(bytes + 48)};
    const auto equal = [&](std::uint8_t c) {
        const uint8x16_t wanted = vdupq_n_u8(c);
        return bits(vceqq_u8(part[0], wanted), vceqq_u8(part[1], wanted), vceqq_u8(part[2], wanted),
                    vceqq_u8(part[3], wanted));
    };
    // '[' and '{', ']' and '}' differ in one bit.
    const auto bracket = [&](uint8x16_t some) {
        const uint8x16_t folded = vorrq_u8(some, vdupq_n_u8(0x20));
        return vorrq_u8(vceqq_u8(folded, vdupq_n_u8('{')), vceqq_u8(folded, vdupq_n_u8('}')));
    };
    return {equal('"'), equal('\\'), bits(bracket(part[0]), bracket(part[1]), bracket(part[2]), bracket(part[3]))};
}

#elif defined(__SSE2__)

inline BlockMasks masks_of(const char* at) {
    BlockMasks masks;
    for (unsigned i = 0; i < 4; ++i) {
        const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16 * i));
        const auto bits = [&](__m128i hits) {
            return static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(hits))) << (16U * i);
        };
        const __m128i folded = _mm_or_si128(part, _mm_set1_epi8(0x20));
        masks.quotes |= bits(_mm_cmpeq_epi8(part, _mm_set1_epi8('"')));
        masks.slashes |= bits(_mm_cmpeq_epi8(part, _mm_set1_epi8('\\')));
        masks.brackets |=
            bits(_mm_or_si128(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{')), _mm_cmpeq_epi8(folded, _mm_set1_epi8('}'))));
    }
    return masks;
}

#else

inline BlockMasks masks_of(const char* at) {
    BlockMasks masks;
    for (unsigned i = 0; i < 64; ++i) {
        const std::uint64_t bit = std::uint64_t{1} << i;
        const char c = at[i];
        if (c == '"') masks.quotes |= bit;
        if (c == '\\') masks.slashes |= bit;
        if (c == '[' || c == ']' || c == '{' || c == '}') masks.brackets |= bit;
    }
    return masks;
}

#endif

/// Bits from every set bit up to the next: what lies between quotes, the opening one included.
inline std::uint64_t between(std::uint64_t quotes) {
    for (const unsigned shift : {1U, 2U, 4U, 8U, 16U, 32U}) quotes ^= quotes << shift;
    return quotes;
}

}  // namespace roofline::analyze::scanning
