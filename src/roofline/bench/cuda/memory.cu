// Random data by a hash of the index: every buffer differs, and none is zero.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "roofline/bench/cuda/memory.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr int threads = 256;

__device__ std::uint32_t hash(std::uint64_t index, std::uint32_t seed) {
    std::uint32_t x =
        static_cast<std::uint32_t>(index) * 0x9E3779B1u ^ static_cast<std::uint32_t>(index >> 32) ^ seed * 0x85EBCA6Bu;
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    return x ^ x >> 16;
}

/// In [-1, 1).
__device__ float uniform(std::uint32_t bits) {
    return static_cast<float>(static_cast<std::int32_t>(bits)) * (1.0f / 2147483648.0f);
}

__global__ void fill_bf16(__nv_bfloat16* to, std::size_t values, float amplitude, std::uint32_t seed) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < values; i += stride) {
        to[i] = __float2bfloat16_rn(amplitude * uniform(hash(i, seed)));
    }
}

__global__ void fill_fp8(std::uint8_t* to, std::size_t values, float amplitude, std::uint32_t seed) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < values; i += stride) {
        to[i] = __nv_cvt_float_to_fp8(amplitude * uniform(hash(i, seed)), __NV_SATFINITE, __NV_E4M3);
    }
}

__global__ void fill_bytes(std::uint8_t* to, std::size_t values, unsigned low, unsigned high, std::uint32_t seed) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < values; i += stride) {
        to[i] = static_cast<std::uint8_t>(low + (hash(i, seed) >> 13) % (high - low + 1));
    }
}

__global__ void fill_float(float* to, std::size_t values, float low, float high, std::uint32_t seed) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < values; i += stride) {
        to[i] = low + (high - low) * (0.5f + 0.5f * uniform(hash(i, seed)));
    }
}

}  // namespace

void fill_random(void* to, std::size_t values, Format format, float amplitude, std::uint32_t seed,
                 cudaStream_t stream) {
    constexpr int blocks = 2048;
    switch (format) {
        case Format::bf16:
            fill_bf16<<<blocks, threads, 0, stream>>>(static_cast<__nv_bfloat16*>(to), values, amplitude, seed);
            break;
        case Format::fp8:
        case Format::fp8_block:
            fill_fp8<<<blocks, threads, 0, stream>>>(static_cast<std::uint8_t*>(to), values, amplitude, seed);
            break;
        default:
            fill_bytes<<<blocks, threads, 0, stream>>>(
                static_cast<std::uint8_t*>(to), values * static_cast<std::size_t>(bits(format)) / 8, 0, 255, seed);
    }
    must(cudaGetLastError(), "fill with random values");
}

void fill_random(float* to, std::size_t values, float low, float high, std::uint32_t seed, cudaStream_t stream) {
    fill_float<<<1024, threads, 0, stream>>>(to, values, low, high, seed);
    must(cudaGetLastError(), "fill with random values");
}

void fill_range(void* to, std::size_t bytes, int low, int high, std::uint32_t seed, cudaStream_t stream) {
    fill_bytes<<<1024, threads, 0, stream>>>(static_cast<std::uint8_t*>(to), bytes, static_cast<unsigned>(low),
                                             static_cast<unsigned>(high), seed);
    must(cudaGetLastError(), "fill with random values");
}

}  // namespace roofline::cuda::kernels
