// Rows of a cache, copied to shared memory in tiles that can be read without bank conflicts.
//
// The copy engine exchanges the 16-byte pieces of each line of 128 bytes: piece p of line l comes to lie at p ^ (l %
// 8). Lanes that read the same piece of eight lines then read from all banks. A tile begins at a multiple of 1,024
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda.h>
#include <cuda_runtime.h>

#include "roofline/bench/cuda/bulk.cuh"

namespace roofline::cuda::kernels {

/// `lines` lines of 128 bytes from `cache` on, to be copied `tile_lines` at a time.
CUtensorMap tiles_of(const void* cache, std::size_t lines, int tile_lines);

/// Entries of `width` numbers of bf16, `context` of each sequence and room for `capacity`; to be copied 64 numbers of
/// `together` entries at a time. What lies behind the last entry of a sequence comes as zeros.
struct Entries {
    const void* begin;
    int width;
    int context;
    int capacity;
    int sequences;
    int together;
};
CUtensorMap tiles_of(const Entries& entries);

/// Which row of eight a column of the tensor instruction stands for, and which piece of a line a quad of lanes takes:
/// such that eight neighbouring lanes, which read together, find eight different pieces, of keys as of values. (With
/// four lines a row, values are read in two turns.)
template <int RowBytes>
struct TileOrder {
    static constexpr int lines = RowBytes / 128;  // of a row
    static_assert(lines == 1 || lines == 2 || lines == 4);
    __host__ __device__ static constexpr int row(int column) {
        return column % 2 == 0 ? column / 2 : 4 + ((column / 2) ^ (4 / lines % 4));
    }
    __host__ __device__ static constexpr int piece(int quad) { return lines == 1 ? quad % 2 * 4 + quad / 2 : quad; }
    /// Bytes from the tile's beginning to a piece of a row's first line. In line l it lies at this ^ 16 l, + 128 l.
    __host__ __device__ static constexpr int place(int row, int piece) {
        return row * RowBytes + (piece ^ (row * lines % 8)) * 16;
    }
};

#if __CUDA_ARCH__ >= 900

/// Copies the tile that begins with a line; of lines behind the last one come zeros, which count as bytes too. It
/// leaves the L2 before other lines do (`policy`: read_once_policy), because nobody reads it again soon.
__device__ inline void tile_copy(std::uint32_t to, const CUtensorMap& tiles, int line, std::uint32_t barrier,
                                 std::uint64_t policy) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
        "[%1, {%2, %3}], [%4], %5;" ::"r"(to),
        "l"(&tiles), "r"(0), "r"(line), "r"(barrier), "l"(policy)
        : "memory");
}

/// Copies 64 numbers, from `number` on, of entries of a sequence.
__device__ inline void entry_copy(std::uint32_t to, const CUtensorMap& tiles, int number, int entry, int sequence,
                                  std::uint32_t barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%2, %3, %4}], [%5];" ::"r"(to),
        "l"(&tiles), "r"(number), "r"(entry), "r"(sequence), "r"(barrier)
        : "memory");
}

/// Of a row in a tile the 16 bytes that are one of four lanes', 64 bytes of the row after 64. `first`: the address of
/// the first such piece; `after`: bytes from there to the same piece of another row, a multiple of eight rows.
__device__ inline uint4 row_piece(std::uint32_t first, int load, int after) {
    const int line = load / 2;
    return shared_read((first ^ static_cast<std::uint32_t>(load % 2 * 64 ^ line * 16)) +
                       static_cast<std::uint32_t>(after + line * 128));
}

/// Brings the tile into the L2 alone, and tells nobody when it has come.
__device__ inline void tile_prefetch(const CUtensorMap& tiles, int line) {
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(&tiles), "r"(0), "r"(line)
                 : "memory");
}

#endif

}  // namespace roofline::cuda::kernels
