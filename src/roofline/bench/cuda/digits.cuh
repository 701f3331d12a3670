// Cutting activations, queries and weights of attention into digits (digits.hpp) on the device.
#pragma once

#include <cuda_fp8.h>

#include "roofline/bench/cuda/digits.hpp"
#include "roofline/bench/cuda/fragments.cuh"

namespace roofline::cuda::kernels {

struct E4m3Digits {
    static constexpr int top = 7;
    static constexpr int unit = 7;
    static constexpr float low_weight = 1.0f / 16.0f;
    __device__ static Digits cut(float scaled) {
        const __nv_fp8_e4m3 high(scaled);
        const __nv_fp8_e4m3 low(16.0f * (scaled - static_cast<float>(high)));
        return {high.__x, low.__x};
    }
};

/// Digits lie in the order of their values.
struct InOrder {
    __device__ static constexpr int place(int index) { return index; }
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

/// What a high digit counts in a group. Infinities and what is not a number cannot be cut: they spoil every sum by the unit.
template <class Cut>
__device__ float unit_of(std::uint32_t largest) {
    return largest >= 0x7F80u ? __int_as_float(0x7FFFFFFF) : power_of_two(group_power(largest) - Cut::unit);
}

struct EightDigits {
    uint2 high;
    uint2 low;
};

/// Eight bf16 of a group with this power; `Order` says which byte a value's digits go to.
template <class Cut, class Order>
__device__ EightDigits cut_eight(const uint4& eight, int power) {
    const float factor = power_of_two(Cut::top - power);
    std::uint32_t high[2] = {};
    std::uint32_t low[2] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const std::uint32_t two = word(eight, i / 2);
        const Digits cut = Cut::cut(__uint_as_float(i % 2 == 0 ? two << 16 : two & 0xFFFF0000u) * factor);
        high[Order::place(i) / 4] |= cut.high << (Order::place(i) % 4 * 8);
        low[Order::place(i) / 4] |= cut.low << (Order::place(i) % 4 * 8);
    }
    return {{high[0], high[1]}, {low[0], low[1]}};
}

}  // namespace roofline::cuda::kernels
