// Products with weights in small groups (products.hpp): mxfp4 and nvfp4, and of GGUF q4_0, q8_0, q4_k, q5_k and q6_k. A
// weight is a small whole number, looked up, read or put together of a few bits, times the scale of its group, less
// what is taken off in all of it. One function for each instruction set; those of AVX-512 are in avx512_groups.inc.
#pragma once

#include <cstring>

#include "roofline/bench/kernels/products.hpp"

namespace roofline::bench {

/// Twice the values of e2m1, in which weights are looked up.
inline constexpr std::int8_t twice_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

inline constexpr std::int64_t groups_of_block = k_block / small_group;
inline constexpr std::int64_t q4_k_header = 16;        // bytes; of q5_k too
inline constexpr std::int64_t q6_k_header = 18;        // bytes
inline constexpr std::int64_t q5_k_low = k_block / 2;  // bytes of low halves, in front of fifth bits
inline constexpr std::int64_t q5_k_block = q5_k_low + k_block / 8;
inline constexpr std::int64_t q6_k_low = k_block / 2;  // bytes of low halves, in front of those of upper bits
inline constexpr std::int64_t q6_k_block = q6_k_low + k_block / 4;

/// Scales of eight groups, and what is taken off, in six bits: the low and the high halves of eight bytes, and above
/// them two and two of the four bits that `tops` has for each group.
struct SixBits {
    const std::uint8_t* header;

    std::uint32_t tops() const {
        std::uint32_t bits;
        std::memcpy(&bits, header + 12, sizeof bits);
        return bits;
    }
    int scale(std::int64_t group) const { return (header[4 + group] & 15) | static_cast<int>(bits(group) & 3U) << 4; }
    int off(std::int64_t group) const { return header[4 + group] >> 4 | static_cast<int>(bits(group) >> 2U) << 4; }

  private:
    std::uint32_t bits(std::int64_t group) const { return tops() >> static_cast<unsigned>(4 * group) & 15U; }
};

/// A group taken apart: 32 numbers, what the first 16 and the others are multiplied by, and what is taken off each
/// weight.
struct Group {
    std::int8_t numbers[small_group];
    float scale;
    float second_scale;
    float off = 0.0F;
};
Group take_apart(const Weights& weights, std::int64_t row, std::int64_t group, std::int64_t k);

void portable_groups(const ProductCall& call, std::int64_t first, std::int64_t last);
#if defined(__aarch64__)
void neon_groups(const ProductCall& call, std::int64_t first, std::int64_t last);  // needs dot products of bytes
#elif defined(__x86_64__)
void avx2_groups(const ProductCall& call, std::int64_t first, std::int64_t last);  // needs FMA and F16C too
#endif

}  // namespace roofline::bench
