// Numbers as kernels read them: bf16 and fp16 as their 16 bits, and random values that are the same for every thread
// count.
#pragma once

#include <bit>
#include <cstdint>

namespace roofline::bench {

using Bf16 = std::uint16_t;

/// To the nearest, ties to even. Never called with NaN.
inline Bf16 to_bf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<Bf16>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

inline float from_bf16(Bf16 value) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16U);
}

/// IEEE half of a normal number below 65504, cut off, which random weights do not mind.
inline std::uint16_t to_half(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t exponent = (bits >> 23U) & 255U;
    if (exponent < 113U) return static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);  // too small: zero
    return static_cast<std::uint16_t>(((bits >> 16U) & 0x8000U) | ((exponent - 112U) << 10U) |
                                      ((bits >> 13U) & 0x3FFU));
}

/// Never called with infinities. (A half with its exponent moved is 2^-112 of itself, the least ones too.)
inline float from_half(std::uint16_t value) {
    const float size = std::bit_cast<float>(static_cast<std::uint32_t>(value & 0x7FFFU) << 13U) * 0x1p112F;
    return value < 0x8000U ? size : -size;
}

/// splitmix64: the n-th value follows from n alone, so threads can fill their own parts.
inline std::uint64_t mixed(std::uint64_t n) {
    n += 0x9E3779B97F4A7C15ULL;
    n = (n ^ (n >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    n = (n ^ (n >> 27U)) * 0x94D049BB133111EBULL;
    return n ^ (n >> 31U);
}

/// Evenly between -1 and 1.
inline float random_value(std::uint64_t n) {
    return static_cast<float>(static_cast<std::int64_t>(mixed(n)) >> 40) * 0x1p-23F;
}

}  // namespace roofline::bench
