// What the groups of int4 weights are multiplied by, eight groups at a time. Scales and zero points must not cost more
// than the weights themselves, so they go through vectors too.
#pragma once

#include <cstdint>

#include "roofline/bench/kernels/products.hpp"

namespace roofline::bench {

inline constexpr std::int64_t factors_at_once = 8;

/// For groups [group, group + count) of a row of W, the first of which is group `place` of all: factors[i] is the scale
/// of the weights times that of x. Returns what the zero points take off the sum of these groups.
inline __attribute__((always_inline)) float group_factors(const ProductCall& call, std::int64_t place,
                                                          std::int64_t group, std::int64_t count,
                                                          float (&factors)[factors_at_once]) {
    using Floats = float __attribute__((vector_size(16)));
    using Words = std::uint32_t __attribute__((vector_size(16)));
    using Halves = std::uint16_t __attribute__((vector_size(8)));
    if (count < factors_at_once || place % 2 != 0) {
        float off = 0.0F;
        for (std::int64_t i = 0; i < count; ++i) {
            factors[i] = call.weights.group_scale(place + i) * call.x_scales[group + i];
            off += factors[i] * call.weights.group_zero(place + i) * call.x_sums[group + i];
        }
        return off;
    }
    std::uint32_t nibbles = 0;
    __builtin_memcpy(&nibbles, call.weights.group_zeros + place / 2, sizeof nibbles);
    Floats off = {};
    for (std::int64_t half = 0; half < 2; ++half) {
        Halves narrow;
        __builtin_memcpy(&narrow, call.weights.group_scales + place + 4 * half, sizeof narrow);
        Floats x_scales;
        Floats x_sums;
        __builtin_memcpy(&x_scales, call.x_scales + group + 4 * half, sizeof x_scales);
        __builtin_memcpy(&x_sums, call.x_sums + group + 4 * half, sizeof x_sums);
        const Floats factor = reinterpret_cast<Floats>(__builtin_convertvector(narrow, Words) << 16) * x_scales;
        const Words shifted = (Words{} + (nibbles >> (16 * half))) >> Words{0, 4, 8, 12};
        off += factor * __builtin_convertvector(shifted & 15, Floats) * x_sums;
        __builtin_memcpy(factors + 4 * half, &factor, sizeof factor);
    }
    return (off[0] + off[1]) + (off[2] + off[3]);
}

}  // namespace roofline::bench
