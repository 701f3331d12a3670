// Tiles of bf16 in shared memory and how tensor cores take them. Between rows there are 16 bytes, so that eight
// neighbouring ones meet in no bank: pieces of 16 bytes in a row are then odd in number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace roofline::cuda::kernels {

__host__ __device__ constexpr int tile_row(int numbers) {
    return numbers * 2 + 16;
}

/// Copies 16 bytes into shared memory meanwhile, or writes zeros there.
__device__ inline void copy_or_clear(std::uint32_t to, const void* from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

/// What this thread has asked for up to now comes together.
__device__ inline void copies_end() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/// All that this thread asked for has come, but for the last `Open` of what comes together.
template <int Open = 0>
__device__ void copies_come() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Open) : "memory");
}

/// `Rows` rows of `Numbers`, with `row` numbers from one to the next where they are; from `there` on zeros.
template <int Rows, int Numbers, int Threads>
__device__ void copy_tile(std::uint32_t to, const __nv_bfloat16* from, std::size_t row, int there) {
    constexpr int pieces = Numbers / 8;
#pragma unroll
    for (int i = 0; i < (Rows * pieces + Threads - 1) / Threads; ++i) {
        const int index = static_cast<int>(threadIdx.x) % Threads + i * Threads;
        const int own = index / pieces;
        const int piece = index % pieces;
        if (Rows * pieces % Threads != 0 && index >= Rows * pieces) continue;
        copy_or_clear(to + static_cast<std::uint32_t>(own * tile_row(Numbers) + piece * 16),
                      from + static_cast<std::size_t>(min(own, there - 1)) * row + piece * 8, own < there);
    }
}

/// `Pieces` of 16 bytes, one after the other.
template <int Pieces, int Threads>
__device__ void copy_pieces(std::uint32_t to, const void* from) {
#pragma unroll
    for (int i = 0; i < (Pieces + Threads - 1) / Threads; ++i) {
        const int index = static_cast<int>(threadIdx.x) % Threads + i * Threads;
        if (Pieces % Threads != 0 && index >= Pieces) continue;
        copy_or_clear(to + static_cast<std::uint32_t>(index) * 16, static_cast<const uint4*>(from) + index, true);
    }
}

/// Where a lane has `take` read for 16 x 16 numbers at the beginning of a tile.
__device__ inline std::uint32_t lane_place(int row_bytes) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return static_cast<std::uint32_t>(lane % 16 * row_bytes + lane / 16 * 16);
}

/// 16 x 16 numbers as four matrices of 8 x 8: the upper and the lower on the left, then those on the right.
__device__ inline void take(std::uint32_t (&to)[4], std::uint32_t from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

/// The same, each of the four turned.
__device__ inline void take_turned(std::uint32_t (&to)[4], std::uint32_t from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

/// A block: 16 x 16 numbers as `take` leaves them, 16 bytes of each lane, which no lanes exchange and no banks delay.
/// It is an operand of m16n8k16, the left one, or, row by column, the right one of two products (matrices 0 and 2, 1
/// and 3); and it is what two sums of 16 x 8 become.
constexpr int block_bytes = 512;

__device__ inline void put_block(std::uint32_t block, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                 std::uint32_t d) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(block + threadIdx.x % 32 * 16), "r"(a), "r"(b),
                 "r"(c), "r"(d)
                 : "memory");
}

__device__ inline void take_block(std::uint32_t (&to)[4], std::uint32_t block) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(block + threadIdx.x % 32 * 16)
                 : "memory");
}

__device__ inline std::uint32_t address_in_shared(const void* pointer) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline float low_of(std::uint32_t pair) {
    return __uint_as_float(pair << 16);
}
__device__ inline float high_of(std::uint32_t pair) {
    return __uint_as_float(pair & 0xFFFF0000u);
}

}  // namespace roofline::cuda::kernels
