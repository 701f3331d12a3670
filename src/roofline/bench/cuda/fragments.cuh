// How 16 bytes of a row become operands of a tensor-core instruction, for each number format.
//
// All our memory-bound kernels read rows (of weights, keys, values) straight into registers. In the operands of mma
// m16n8k16 a lane holds the row lane/4 and, of each 16 values of the inner dimension, four. Which four does not matter
// as long as both operands agree: so a lane takes 16 consecutive bytes of its row, the four lanes of a quad take 64,
// and no value ever passes through shared memory. `words` pairs of values come out of 16 bytes; `arrange` puts the bf16
// values of the other operand into the same order.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "roofline/bench/cuda/formats.hpp"

namespace roofline::cuda::kernels {

/// 16 bytes that are read once: not kept in L1, fetched into L2 in lines of 256 bytes.
__device__ inline uint4 read_once(const void* from) {
    uint4 value;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(from));
    return value;
}

__device__ inline std::uint32_t word(const uint4& four, int index) {
    return index == 0 ? four.x : index == 1 ? four.y : index == 2 ? four.z : four.w;
}

/// The kernel before this one has finished and its results are visible (nothing happens where launches do not overlap).
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// The next kernel may be put on the multiprocessors as they empty.
__device__ inline void let_next_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// sum += a b for a 16 x 16 and b 16 x 8 in bf16.
__device__ inline void mma_bf16(float (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,
                                std::uint32_t b0, std::uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// sum += a b for a 16 x 16 and b 16 x 8 in fp16.
__device__ inline void mma_fp16(float (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,
                                std::uint32_t b0, std::uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// Two e4m3, the bytes of a half of a word, as a pair of fp16 (Ada, Hopper and later).
__device__ inline std::uint32_t fp16_pair(std::uint32_t bytes, int half) {
    // Halves by name, not by a shift: the conversion takes either half of a register.
    std::uint32_t pair = 0;
#if __CUDA_ARCH__ >= 890
    if (half == 0)
        asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.rn.f16x2.e4m3x2 %0, low;\n}"
            : "=r"(pair)
            : "r"(bytes));
    else
        asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.rn.f16x2.e4m3x2 %0, high;\n}"
            : "=r"(pair)
            : "r"(bytes));
#endif
    return pair;
}

/// Turns a matrix of 8 x 8 numbers of 16 bits, of which a lane has two neighbours in the row of its quad.
__device__ inline std::uint32_t turned(std::uint32_t pair) {
    std::uint32_t other;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(other) : "r"(pair));
    return other;
}

/// sum += a b for a 16 x 8 and b 8 x 8 in tf32.
__device__ inline void mma_tf32(float (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,
                                std::uint32_t b0, std::uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// sum += a b for a 16 x 32 and b 32 x 8 in e4m3.
__device__ inline void mma_fp8(float (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,
                               std::uint32_t b0, std::uint32_t b1) {
#if __CUDA_ARCH__ >= 890
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}

__device__ inline std::uint32_t halves_low(std::uint32_t a, std::uint32_t b) {
    return __byte_perm(a, b, 0x5410);
}
__device__ inline std::uint32_t halves_high(std::uint32_t a, std::uint32_t b) {
    return __byte_perm(a, b, 0x7632);
}

/// a - b in both halves.
__device__ inline std::uint32_t subtract_bf16(std::uint32_t a, std::uint32_t b) {
    std::uint32_t difference;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(difference) : "r"(b), "r"(0xBF80BF80u), "r"(a));
    return difference;
}

/// a b in both halves.
__device__ inline std::uint32_t multiply_bf16(std::uint32_t a, std::uint32_t b) {
    const __nv_bfloat162 product =
        __hmul2(reinterpret_cast<const __nv_bfloat162&>(a), reinterpret_cast<const __nv_bfloat162&>(b));
    return reinterpret_cast<const std::uint32_t&>(product);
}

/// The same of fp16.
__device__ inline std::uint32_t multiply_fp16(std::uint32_t a, std::uint32_t b) {
    const __half2 product = __hmul2(reinterpret_cast<const __half2&>(a), reinterpret_cast<const __half2&>(b));
    return reinterpret_cast<const std::uint32_t&>(product);
}

struct Bf16 {
    static constexpr int values = 8;              // in 16 bytes
    static constexpr bool keys_are_rows = false;  // of attention's scores
    static constexpr int words = 4;
    static constexpr int operand_loads = 1;  // 16-byte loads of the other operand for as many values
    static constexpr bool grouped = false;

    __device__ static void unpack(const uint4& packed, std::uint32_t (&pairs)[words]) {
        pairs[0] = packed.x, pairs[1] = packed.y, pairs[2] = packed.z, pairs[3] = packed.w;
    }
    __device__ static void arrange(const uint4 (&x)[operand_loads], std::uint32_t (&pairs)[words]) {
        unpack(x[0], pairs);
    }
    /// Which of the 16 bytes' values is in a half of a pair.
    __device__ static constexpr int element(int pair, int half) { return 2 * pair + half; }
    __device__ static void multiply(float (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                    std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
        mma_bf16(sum, a0, a1, a2, a3, b0, b1);
    }
};

/// Bytes in the order 0, 2, 1, 3 of each word: the two of a pair are then where one mask finds them.
struct Bytes {
    static constexpr int values = 16;
    static constexpr bool keys_are_rows = false;  // of attention's scores
    static constexpr int words = 8;
    static constexpr int operand_loads = 2;
    static constexpr bool grouped = false;

    __device__ static void arrange(const uint4 (&x)[operand_loads], std::uint32_t (&pairs)[words]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const std::uint32_t first = word(x[i / 2], 2 * (i % 2));
            const std::uint32_t second = word(x[i / 2], 2 * (i % 2) + 1);
            pairs[2 * i] = halves_low(first, second);
            pairs[2 * i + 1] = halves_high(first, second);
        }
    }
    __device__ static constexpr int element(int pair, int half) { return 4 * (pair / 2) + pair % 2 + 2 * half; }
    __device__ static void multiply(float (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                    std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
        mma_bf16(sum, a0, a1, a2, a3, b0, b1);
    }
};

/// e4m3 to bf16: the exponent and mantissa bits moved into place are the value times 2^-120, subnormals too; the
/// product by 2^120 is exact. NaN (0x7f, 0xff) is read as 480: quantized weights and caches hold none.
struct Fp8 : Bytes {
    __device__ static void unpack(const uint4& packed, std::uint32_t (&pairs)[words]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) unpack(word(packed, i), pairs[2 * i], pairs[2 * i + 1]);
    }
    /// Bytes 0 and 2, 1 and 3.
    __device__ static void unpack(std::uint32_t four, std::uint32_t& even, std::uint32_t& odd) {
        constexpr std::uint32_t power = 0x7B807B80u;  // 2^120 twice
        even = multiply_bf16(((four << 8) & 0x80008000u) | ((four << 4) & 0x07F007F0u), power);
        odd = multiply_bf16((four & 0x80008000u) | ((four >> 4) & 0x07F007F0u), power);
    }
};

/// The same under scales of 128 x 128: two chunks of a row share one.
struct Fp8Block : Fp8 {
    static constexpr bool grouped = true;
    static constexpr std::uint32_t zeros = 0;

    __device__ static float scale(const void* scales, int row, int chunk, int chunks) {
        return static_cast<const float*>(scales)[row / 128 * blocks_of_row(64 * chunks) + chunk / 2];
    }
};

/// Two's complement to bf16: 128 + the low seven bits, less 128 + 128 times the sign bit; every step is exact.
struct Int8 : Bytes {
    __device__ static void unpack(const uint4& packed, std::uint32_t (&pairs)[words]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) unpack(word(packed, i), pairs[2 * i], pairs[2 * i + 1]);
    }
    /// Bytes 0 and 2, 1 and 3.
    __device__ static void unpack(std::uint32_t four, std::uint32_t& even, std::uint32_t& odd) {
        even = signed_pair(four);
        odd = signed_pair(four >> 8);
    }

  private:
    __device__ static std::uint32_t signed_pair(std::uint32_t bytes) {
        return subtract_bf16((bytes & 0x007F007Fu) | 0x43004300u, (bytes & 0x00800080u) | 0x43004300u);
    }
};

/// Nibbles to bf16: 128 + nibble, less 136. Pairs are nibbles 0 and 4, 1 and 5, 2 and 6, 3 and 7 of a word.
struct Int4 {
    static constexpr int values = 32;
    static constexpr int words = 16;
    static constexpr int operand_loads = 4;
    static constexpr bool grouped = true;  // the quad's 64 bytes are one group of 128 values under one scale
    static constexpr std::uint32_t zeros = 0x88888888u;  // eight values that are zero

    /// Of a row's chunk of 64 bytes.
    __device__ static float scale(const void* scales, int row, int chunk, int chunks) {
        return __bfloat162float(
            static_cast<const __nv_bfloat16*>(scales)[static_cast<std::size_t>(row) * static_cast<std::size_t>(chunks) +
                                                      static_cast<std::size_t>(chunk)]);
    }

    __device__ static void unpack(const uint4& packed, std::uint32_t (&pairs)[words]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const std::uint32_t eight = word(packed, i);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                pairs[4 * i + j] = subtract_bf16(((eight >> (4 * j)) & 0x000F000Fu) | 0x43004300u, 0x43084308u);
            }
        }
    }
    __device__ static void arrange(const uint4 (&x)[operand_loads], std::uint32_t (&pairs)[words]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            pairs[4 * i] = halves_low(x[i].x, x[i].z);
            pairs[4 * i + 1] = halves_high(x[i].x, x[i].z);
            pairs[4 * i + 2] = halves_low(x[i].y, x[i].w);
            pairs[4 * i + 3] = halves_high(x[i].y, x[i].w);
        }
    }
    __device__ static void multiply(float (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                    std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
        mma_bf16(sum, a0, a1, a2, a3, b0, b1);
    }
};

/// Weights and activations both e4m3: the bytes are the operands.
struct Fp8Both {
    static constexpr int values = 16;
    static constexpr int words = 4;
    static constexpr int operand_loads = 1;
    static constexpr bool grouped = false;

    __device__ static void unpack(const uint4& packed, std::uint32_t (&quads)[words]) {
        quads[0] = packed.x, quads[1] = packed.y, quads[2] = packed.z, quads[3] = packed.w;
    }
    __device__ static void arrange(const uint4 (&x)[operand_loads], std::uint32_t (&quads)[words]) {
        unpack(x[0], quads);
    }
    __device__ static void multiply(float (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                    std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
        mma_fp8(sum, a0, a1, a2, a3, b0, b1);
    }
};

}  // namespace roofline::cuda::kernels
