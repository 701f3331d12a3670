// Data whose sum is known in closed form: word i holds i * ramp_step modulo 2^32. The step is odd and large, so
// neighbours differ in about half of their bits as real data do; a read that leaves a word out, or takes one twice,
// changes the sum.
#pragma once

#include <cstdint>

#include "roofline/measure/cuda/frame.cuh"

namespace roofline::probe {

inline constexpr std::uint32_t ramp_step = 2654435761U;

/// The sum of words 0 to n-1 modulo 2^32: step * n (n-1) / 2. For n even, n/2 is whole.
inline std::uint32_t ramp_sum(std::uint64_t words) {
    const std::uint64_t half = words % 2 == 0 ? (words / 2) * (words - 1) : words * ((words - 1) / 2);
    return static_cast<std::uint32_t>(half) * ramp_step;
}

static __global__ void fill_ramp(std::uint32_t* words, std::size_t count) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count; i += stride)
        words[i] = static_cast<std::uint32_t>(i) * ramp_step;
}

/// Leaves each warp's sum in a place of its own: a total shared by all would be waited for. Every thread calls it.
__device__ inline void leave_sum(std::uint32_t sum, std::uint32_t* partial) {
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, lane);
    if (threadIdx.x % 32 == 0) partial[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = sum;
}

__device__ inline std::uint32_t sum_of(uint4 value) {
    return value.x + value.y + value.z + value.w;
}

/// The sums that warps left, added up on the host.
inline std::uint32_t total_of(const std::uint32_t* partial, std::size_t warps) {
    std::vector<std::uint32_t> sums(warps);
    check(cudaMemcpy(sums.data(), partial, warps * sizeof(std::uint32_t), cudaMemcpyDeviceToHost), "copying sums");
    std::uint32_t total = 0;
    for (const std::uint32_t sum : sums) total += sum;
    return total;
}

/// 16 bytes that go by the L1: what streams once must not push out what others keep there.
__device__ inline uint4 load_streaming(const uint4* address) {
    uint4 value;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address));
    return value;
}

/// 16 bytes from the L2, never from the L1.
__device__ inline uint4 load_from_l2(const uint4* address) {
    uint4 value;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address));
    return value;
}

}  // namespace roofline::probe
