// Numbers of eight bits, s eeee mmm: weights in fp8, and scales of nvfp4.
#pragma once

#include <array>
#include <cstdint>

namespace roofline::bench {

/// What every byte is; the two without a number (all ones but the sign) are as if there were one.
inline constexpr std::array<float, 256> e4m3_values = [] {
    std::array<float, 256> values = {};
    for (unsigned bits = 0; bits < 256; ++bits) {
        const unsigned exponent = (bits >> 3U) & 15U;
        float value = static_cast<float>(bits & 7U) + (exponent > 0 ? 8.0F : 0.0F);
        for (unsigned i = exponent > 0 ? exponent : 1; i > 0; --i) value *= 2.0F;
        value *= 0x1p-10F;  // 2^-7 for the exponent, an eighth for the fraction
        values[bits] = bits < 128 ? value : -value;
    }
    return values;
}();
/// Moved by seven places a number is one of 16 bits that is 2^-8 of it, the smallest ones too.
inline constexpr float e4m3_of_half = 256.0F;

}  // namespace roofline::bench
