// Random matrices in every type a matrix unit takes, filled on the device and read back as doubles on the host, so that
// a product can be checked against the very numbers it was given. Normally distributed: what a multiplier switches, and
// so the power it draws, depends on its operands, and zeros run faster than anybody's data.
#pragma once

#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "roofline/measure/cuda/frame.cuh"

namespace roofline::probe {

enum class Numbers { fp64, fp32, fp16, bf16, fp8, int8, fp4, int32 };

inline double bytes_of(Numbers type) {
    switch (type) {
        case Numbers::fp64:
            return 8.0;
        case Numbers::fp32:
        case Numbers::int32:
            return 4.0;
        case Numbers::fp16:
        case Numbers::bf16:
            return 2.0;
        case Numbers::fp8:
        case Numbers::int8:
            return 1.0;
        case Numbers::fp4:
            return 0.5;
    }
    return 0.0;
}

inline std::size_t storage_of(Numbers type, std::size_t count) {
    return static_cast<std::size_t>(static_cast<double>(count) * bytes_of(type));
}

__device__ inline std::uint64_t scrambled(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

/// Box and Muller's way to a normal number.
__device__ inline float normal(std::uint64_t index, std::uint64_t seed) {
    const std::uint64_t bits = scrambled(index * 2 + seed * 0x632be59bd9b4e019ULL);
    const float u = (static_cast<float>(bits >> 40) + 1.0F) * 0x1p-24F;  // above zero
    const float v = static_cast<float>((bits >> 8) & 0xffffff) * 0x1p-24F;
    return sqrtf(-2.0F * logf(u)) * cospif(2.0F * v);
}

static __global__ void fill_normal(void* out, std::size_t count, Numbers type, std::uint64_t seed) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count; i += stride) {
        const float value = normal(i, seed);
        switch (type) {
            case Numbers::fp64:  // with digits beyond fp32, so that products are not exact
                static_cast<double*>(out)[i] = value + 0x1p-26 * normal(i, seed + 1000);
                break;
            case Numbers::fp32:
                static_cast<float*>(out)[i] = value;
                break;
            case Numbers::fp16:
                static_cast<__half*>(out)[i] = __float2half(value);
                break;
            case Numbers::bf16:
                static_cast<__nv_bfloat16*>(out)[i] = __float2bfloat16(value);
                break;
            case Numbers::fp8:
                static_cast<__nv_fp8_e4m3*>(out)[i] = __nv_fp8_e4m3(value);
                break;
            case Numbers::int8:
                static_cast<std::int8_t*>(out)[i] =
                    static_cast<std::int8_t>(fminf(fmaxf(rintf(value * 32.0F), -127.0F), 127.0F));
                break;
            case Numbers::fp4:  // two in a byte; the codes themselves, all alike
                if (i % 2 == 0) static_cast<std::uint8_t*>(out)[i / 2] = static_cast<std::uint8_t>(scrambled(i ^ seed));
                break;
            case Numbers::int32:
                static_cast<std::int32_t*>(out)[i] = static_cast<std::int32_t>(value);
                break;
        }
    }
}

/// Number `i` of raw bytes copied from the device.
inline double number_at(const void* data, std::size_t i, Numbers type) {
    switch (type) {
        case Numbers::fp64:
            return static_cast<const double*>(data)[i];
        case Numbers::fp32:
            return static_cast<const float*>(data)[i];
        case Numbers::fp16:
            return __half2float(static_cast<const __half*>(data)[i]);
        case Numbers::bf16:
            return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
        case Numbers::fp8:
            return static_cast<float>(static_cast<const __nv_fp8_e4m3*>(data)[i]);
        case Numbers::int8:
            return static_cast<const std::int8_t*>(data)[i];
        case Numbers::int32:
            return static_cast<const std::int32_t*>(data)[i];
        case Numbers::fp4: {
            constexpr double magnitudes[] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
            const int code = (static_cast<const std::uint8_t*>(data)[i / 2] >> (i % 2 * 4)) & 15;
            return (code & 8) != 0 ? -magnitudes[code & 7] : magnitudes[code & 7];
        }
    }
    return 0.0;
}

}  // namespace roofline::probe
