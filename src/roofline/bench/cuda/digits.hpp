// Activations as sums of two eight-bit digits, so that whole numbers of eight bits or fewer meet them on the tensor
// cores as they are and never become bf16. A tensor instruction multiplies weights by eight columns; one row of
// activations would leave seven of them empty, so its second digit costs nothing.
//
// Values of a group are scaled by one power of two, taken from the largest of them, and cut:
//   q = round(x 2^(13-e)), 2^e the power of two in the largest: 15 bits; q = 128 high + low, low in 0..127.
//   What is lost is at most 2^-14 of 2^e; a bf16 within 2^6 of the largest is exact.
#pragma once

#include <cstdint>
#include <cstring>

#include "roofline/bench/cuda/both.hpp"

namespace roofline::cuda::kernels {

/// 2^power for a power that a float has.
ROOFLINE_BOTH inline float power_of_two(int power) {
    const std::uint32_t bits = static_cast<std::uint32_t>(127 + power) << 23;
    float value = 0.0f;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/// The power of two in the largest bf16 of a group, given as its bits without the sign. Groups of nothing but tiny
/// values are treated as if 2^-100 were among them: powers stay within a float.
ROOFLINE_BOTH inline int group_power(std::uint32_t largest) {
    const int power = static_cast<int>(largest >> 7) - 127;
    return power > -100 ? power : -100;
}

/// Two digits of eight bits, as they lie in an operand's byte.
struct Digits {
    std::uint32_t high;
    std::uint32_t low;
};

struct IntegerDigits {
    static constexpr int top = 13;
    static constexpr int unit = 6;                      // a high digit counts 2^(e-unit)
    static constexpr float low_weight = 1.0f / 128.0f;  // of the low digit, where the high one is 1

    /// `scaled` is x 2^(top-e).
    ROOFLINE_BOTH static Digits cut(float scaled) {
#ifdef __CUDA_ARCH__
        const int whole = __float2int_rn(scaled);
#else
        const int whole = static_cast<int>(scaled + (scaled < 0.0f ? -0.5f : 0.5f));
#endif
        return {static_cast<std::uint32_t>(whole >> 7) & 0xFFu, static_cast<std::uint32_t>(whole) & 0x7Fu};
    }
};

}  // namespace roofline::cuda::kernels
