// How a block of product_digits.cuh divides its shared memory.
#pragma once

#include <cstdint>

#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/digit_weights.cuh"
#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda::kernels {

/// How a block's shared memory is divided: ring, scales, barriers, activations, warps' sums, units. The ring takes what
/// the rest leaves. Columns: tiles of 8. Pieces: of a row, that are rows of their own to the tensor cores.
template <class Weights, int Columns, int Warps, int Segment, int Blocks, int Pieces>
struct DigitShape {
    static constexpr int bytes = (228 / Blocks - 1) * 1024;
    static constexpr int rows = 16 / Pieces;
    static constexpr int activations = 8 * Columns / Weights::columns / Weights::together;
    static constexpr int chunk_values = 4 * Weights::values;
    static constexpr int loads = Weights::words / 4;  // of activations that meet 16 bytes of weights
    static constexpr int segment_chunks = Segment / 64;
    static constexpr int share = segment_chunks / Warps;  // chunks of a segment that a warp takes
    static_assert(share > 0 && segment_chunks % Warps == 0 && 16 % share == 0);
    using Rows = SegmentRows<rows, Segment>;
    static constexpr int stage_bytes = Rows::bytes;
    static constexpr int most_stages = 8;
    static constexpr int part_sets = Columns == 1 && Warps <= 8 ? 4 : 2;  // tiles whose sums may wait to be added up
    static constexpr int barrier_bytes = (most_stages + part_sets) * 16 + 16;
    static constexpr int part_pitch = rows + 1;

    __host__ __device__ static constexpr int part_floats(int m) { return Warps * m * part_pitch; }
    __host__ __device__ static constexpr int columns(int m) { return Weights::columns * m; }
    __host__ __device__ static constexpr int segments(int k) {
        return (k / chunk_values + segment_chunks - 1) / segment_chunks;
    }
    __host__ __device__ static constexpr int chunk_bytes(int m) { return loads * columns(m) * 64; }
    __host__ __device__ static constexpr int digit_bytes(int m, int k) { return k / chunk_values * chunk_bytes(m); }
    __host__ __device__ static constexpr int unit_bytes(int m, int k) { return k / chunk_values * m * 4; }
    /// Scales of a tile of rows, which lie together and are fetched by one copy; and the tiles whose scales there must
    /// be room for: a slot is taken again when all segments that the ring has not yet given back are of later tiles.
    __host__ __device__ static constexpr int scale_bytes(int k) { return scale_rows_bytes<Weights>(rows, k); }
    __host__ __device__ static constexpr int scale_slots(int some_stages, int k) {
        return (some_stages + 2 * segments(k) - 2) / segments(k);
    }
    __host__ __device__ static constexpr int stages(int m, int k) {
        const int left = bytes - barrier_bytes - 4 * part_sets * part_floats(m) - digit_bytes(m, k) - unit_bytes(m, k);
        int most = left / stage_bytes;
        most = most < most_stages ? most : most_stages;
        while (most > 0 && most * stage_bytes + scale_slots(most, k) * scale_bytes(k) > left) --most;
        return most;
    }
    /// Scales are copied 16 bytes at a time: those of a row, or, where none is read together with its neighbours, of a
    /// whole tile. Where many activations leave room for few segments, others are faster.
    static bool takes(const Product& product) {
        const int chunks = product.k / chunk_values;
        const bool one_by_one = Weights::scaling == Scaling::pieces || Weights::scaling == Scaling::operands;
        const bool in_sixteens = scale_row_bytes<Weights>(product.k) % 16 == 0 || (one_by_one && product.n % 16 == 0);
        return product.k % chunk_values == 0 && in_sixteens &&
               (Pieces == 1 || (chunks % Pieces == 0 && chunks >= segment_chunks)) &&
               digit_bytes(product.m, product.k) < bytes && Blocks * stages(product.m, product.k) >= 3;
    }
};

#if __CUDA_ARCH__ >= 900

/// Where a block's shared memory has what: addresses of the ring and of barriers, the rest by pointer.
template <class Shape>
struct DigitRoom {
    int stages;
    int slots;  // of scales
    int slot_bytes;
    std::uint32_t ring;
    std::uint8_t* scales;
    std::uint32_t full;  // barriers of the stages, from here on of the sets of sums
    std::uint32_t empty;
    std::uint32_t summed;
    std::uint32_t added;
    std::uint32_t loaded;  // activations have come
    std::uint8_t* digits;
    float* parts;
    float* units;

    __device__ DigitRoom(const Product& product, std::uint8_t* shared) {
        stages = Shape::stages(product.m, product.k);
        slots = Shape::scale_slots(stages, product.k);
        slot_bytes = Shape::scale_bytes(product.k);
        ring = shared_address(shared);
        scales = shared + stages * Shape::stage_bytes;
        full = shared_address(scales) + static_cast<std::uint32_t>(slots * slot_bytes);
        empty = full + Shape::most_stages * 8;
        summed = empty + Shape::most_stages * 8;
        added = summed + Shape::part_sets * 8;
        loaded = added + Shape::part_sets * 8;
        digits = scales + slots * slot_bytes + Shape::barrier_bytes;
        parts = reinterpret_cast<float*>(digits + Shape::digit_bytes(product.m, product.k));
        units = parts + Shape::part_sets * Shape::part_floats(product.m);
    }
};

#endif

}  // namespace roofline::cuda::kernels
