// The inverse T of 1 + A, where A has numbers below the diagonal alone, 64 x 64 in shared memory. Blocks of 16 x 16 on
// the diagonal by substitution; below them, diagonal by diagonal, T_ij = -T_ii (sum over k from j to i - 1 of A_ik
// T_kj) on tensor cores. (The product of 1 + A^2, 1 + A^4, ... is as quick and no good: where keys are alike, powers of
// A are larger than T by many orders of magnitude.) Products are in tf32, with 11 bits of each number. T takes the
// place of A on the diagonal, and the free one above it: its blocks are across from A's, none of them turned.
#pragma once

#include <cuda_runtime.h>

#include "roofline/bench/cuda/fragments.cuh"

namespace roofline::cuda::kernels {

constexpr int square_row = 72;  // numbers from one row of a matrix to the next: pairs of four rows meet in no bank
constexpr int square_bytes = 64 * square_row * 4;

__device__ inline std::uint32_t as_tf32(float x) {
    std::uint32_t rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
    return rounded;
}

/// sums += a b, 16 x 16 each, by a warp.
__device__ inline void multiply_blocks(float (&sums)[2][4], const float* a, const float* b) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    a += lane / 4 * square_row + lane % 4;
    b += lane % 4 * square_row + lane / 4;
#pragma unroll
    for (int step = 0; step < 2; ++step) {
        std::uint32_t left[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) left[i] = as_tf32(a[i % 2 * 8 * square_row + step * 8 + i / 2 * 4]);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const float* own = b + step * 8 * square_row + j * 8;
            mma_tf32(sums[j], left[0], left[1], left[2], left[3], as_tf32(own[0]), as_tf32(own[4 * square_row]));
        }
    }
}

__device__ inline void put_square(float* to, const float (&sums)[2][4], float sign) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    to += lane / 4 * square_row + 2 * (lane % 4);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        *reinterpret_cast<float2*>(to + 8 * j) = {sign * sums[j][0], sign * sums[j][1]};
        *reinterpret_cast<float2*>(to + 8 * square_row + 8 * j) = {sign * sums[j][2], sign * sums[j][3]};
    }
}

/// Where block i, j of the inverse is: on the diagonal in its own place, below it in the one across.
__device__ inline int block_place(int i, int j) {
    return 16 * (i * square_row + j);
}
__device__ inline int inverse_place(int i, int j) {
    return block_place(j, i);
}

/// By the first four warps of a block, which all meet at the end. Blocks below the diagonal stay as they are.
__device__ inline void invert(float* square) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (warp < 4) {
        float* const own = square + block_place(warp, warp);
        const int column = lane % 16;
        float x[16];
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            x[i] = i == column ? 1.0f : 0.0f;
#pragma unroll
            for (int j = 0; j < i; j += 4) {
                const float4 four = *reinterpret_cast<const float4*>(own + i * square_row + j);
                x[i] -= four.x * x[j];
                if (j + 1 < i) x[i] -= four.y * x[j + 1];
                if (j + 2 < i) x[i] -= four.z * x[j + 2];
                if (j + 3 < i) x[i] -= four.w * x[j + 3];
            }
        }
        __syncwarp();
        if (lane < 16) {
#pragma unroll
            for (int i = 0; i < 16; ++i) own[i * square_row + column] = x[i];
        }
    }
    __syncthreads();
    for (int distance = 1; distance < 4; ++distance) {
        if (warp >= distance && warp < 4) {
            const int column = warp - distance;
            float* const own = square + inverse_place(warp, column);
            float sums[2][4] = {};
            for (int i = column; i < warp; ++i) {
                multiply_blocks(sums, square + block_place(warp, i), square + inverse_place(i, column));
            }
            put_square(own, sums, 1.0f);
            __syncwarp();
            float products[2][4] = {};
            multiply_blocks(products, square + inverse_place(warp, warp), own);
            __syncwarp();
            put_square(own, products, -1.0f);
        }
        __syncthreads();
    }
}

}  // namespace roofline::cuda::kernels
