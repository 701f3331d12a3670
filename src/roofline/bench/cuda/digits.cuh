// Cutting activations into digits (digits.hpp), or scaling them to fp16, on the device.
#pragma once

#include <cuda_fp16.h>

#include "roofline/bench/cuda/digits.hpp"
#include "roofline/bench/cuda/fragments.cuh"

namespace roofline::cuda::kernels {

/// Digits lie in the order of their values.
struct InOrder {
    /// Which of eight values a byte's digit is of.
    __device__ static constexpr int value_at(int byte) { return byte; }
};

/// The largest of eight bf16, as its bits without the sign.
__device__ inline std::uint32_t largest_size(const uint4& eight) {
    std::uint32_t largest = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const std::uint32_t sizes = word(eight, i) & 0x7FFF7FFFu;
        largest = max(largest, max(sizes >> 16, sizes & 0xFFFFu));
    }
    return largest;
}

/// The same of the eight that each of `Lanes` neighbouring lanes has, for all of them.
template <int Lanes>
__device__ std::uint32_t largest_among(const uint4& eight) {
    std::uint32_t largest = largest_size(eight);
#pragma unroll
    for (int offset = Lanes / 2; offset > 0; offset /= 2) {
        largest = max(largest, __shfl_xor_sync(~0u, largest, offset));
    }
    return largest;
}

/// A group's unit is 2^(its power - less). Infinities and what is not a number cannot be cut: they spoil every sum by
/// the unit.
__device__ inline float unit_of(std::uint32_t largest, int less) {
    return largest >= 0x7F80u ? __int_as_float(0x7FFFFFFF) : power_of_two(group_power(largest) - less);
}

__device__ inline float bf16_at(const uint4& eight, int index) {
    const std::uint32_t two = word(eight, index / 2);
    return __uint_as_float(index % 2 == 0 ? two << 16 : two & 0xFFFF0000u);
}

struct EightDigits {
    uint2 high;
    uint2 low;
};

/// Eight bf16 of a group with this power; `Order` says which byte a value's digits go to. A float to which 1.5 x 2^23
/// was added has the whole number, rounded, in its lower bits: digits are bytes of it, or of twice it, and are only
/// gathered.
template <class Order>
__device__ EightDigits cut_eight(const uint4& eight, int power) {
    const float factor = power_of_two(IntegerDigits::top - power);
    std::uint32_t whole[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) whole[i] = __float_as_uint(fmaf(bf16_at(eight, i), factor, 12582912.0f));
    std::uint32_t high[2];
    std::uint32_t low[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const std::uint32_t a = whole[Order::value_at(4 * i)];
        const std::uint32_t b = whole[Order::value_at(4 * i + 1)];
        const std::uint32_t c = whole[Order::value_at(4 * i + 2)];
        const std::uint32_t d = whole[Order::value_at(4 * i + 3)];
        low[i] = __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410) & 0x7F7F7F7Fu;
        high[i] = __byte_perm(__byte_perm(a + a, b + b, 0x0051), __byte_perm(c + c, d + d, 0x0051), 0x5410);
    }
    return {{high[0], high[1]}, {low[0], low[1]}};
}

/// Eight bf16 of a group with this power as fp16 of 2^power, exact down to 2^-14 of it.
__device__ inline uint4 halve_eight(const uint4& eight, int power) {
    const float factor = power_of_two(-power);
    std::uint32_t pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const __half2 pair = __floats2half2_rn(bf16_at(eight, 2 * i) * factor, bf16_at(eight, 2 * i + 1) * factor);
        pairs[i] = reinterpret_cast<const std::uint32_t&>(pair);
    }
    return {pairs[0], pairs[1], pairs[2], pairs[3]};
}

}  // namespace roofline::cuda::kernels
