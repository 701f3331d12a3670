// e^-x as vectors have it: no tables, no branches.
#pragma once

#include <bit>
#include <cstdint>

namespace roofline::bench {

/// e^-x = 2^(whole + rest), within 4 in a million (1 for |x| < 10); nothing is below e^-87 or above e^87. The whole
/// part is had by way of a number so large that nothing lies between whole ones, and goes into the exponent; 2^rest is
/// a polynomial (within 2 in ten million), in parts that do not wait for each other.
inline __attribute__((always_inline)) float exponential_of_minus(float x) {
    // As integers floats are ordered if they are positive, and the other way round, above all these, if they are not.
    constexpr auto most = std::bit_cast<std::int32_t>(87.0F);
    constexpr auto least = std::bit_cast<std::uint32_t>(-87.0F);
    const auto bits = std::bit_cast<std::int32_t>(x);
    const auto not_above = static_cast<std::uint32_t>(bits < most ? bits : most);
    x = std::bit_cast<float>(not_above < least ? not_above : least);
    const float whole = x * -1.44269504F + 12582912.0F;
    const float rest = (12582912.0F - whole) + x * -1.44269504F;
    const float square = rest * rest;
    const float low = rest * 0.693147182F + 1.00000012F;
    const float middle = rest * 0.0555035695F + 0.240221068F;
    const float high = rest * 0.00133908633F + 0.00967603177F;
    const float power = (high * square + middle) * square + low;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(power) + (std::bit_cast<std::uint32_t>(whole) << 23U));
}

/// ln(1 + e^x), within 5 in a million: x where that is positive, and ln(1 + t) with t = e^-|x|, which is twice the
/// hyperbolic arctangent of t / (2 + t).
inline __attribute__((always_inline)) float softened(float x) {
    const float size = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU);
    const float t = exponential_of_minus(size);
    const float w = t / (2.0F + t);
    const float square = w * w;
    const float high = (square * (1.0F / 11.0F) + 1.0F / 9.0F) * square + 1.0F / 7.0F;
    const float series = ((high * square + 1.0F / 5.0F) * square + 1.0F / 3.0F) * square + 1.0F;
    return 0.5F * (x + size) + 2.0F * w * series;
}

}  // namespace roofline::bench
