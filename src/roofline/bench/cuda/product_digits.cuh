// The product of product.cuh for weights of eight or four bits and few rows of activations, on Hopper: activations become
// pairs of eight-bit digits (digits.hpp), so that a byte of weights is an operand of the tensor cores as it lies in memory,
// and eight nibbles are by three operations. A kernel that unpacks to bf16 spends 11 on them, and then waits for itself
// instead of for memory.
//
// One or two blocks a multiprocessor stay for the whole product. One of a block's warps copies segments of 16 rows of weights (and
// their scales) into a ring; the others cut the activations into digits while the first segments are on their way, then
// share each segment's inner dimension: a quad of lanes takes 64 bytes of a row (a chunk) at a time. Digits share a unit
// within a chunk, where sums are whole numbers; across chunks they are added in fp32.
#pragma once

#include <algorithm>
#include <cuda_bf16.h>

#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/digits.cuh"
#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda::kernels {

/// sum += a b for a 16 x 32 and b 32 x 8 in int8.
__device__ inline void mma_int8(int (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,
                                std::uint32_t b0, std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// Sums of whole numbers begin at the bits of 1.5 x 2^23: as a float, that plus the sum, which stays below 2^22
/// (64 bytes or 128 nibbles, each times a digit: 2^21 at most).
struct IntegerSums {
    using Sum = int;
    using Cut = IntegerDigits;
    static constexpr Sum start = 0x4B400000;
    __device__ static float value(Sum sum) { return __int_as_float(sum) - 12582912.0f; }
    __device__ static void multiply(Sum (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                    std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
        mma_int8(sum, a0, a1, a2, a3, b0, b1);
    }
};

/// Bytes are operands as they are.
struct WholeBytes : InOrder {
    static constexpr int values = 16;  // in 16 bytes
    static constexpr bool grouped = false;
    static constexpr float factor = 1.0f;  // what an operand must be multiplied by to be the weight
    __device__ static void operands(const uint4& packed, std::uint32_t (&words)[4]) {
        words[0] = packed.x, words[1] = packed.y, words[2] = packed.z, words[3] = packed.w;
    }
};

struct Int8Digits : WholeBytes, IntegerSums {};

/// Sums run over 64 products: tensor cores that multiply e4m3 keep about 14 bits of them. (Hopper's have no such
/// instruction outside of its warp groups; the compiler makes it of conversions to fp16.)
struct Fp8Digits : WholeBytes {
    using Sum = float;
    using Cut = E4m3Digits;
    static constexpr Sum start = 0.0f;
    __device__ static float value(Sum sum) { return sum; }
    __device__ static void multiply(Sum (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                    std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
        mma_fp8(sum, a0, a1, a2, a3, b0, b1);
    }
};

/// A nibble in the upper half of a byte, its upper bit turned, is 16 (nibble - 8) in two's complement. Of each eight
/// nibbles the even ones come first.
struct Int4Digits : IntegerSums {
    static constexpr int values = 32;
    static constexpr bool grouped = true;
    static constexpr float factor = 1.0f / 16.0f;
    __device__ static void operands(const uint4& packed, std::uint32_t (&words)[8]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const std::uint32_t eight = word(packed, i);
            words[2 * i] = ((eight << 4) & 0xF0F0F0F0u) ^ 0x80808080u;
            words[2 * i + 1] = (eight & 0xF0F0F0F0u) ^ 0x80808080u;
        }
    }
    __device__ static constexpr int place(int index) { return index % 2 * 4 + index / 2; }
};

/// How a block's shared memory is divided: ring, barriers, digits, warps' sums, units. The ring takes what the rest leaves.
/// Columns: tiles of 8, four rows of activations each.
template <class Weights, int Columns, int Warps, int Segment, int Blocks>
struct DigitShape {
    static constexpr int bytes = (228 / Blocks - 1) * 1024;
    static constexpr int rows = 16;
    static constexpr int activations = 4 * Columns;
    static constexpr int chunk_values = 4 * Weights::values;
    static constexpr int words = Weights::values / 4;  // of operands in 16 bytes
    static constexpr int loads = words / 4;
    static constexpr int segment_chunks = Segment / 64;
    static constexpr int share = segment_chunks / Warps;  // chunks of a segment that a warp takes
    static_assert(share > 0 && segment_chunks % Warps == 0 && 8 % share == 0);
    static constexpr int pitch = Segment + 64;  // the rows that are read together lie in banks of their own
    static constexpr int stage_bytes = rows * pitch;
    static constexpr int most_stages = 12;
    static constexpr int barrier_bytes = most_stages * 16 + 64;
    static constexpr int part_pitch = rows + 1;

    __host__ __device__ static constexpr int part_floats(int m) { return Warps * m * part_pitch; }
    __host__ __device__ static constexpr int columns(int m) { return 2 * m; }
    __host__ __device__ static constexpr int segments(int k) {
        return (k / chunk_values + segment_chunks - 1) / segment_chunks;
    }
    __host__ __device__ static constexpr int digit_bytes(int m, int k) {
        return k / chunk_values * loads * columns(m) * 64;
    }
    __host__ __device__ static constexpr int unit_bytes(int m, int k) { return k / chunk_values * columns(m) * 2; }
    /// Scales of a tile of rows, which lie together and are fetched by one copy; and the tiles whose scales there must be
    /// room for: a slot is taken again when all segments that the ring has not yet given back are of later tiles.
    __host__ __device__ static constexpr int scale_bytes(int k) {
        return Weights::grouped ? rows * (k / chunk_values) * 2 : 0;
    }
    __host__ __device__ static constexpr int scale_slots(int some_stages, int k) {
        return (some_stages + 2 * segments(k) - 2) / segments(k);
    }
    __host__ __device__ static constexpr int stages(int m, int k) {
        const int left = bytes - barrier_bytes - 8 * part_floats(m) - digit_bytes(m, k) - unit_bytes(m, k);
        int most = left / stage_bytes;
        most = most < most_stages ? most : most_stages;
        while (most > 0 && most * stage_bytes + scale_slots(most, k) * scale_bytes(k) > left) --most;
        return most;
    }
    /// Scales are copied 16 bytes at a time. Where many digits leave room for few segments, others are faster.
    static bool takes(const Product& product) {
        return product.k % (Weights::grouped ? 8 * chunk_values : chunk_values) == 0 &&
               digit_bytes(product.m, product.k) < bytes && Blocks * stages(product.m, product.k) >= 4;
    }
};

#if __CUDA_ARCH__ >= 900

/// Cuts m rows of k activations into digits: [chunk][load][column][corner][16], columns 2a and 2a+1 being the high and low
/// digits of row a; and the chunks' units, [chunk][row].
template <class Shape, class Weights, int Warps>
__device__ void cut_activations(const Product& product, std::uint8_t* digits, float* units) {
    using Cut = typename Weights::Cut;
    constexpr int lanes = Shape::chunk_values / 8;  // that share a chunk, 8 values each
    constexpr int together = 4;                     // loads on their way
    const int columns = Shape::columns(product.m);
    const int eights = product.k / 8;
    const int items = eights * product.m;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int first = static_cast<int>(threadIdx.x) - lane; first < items; first += together * Warps * 32) {
        uint4 raw[together];
#pragma unroll
        for (int i = 0; i < together; ++i) {
            // Rows lie one after another, so an item is where it is counted.
            const int item = first + i * Warps * 32 + lane;
            raw[i] = item < items ? static_cast<const uint4*>(product.x)[item] : uint4{0, 0, 0, 0};
        }
#pragma unroll
        for (int i = 0; i < together; ++i) {
            const int item = first + i * Warps * 32 + lane;
            std::uint32_t largest = largest_size(raw[i]);
#pragma unroll
            for (int offset = lanes / 2; offset > 0; offset /= 2) {
                largest = max(largest, __shfl_xor_sync(~0u, largest, offset));
            }
            if (item >= items) continue;
            const int row = item / eights;
            const int at = item % eights * 8;
            const EightDigits cut = cut_eight<Cut, Weights>(raw[i], group_power(largest));
            const int chunk = at / Shape::chunk_values;
            const int corner = at % Shape::chunk_values / Weights::values;
            const int rest = at % Weights::values;
            std::uint8_t* to =
                digits + ((chunk * Shape::loads + rest / 16) * columns + 2 * row) * 64 + corner * 16 + rest % 16;
            *reinterpret_cast<uint2*>(to) = cut.high;
            *reinterpret_cast<uint2*>(to + 64) = cut.low;
            if (at % Shape::chunk_values == 0) {
                units[chunk * product.m + row] = Weights::factor * unit_of<Cut>(largest);
            }
        }
    }
}

#endif

template <class Weights, int Columns, int Warps, int Segment, int Blocks>
__global__ __launch_bounds__(Warps * 32 + 32, Blocks) void digit_product_kernel(Product product) {
#if __CUDA_ARCH__ >= 900
    using Shape = DigitShape<Weights, Columns, Warps, Segment, Blocks>;
    extern __shared__ __align__(128) std::uint8_t shared[];
    const int stages = Shape::stages(product.m, product.k);
    const std::uint32_t ring = shared_address(shared);
    const int slots = Shape::scale_slots(stages, product.k);
    const int slot_bytes = Shape::scale_bytes(product.k);
    std::uint8_t* const scales = shared + stages * Shape::stage_bytes;
    const std::uint32_t full = shared_address(scales) + static_cast<std::uint32_t>(slots * slot_bytes);
    const std::uint32_t empty = full + Shape::most_stages * 8;
    std::uint8_t* const digits = scales + slots * slot_bytes + Shape::barrier_bytes;
    auto* const parts = reinterpret_cast<float*>(digits + Shape::digit_bytes(product.m, product.k));
    float* const units = parts + 2 * Shape::part_floats(product.m);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int chunks = product.k / Shape::chunk_values;
    const int segments = Shape::segments(product.k);
    const int tiles = (product.n + Shape::rows - 1) / Shape::rows;

    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; ++i) barrier_make(full + i * 8, 1), barrier_make(empty + i * 8, Warps);
        barriers_ready();
    }
    __syncthreads();
    let_next_start();

    int stage = 0;
    int slot = 0;
    std::uint32_t parity = 0;
    const auto advance = [&] {
        if (++stage == stages) stage = 0, parity ^= 1;
    };
    const auto next_slot = [&] {
        if (++slot == slots) slot = 0;
    };
    if (warp == Warps) {
        // A lane copies a row's part of the segment: 2 KiB, since a copy takes about 40 ns of its engine's time however short
        // it is; copies of 16 KiB, fewer at a time, were slower. The scales of a tile lie together and are one copy more.
        for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
            const int first_row = tile * Shape::rows;
            const auto* row = static_cast<const std::uint8_t*>(product.weights) +
                              static_cast<std::size_t>(min(first_row + lane, product.n - 1)) *
                                  static_cast<std::size_t>(chunks * 64);
            const int tile_scales = min(Shape::rows, product.n - first_row) * chunks * 2;
            for (int segment = 0; segment < segments; ++segment) {
                const int some = min(Shape::segment_chunks, chunks - segment * Shape::segment_chunks) * 64;
                const bool with_scales = Weights::grouped && segment == 0;
                barrier_wait(empty + stage * 8, parity ^ 1);
                if (lane == 0) {
                    barrier_expect(full + stage * 8, static_cast<std::uint32_t>(some * Shape::rows +
                                                                                (with_scales ? tile_scales : 0)));
                }
                __syncwarp();
                if (lane < Shape::rows) {
                    bulk_copy(ring + static_cast<std::uint32_t>(stage * Shape::stage_bytes + lane * Shape::pitch),
                              row + segment * Segment, static_cast<std::uint32_t>(some), full + stage * 8);
                } else if (with_scales && lane == Shape::rows) {
                    bulk_copy(shared_address(scales) + static_cast<std::uint32_t>(slot * slot_bytes),
                              static_cast<const std::uint8_t*>(product.scales) +
                                  static_cast<std::size_t>(first_row) * static_cast<std::size_t>(chunks * 2),
                              static_cast<std::uint32_t>(tile_scales), full + stage * 8);
                }
                advance();
            }
            next_slot();
        }
        return;
    }

    wait_for_previous();
    cut_activations<Shape, Weights, Warps>(product, digits, units);
    asm volatile("bar.sync 1, %0;" ::"n"(Warps * 32) : "memory");

    const int quad = lane / 4;
    const int corner = lane % 4;
    const int columns = Shape::columns(product.m);
    // Columns beyond the activations are zero: they cost no bandwidth of shared memory and little power.
    bool counts[Columns];
    std::uint32_t column_at[Columns];
    const float* unit_at[Columns];
#pragma unroll
    for (int t = 0; t < Columns; ++t) {
        counts[t] = 8 * t + quad < columns;
        column_at[t] = shared_address(digits) + static_cast<std::uint32_t>((8 * t + quad) * 64 + corner * 16);
        unit_at[t] = units + min(4 * t + corner, product.m - 1);
    }
    int turn = 0;
    float sums[Columns][2];
    // One chunk: 64 bytes of the lane's two rows, `within` chunks into the segment at `start`.
    const auto add_chunk = [&](std::uint32_t start, int within, int chunk, float above, float below) {
        const std::uint32_t at = start + static_cast<std::uint32_t>(quad * Shape::pitch + within * 64 + corner * 16);
        std::uint32_t upper[Shape::words];
        std::uint32_t lower[Shape::words];
        Weights::operands(shared_read(at), upper);
        Weights::operands(shared_read(at + 8 * Shape::pitch), lower);
#pragma unroll
        for (int t = 0; t < Columns; ++t) {
            uint4 other[Shape::loads];
#pragma unroll
            for (int j = 0; j < Shape::loads; ++j) {
                other[j] = shared_read_if(
                    counts[t], column_at[t] + static_cast<std::uint32_t>((chunk * Shape::loads + j) * columns * 64));
            }
            const float unit = unit_at[t][chunk * product.m];
            typename Weights::Sum sum[4] = {Weights::start, Weights::start, Weights::start, Weights::start};
#pragma unroll
            for (int j = 0; j < Shape::words; j += 2) {
                Weights::multiply(sum, upper[j], lower[j], upper[j + 1], lower[j + 1], word(other[j / 4], j % 4),
                                  word(other[j / 4], j % 4 + 1));
            }
            constexpr float low_weight = Weights::Cut::low_weight;
            sums[t][0] += unit * above * (Weights::value(sum[0]) + low_weight * Weights::value(sum[1]));
            sums[t][1] += unit * below * (Weights::value(sum[2]) + low_weight * Weights::value(sum[3]));
        }
    };
    const auto scale_of = [&](int row, int chunk) {
        return reinterpret_cast<const __nv_bfloat16*>(scales + slot * slot_bytes) + row * chunks + chunk;
    };
    for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
#pragma unroll
        for (int t = 0; t < Columns; ++t) sums[t][0] = sums[t][1] = 0.0f;
        for (int segment = 0; segment < segments; ++segment) {
            barrier_wait(full + stage * 8, parity);
            const std::uint32_t start = ring + static_cast<std::uint32_t>(stage * Shape::stage_bytes);
            const int first = segment * Shape::segment_chunks;
            if (first + Shape::segment_chunks <= chunks) {
                // Neighbours, so that their scales are one load; no branches, so that the chunks overlap.
                struct alignas(2 * Shape::share) Scales {
                    __nv_bfloat16 of[Shape::share];
                };
                const int mine = warp * Shape::share;
                Scales above;
                Scales below;
                if constexpr (Weights::grouped) {
                    above = *reinterpret_cast<const Scales*>(scale_of(quad, first + mine));
                    below = *reinterpret_cast<const Scales*>(scale_of(quad + 8, first + mine));
                }
#pragma unroll
                for (int i = 0; i < Shape::share; ++i) {
                    add_chunk(start, mine + i, first + mine + i, Weights::grouped ? __bfloat162float(above.of[i]) : 1.0f,
                              Weights::grouped ? __bfloat162float(below.of[i]) : 1.0f);
                }
            } else {
                for (int chunk = first + warp; chunk < chunks; chunk += Warps) {
                    add_chunk(start, chunk - first, chunk,
                              Weights::grouped ? __bfloat162float(*scale_of(quad, chunk)) : 1.0f,
                              Weights::grouped ? __bfloat162float(*scale_of(quad + 8, chunk)) : 1.0f);
                }
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(empty + stage * 8);
            advance();
        }
        next_slot();

        // Two sets of parts by turns: whoever writes a set again has passed the barrier after it was last read.
        float* mine = parts + turn * Shape::part_floats(product.m);
        turn ^= 1;
#pragma unroll
        for (int t = 0; t < Columns; ++t) {
            if (4 * t + corner >= product.m) continue;
            float* to = mine + (warp * product.m + 4 * t + corner) * Shape::part_pitch + quad;
            to[0] = sums[t][0];
            to[8] = sums[t][1];
        }
        asm volatile("bar.sync 1, %0;" ::"n"(Warps * 32) : "memory");
        for (int i = static_cast<int>(threadIdx.x); i < product.m * Shape::rows; i += Warps * 32) {
            const int row = tile * Shape::rows + i % Shape::rows;
            const int activation = i / Shape::rows;
            if (row >= product.n) continue;
            float sum = 0.0f;
#pragma unroll
            for (int j = 0; j < Warps; ++j) {
                sum += mine[(j * product.m + activation) * Shape::part_pitch + i % Shape::rows];
            }
            if constexpr (!Weights::grouped) sum *= static_cast<const float*>(product.scales)[row];
            static_cast<__nv_bfloat16*>(
                product.y)[static_cast<std::size_t>(activation) * static_cast<std::size_t>(product.n) +
                           static_cast<std::size_t>(row)] = __float2bfloat16_rn(sum);
        }
    }
#endif
}

template <class Weights, int Columns, int Warps, int Blocks>
ProductVariant digit_variant(const char* name) {
    constexpr int segment = 2048;
    using Shape = DigitShape<Weights, Columns, Warps, segment, Blocks>;
    return {name,
            Shape::activations,
            Warps * 32 + 32,
            Shape::rows,
            &digit_product_kernel<Weights, Columns, Warps, segment, Blocks>,
            Shape::bytes,
            Blocks,
            &Shape::takes};
}

}  // namespace roofline::cuda::kernels
