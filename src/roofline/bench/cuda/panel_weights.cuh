// Weights as product_panels.cuh multiplies them. Those that are in the activations' format are read from shared memory
// by the tensor cores. (Not by way of registers: ptxas lets loads fill the very registers that are multiplied, also
// while they are.) Of others a lane needs, of each 32 bytes of a line of activations, neighbours 2 c and 2 c + 1 of
// eight and of the next eight (c: its corner, one of four), so it picks out two at a time. `line_bytes`: of a row of
// weights beside 128 bytes of a row of activations. `scaled_lines`: the sums of each line have scales of their own.
#pragma once

#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/eights.cuh"
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
__device__ inline float2 shared_pair(std::uint32_t from) {
    float2 value;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(value.x), "=f"(value.y) : "r"(from));
    return value;
}

#endif

/// Scales of the values of a stage, for two rows of weights, where each row has one: as a pair of bf16. (Not read of
/// weights whose scales are those of whole rows, or that have none.)
struct OnePair {
    std::uint32_t pairs[2] = {};
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __device__ std::uint32_t of(int half, int /*line*/, int /*step*/) const { return pairs[half]; }
#endif
};

struct PanelBf16 {
    static constexpr bool in_place = true;  // in the activations' format
    static constexpr int line_bytes = 128;
    static constexpr int x_bytes = 2;  // of an activation
    static constexpr bool scaled = false;
    static constexpr bool grouped = false;
    static constexpr bool scaled_lines = false;
    using Sum = float;
    using Scales = OnePair;
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
    static constexpr bool scaled_lines = false;
    using Sum = float;
    using Scales = OnePair;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    template <int Sums>
    __device__ static void multiply(float (&sums)[Sums], std::uint64_t a, std::uint64_t b, bool more) {
        warpgroup_e4m3(sums, a, b, more);
    }
#endif
};

/// Whole numbers beside activations that are such too.
struct PanelInt8Both : PanelFp8Both {
    using Sum = int;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    template <int Sums>
    __device__ static void multiply(int (&sums)[Sums], std::uint64_t a, std::uint64_t b, bool more) {
        warpgroup_int8(sums, a, b, more);
    }
#endif
};

/// e4m3 under scales of 128 x 128, beside activations under scales of 128 each: a line has one of both.
struct PanelFp8BlockBoth : PanelFp8Both {
    static constexpr bool scaled = false;
    static constexpr bool scaled_lines = true;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    /// Of two rows of weights, in a line of this number.
    template <class Part>
    __device__ static float2 line_scales(const Part& product, const int (&rows)[2], int line) {
        const int blocks = blocks_of_row(product.k);
        const auto* scales = static_cast<const float*>(product.scales) + min(line, blocks - 1);
        return {__ldg(scales + rows[0] / 128 * blocks), __ldg(scales + rows[1] / 128 * blocks)};
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
    static constexpr bool scaled_lines = false;
    using Sum = float;
    using Scales = OnePair;
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

/// e4m3 under scales of 128 x 128: becomes bf16 times its scale, which rounds it as below.
struct PanelFp8Block : PanelBytes<Fp8Block> {
    static constexpr bool grouped = true;
    static constexpr bool scaled = false;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    /// Of the values from the `first` on, of two rows of weights.
    template <class Part>
    __device__ static void read_scales(const Part& product, const int (&rows)[2], int first, Scales& scales) {
        const int blocks = blocks_of_row(product.k);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float scale = __ldg(static_cast<const float*>(product.scales) + rows[half] / 128 * blocks +
                                      min(first / 128, blocks - 1));
            scales.pairs[half] = pack(scale, scale);
        }
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
    static constexpr bool scaled_lines = false;
    using Sum = float;
    using Scales = OnePair;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __device__ static void read(std::uint32_t row, int step, int corner, std::uint32_t (&raw)[2]) {
        raw[0] = shared_byte(row + static_cast<std::uint32_t>(step * 8 + corner));
        raw[1] = shared_byte(row + static_cast<std::uint32_t>(step * 8 + corner + 4));
    }
    template <class Part>
    __device__ static void read_scales(const Part& product, const int (&rows)[2], int first, Scales& scales) {
        const int groups = product.k / 128;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const std::uint32_t bits = __ldg(static_cast<const unsigned short*>(product.scales) +
                                             static_cast<std::size_t>(rows[half]) * static_cast<std::size_t>(groups) +
                                             static_cast<std::size_t>(min(first / 128, groups - 1)));
            scales.pairs[half] = bits * 0x10001u;
        }
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

/// e2m1, which becomes bf16 times the scale of its 32 or 16 values: both together fit a bf16. The bits of a value moved
/// into place are 2^-126 times it; its scale comes with most of what is missing, and `Kind::factor` with the rest.
template <class Kind>
struct PanelFp4 : PanelInt4 {
    static constexpr int line_values = 64;
    static constexpr int lines = 2;  // of a stage
    struct Scales {
        std::uint32_t bits[lines][2] = {};  // of a line's groups
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        __device__ std::uint32_t of(int half, int line, int step) const { return Kind::pair(bits[line][half], step); }
#endif
    };
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __device__ static void operands(const std::uint32_t (&raw)[2], std::uint32_t& low, std::uint32_t& high) {
        const std::uint32_t four = raw[0] | raw[1] << 8;
        const std::uint32_t apart = four | four << 12;
        low = ((apart << 12) & 0x80008000u) | ((apart << 6) & 0x01C001C0u);
        high = ((apart << 4) & 0x80008000u) | ((apart >> 2) & 0x01C001C0u);
    }
    template <class Part>
    __device__ static void read_scales(const Part& product, const int (&rows)[2], int first, Scales& scales) {
        using Bits = typename Kind::Bits;
        const int all = product.k / line_values;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const Bits* row = static_cast<const Bits*>(product.scales) +
                              static_cast<std::size_t>(rows[half]) * static_cast<std::size_t>(all);
#pragma unroll
            for (int line = 0; line < lines; ++line) {
                scales.bits[line][half] = __ldg(row + min(first / line_values + line, all - 1));
            }
        }
    }
    /// What is missing of the sums.
    template <class Part>
    __device__ static float factor(const Part& product) {
        return Kind::factor * (product.whole_scale != nullptr ? *product.whole_scale : 1.0f);
    }
#endif
};

/// A power of two for 32 values; from 2^65 on it is taken for less.
struct Mxfp4 {
    using Bits = unsigned short;                              // of a line's two scales
    static constexpr float factor = 18446744073709551616.0f;  // 2^64
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __device__ static std::uint32_t pair(std::uint32_t bits, int step) {
        const std::uint32_t scale = step < 2 ? bits & 255u : bits >> 8;
        return min(scale + 126 - 64, 254u) * 0x00800080u;
    }
#endif
};

/// An e4m3 for 16 values.
struct Nvfp4 {
    using Bits = unsigned int;
    static constexpr float factor = 512.0f;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __device__ static std::uint32_t pair(std::uint32_t bits, int step) {
        const std::uint32_t small = (bits >> (8 * step) & 127u) * 0x00100010u;  // 2^-120 times it
        return multiply_bf16(multiply_bf16(small, 0x7B807B80u), 0x7A007A00u);   // by 2^120 and 2^117
    }
#endif
};

}  // namespace roofline::cuda::kernels
