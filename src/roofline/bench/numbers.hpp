// Numbers as kernels read them: bf16 as its 16 bits, and random values that are the same for every thread count.
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
