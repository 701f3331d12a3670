// Weights as product_panels.cuh multiplies them. Those that are in the activations' format are read from shared memory
// by the tensor cores. (Not by way of registers: ptxas lets loads fill the very registers that are multiplied, also
// while they are.) Of others a lane needs, of each 32 bytes of a line of activations, neighbours 2 c and 2 c + 1 of
// eight and of the next eight (c: its corner, one of four), so it picks out two at a time. `line_bytes`: of a row of
// weights beside 128 bytes of a row of activations.
#pragma once

#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/warpgroup.cuh"

namespace roofline::cuda::kernels {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ inline std::uint32_t shared_half_word(std::uint32_t from) {
    std::uint16_t value;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(from));
    return value;
}
__device__ inline std::uint32_t shared_byte(std::uint32_t from) {
    std::uint32_t value;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(value) : "r"(from));
    return value;
}

#endif

struct PanelBf16 {
    static constexpr bool in_place = true;  // in the activations' format
    static constexpr int line_bytes = 128;
    static constexpr int x_bytes = 2;  // of an activation
    static constexpr bool scaled = false;
    static constexpr bool grouped = false;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    template <int Sums>
    __device__ static void multiply(float (&sums)[Sums], std::uint64_t a, std::uint64_t b, bool more) {
        warpgroup_bf16(sums, a, b, more);
    }
#endif
};

/// Beside activations in fp8.
struct PanelFp8Both {
    static constexpr bool in_place = true;
    static constexpr int line_bytes = 128;
    static constexpr int x_bytes = 1;
    static constexpr bool scaled = true;
    static constexpr bool grouped = false;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    template <int Sums>
    __device__ static void multiply(float (&sums)[Sums], std::uint64_t a, std::uint64_t b, bool more) {
        warpgroup_e4m3(sums, a, b, more);
    }
#endif
};

/// Bytes become bf16. `Unpack` does so with four at a time, of which the first and third are neighbours.
template <class Unpack>
struct PanelBytes {
    static constexpr bool in_place = false;
    static constexpr int line_bytes = 64;
    static constexpr bool grouped = false;
    static constexpr int x_bytes = 2;
    static constexpr bool scaled = true;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __device__ static void read(std::uint32_t row, int step, int corner, std::uint32_t (&raw)[2]) {
        raw[0] = shared_half_word(row + static_cast<std::uint32_t>(step * 16 + corner * 2));
        raw[1] = shared_half_word(row + static_cast<std::uint32_t>(step * 16 + corner * 2 + 8));
    }
    __device__ static void operands(const std::uint32_t (&raw)[2], std::uint32_t& low, std::uint32_t& high) {
        Unpack::unpack(__byte_perm(raw[0], raw[1], 0x5140), low, high);
    }
    template <int Sums>
    __device__ static void multiply(float (&sums)[Sums], const std::uint32_t (&a)[4], std::uint64_t b, bool more) {
        warpgroup_bf16(sums, a, b, more);
    }
#endif
};

/// Nibbles become bf16, times the scale of their group: that rounds them (by 0.1% root mean square), because sums of
/// groups would need as many registers again.
struct PanelInt4 {
    static constexpr bool in_place = false;
    static constexpr int line_bytes = 32;
    static constexpr bool grouped = true;
    static constexpr int x_bytes = 2;
    static constexpr bool scaled = false;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __device__ static void read(std::uint32_t row, int step, int corner, std::uint32_t (&raw)[2]) {
        raw[0] = shared_byte(row + static_cast<std::uint32_t>(step * 8 + corner));
        raw[1] = shared_byte(row + static_cast<std::uint32_t>(step * 8 + corner + 4));
    }
    __device__ static void operands(const std::uint32_t (&raw)[2], std::uint32_t& low, std::uint32_t& high) {
        const std::uint32_t four = raw[0] | raw[1] << 8;
        const std::uint32_t apart = four | four << 12;  // the second of each two 16 bits above the first
        low = subtract_bf16((apart & 0x000F000Fu) | 0x43004300u, 0x43084308u);
        high = subtract_bf16(((apart >> 8) & 0x000F000Fu) | 0x43004300u, 0x43084308u);
    }
    template <int Sums>
    __device__ static void multiply(float (&sums)[Sums], const std::uint32_t (&a)[4], std::uint64_t b, bool more) {
        warpgroup_bf16(sums, a, b, more);
    }
#endif
};

}  // namespace roofline::cuda::kernels
