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
    uint2 packed{};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        packed.x |= static_cast<std::uint32_t>(__nv_cvt_float_to_fp8(eight.v[i], __NV_SATFINITE, __NV_E4M3)) << (8 * i);
        packed.y |= static_cast<std::uint32_t>(__nv_cvt_float_to_fp8(eight.v[i + 4], __NV_SATFINITE, __NV_E4M3))
                    << (8 * i);
    }
    return packed;
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
