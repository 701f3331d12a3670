// Eight bf16 activations at a time, 16 bytes, as floats.
#pragma once

#include <cstddef>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "roofline/bench/cuda/fragments.cuh"

namespace roofline::cuda::kernels {

struct Eight {
    float v[8];
};

__device__ inline Eight read(const void* from, std::size_t index) {
    const uint4 raw = static_cast<const uint4*>(from)[index];
    Eight eight;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        eight.v[2 * i] = __uint_as_float(word(raw, i) << 16);
        eight.v[2 * i + 1] = __uint_as_float(word(raw, i) & 0xFFFF0000u);
    }
    return eight;
}

__device__ inline std::uint32_t pack(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
}

__device__ inline void write(void* to, std::size_t index, const Eight& eight) {
    static_cast<uint4*>(to)[index] = {pack(eight.v[0], eight.v[1]), pack(eight.v[2], eight.v[3]),
                                      pack(eight.v[4], eight.v[5]), pack(eight.v[6], eight.v[7])};
}

/// As e4m3, in eight bytes.
__device__ inline uint2 as_fp8(const Eight& eight) {
    const auto two = [&](int i) -> std::uint32_t {  // one instruction
        return __nv_cvt_float2_to_fp8x2({eight.v[i], eight.v[i + 1]}, __NV_SATFINITE, __NV_E4M3);
    };
    return {two(0) | two(2) << 16, two(4) | two(6) << 16};
}

/// As int8, in eight bytes; they are no more than 127.
__device__ inline uint2 as_int8(const Eight& eight) {
    const auto four = [&](int i) {
        const auto byte = [&](int j) { return static_cast<std::uint32_t>(__float2int_rn(eight.v[j])) & 255u; };
        return byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16 | byte(i + 3) << 24;
    };
    return {four(0), four(4)};
}

/// Eight pairs, turned by these cosines and sines.
__device__ inline void turn(Eight& low, Eight& high, const float2* angles) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float2 angle = angles[i];
        const float x = low.v[i];
        const float y = high.v[i];
        low.v[i] = x * angle.x - y * angle.y;
        high.v[i] = y * angle.x + x * angle.y;
    }
}

}  // namespace roofline::cuda::kernels
