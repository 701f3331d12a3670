// The product of product.cuh for weights of eight or four bits and few rows of activations, on Hopper: activations are
// put into a form in which weights meet them on the tensor cores as they lie in memory, or nearly so. For integers that
// is a pair of eight-bit digits (digits.hpp): a byte of weights is an operand as it is, and eight nibbles are by three
// operations. For fp8 it is fp16 under a power of two shared by 64 of them: the hardware turns two weights into fp16 by
// one instruction. A kernel that unpacks to bf16 spends 11 operations on eight nibbles, and then waits for itself
// instead of for memory.
//
// One or two blocks a multiprocessor stay for the whole product. Its warps wait for memory, and never for each other:
// - one copies segments of 16 rows of weights (and their scales) into a ring;
// - most of them put the activations into their form while the first segments are on their way, then share each
// segment's
//   inner dimension: a quad of lanes takes 64 bytes of a row (a chunk) at a time. Activations share a unit within a
//   chunk; across chunks sums are fp32;
// - one adds up the others' sums when a tile of 16 rows is done, and writes the results.
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

/// Activations as two columns of digits. Sums of whole numbers begin at the bits of 1.5 x 2^23: as a float, that plus
/// the sum, which stays below 2^22 (64 bytes or 128 nibbles, each times a digit: 2^21 at most).
struct DigitColumns {
    static constexpr int columns = 2;  // a row of activations
    static constexpr int sums = 2;     // that a lane keeps: of its two rows of weights, for one row of activations
    using Sum = int;
    static constexpr Sum start = 0x4B400000;
    static constexpr int unit_less = IntegerDigits::unit;
    __device__ static int activation(int tile, int corner, int /*sum*/) { return 4 * tile + corner; }
    __device__ static constexpr int below(int sum) { return sum; }  // whether it is of the lower row of weights
    __device__ static float value(Sum sum) { return __int_as_float(sum) - 12582912.0f; }
    __device__ static float of(const Sum (&sum)[4], int index) {
        return value(sum[2 * index]) + IntegerDigits::low_weight * value(sum[2 * index + 1]);
    }
    __device__ static void multiply(Sum (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                    std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
        mma_int8(sum, a0, a1, a2, a3, b0, b1);
    }
    /// Puts eight activations of `row`, from the `rest`th on of those that a lane in this corner takes of the chunk.
    template <class Weights>
    __device__ static void put(std::uint8_t* chunk, const uint4& eight, int power, int row, int all_columns, int corner,
                               int rest) {
        const EightDigits cut = cut_eight<Weights>(eight, power);
        std::uint8_t* to = chunk + (rest / 16 * all_columns + 2 * row) * 64 + corner * 16 + rest % 16;
        *reinterpret_cast<uint2*>(to) = cut.high;
        *reinterpret_cast<uint2*>(to + 64) = cut.low;
    }
};

/// Activations as fp16, a column each.
struct HalfColumns {
    static constexpr int columns = 1;
    static constexpr int sums = 4;
    using Sum = float;
    static constexpr Sum start = 0.0f;
    static constexpr int unit_less = 0;
    __device__ static int activation(int tile, int corner, int sum) { return 8 * tile + 2 * corner + sum % 2; }
    __device__ static constexpr int below(int sum) { return sum / 2; }
    __device__ static float of(const Sum (&sum)[4], int index) { return sum[index]; }
    __device__ static void multiply(Sum (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                    std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
        mma_fp16(sum, a0, a1, a2, a3, b0, b1);
    }
    template <class Weights>
    __device__ static void put(std::uint8_t* chunk, const uint4& eight, int power, int row, int all_columns, int corner,
                               int rest) {
        *reinterpret_cast<uint4*>(chunk + (rest / 8 * all_columns + row) * 64 + corner * 16) =
            halve_eight(eight, power);
    }
};

/// Bytes are operands as they are.
struct Int8Digits : DigitColumns, InOrder {
    static constexpr int values = 16;  // in 16 bytes
    static constexpr int words = 4;    // of operands in them
    static constexpr bool grouped = false;
    static constexpr float factor = 1.0f;  // what an operand must be multiplied by to be the weight
    __device__ static void operands(const uint4& packed, std::uint32_t (&operand)[words]) {
        operand[0] = packed.x, operand[1] = packed.y, operand[2] = packed.z, operand[3] = packed.w;
    }
};

/// (bits & mask) ^ turned, by one instruction: with both constants in registers, which the compiler does not do itself
/// (an instruction has room for one constant, so it takes two).
__device__ inline std::uint32_t masked_turned(std::uint32_t bits, std::uint32_t mask, std::uint32_t turned) {
    std::uint32_t result;
    asm("lop3.b32 %0, %1, %2, %3, 0x6A;" : "=r"(result) : "r"(bits), "r"(mask), "r"(turned));
    return result;
}

/// A constant that the compiler takes for an unknown, and so keeps in a register.
__device__ inline std::uint32_t in_register(std::uint32_t constant) {
    std::uint32_t value;
    asm volatile("mov.b32 %0, %1;" : "=r"(value) : "r"(constant));
    return value;
}

/// A nibble in the upper half of a byte, its upper bit turned, is 16 (nibble - 8) in two's complement. Of each eight
/// nibbles the even ones come first.
struct Int4Digits : DigitColumns {
    static constexpr int values = 32;
    static constexpr int words = 8;
    static constexpr bool grouped = true;
    static constexpr float factor = 1.0f / 16.0f;
    std::uint32_t upper_half = in_register(0xF0F0F0F0u);
    std::uint32_t upper_bit = in_register(0x80808080u);
    __device__ void operands(const uint4& packed, std::uint32_t (&operand)[words]) const {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const std::uint32_t eight = word(packed, i);
            operand[2 * i] = masked_turned(eight << 4, upper_half, upper_bit);
            operand[2 * i + 1] = masked_turned(eight, upper_half, upper_bit);
        }
    }
    __device__ static constexpr int value_at(int byte) { return byte % 4 * 2 + byte / 4; }
};

/// Every e4m3 is an fp16. (Hopper multiplies e4m3 by warp groups alone; the compiler makes mma.sync of conversions of
/// both operands.)
struct Fp8Halves : HalfColumns {
    static constexpr int values = 16;
    static constexpr int words = 8;
    static constexpr bool grouped = false;
    static constexpr float factor = 1.0f;
    __device__ static void operands(const uint4& packed, std::uint32_t (&operand)[words]) {
#pragma unroll
        for (int i = 0; i < words; ++i) operand[i] = fp16_pair(word(packed, i / 2), i % 2);
    }
};

/// How a block's shared memory is divided: ring, scales, barriers, activations, warps' sums, units. The ring takes what
/// the rest leaves. Columns: tiles of 8.
template <class Weights, int Columns, int Warps, int Segment, int Blocks>
struct DigitShape {
    static constexpr int bytes = (228 / Blocks - 1) * 1024;
    static constexpr int rows = 16;
    static constexpr int activations = 8 * Columns / Weights::columns;
    static constexpr int chunk_values = 4 * Weights::values;
    static constexpr int loads = Weights::words / 4;  // of activations that meet 16 bytes of weights
    static constexpr int segment_chunks = Segment / 64;
    static constexpr int share = segment_chunks / Warps;  // chunks of a segment that a warp takes
    static_assert(share > 0 && segment_chunks % Warps == 0 && 16 % share == 0);
    static constexpr int pitch = Segment + 64;  // the rows that are read together lie in banks of their own
    static constexpr int stage_bytes = rows * pitch;
    static constexpr int most_stages = 12;
    static constexpr int part_sets = Columns == 1 ? 4 : 2;  // tiles whose sums may wait to be added up
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
    __host__ __device__ static constexpr int scale_bytes(int k) {
        return Weights::grouped ? rows * (k / chunk_values) * 2 : 0;
    }
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
    /// Scales are copied 16 bytes at a time. Where many activations leave room for few segments, others are faster.
    static bool takes(const Product& product) {
        return product.k % (Weights::grouped ? 8 * chunk_values : chunk_values) == 0 &&
               digit_bytes(product.m, product.k) < bytes && Blocks * stages(product.m, product.k) >= 4;
    }
};

#if __CUDA_ARCH__ >= 900

/// Puts m rows of k activations into their form, [chunk][load][column][corner][16 bytes], and their units,
/// [chunk][row]. A warp arrives at `loaded` when its last ones have come.
template <class Shape, class Weights, int Warps>
__device__ void cut_activations(const Product& product, std::uint8_t* digits, float* units, std::uint32_t loaded) {
    constexpr int lanes = Shape::chunk_values / 8;  // that share a chunk, 8 values each
    constexpr int together = 8;                     // loads on their way
    const int columns = Shape::columns(product.m);
    const int eights = product.k / 8;
    const int items = eights * product.m;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (static_cast<int>(threadIdx.x) >= items && lane == 0) barrier_arrive(loaded);  // has none
    for (int first = static_cast<int>(threadIdx.x) - lane; first < items; first += together * Warps * 32) {
        uint4 raw[together];
#pragma unroll
        for (int i = 0; i < together; ++i) {
            // Rows lie one after another, so an item is where it is counted.
            const int item = first + i * Warps * 32 + lane;
            raw[i] = item < items ? static_cast<const uint4*>(product.x)[item] : uint4{0, 0, 0, 0};
        }
        if (first + together * Warps * 32 >= items) {
            std::uint32_t any = 0;
#pragma unroll
            for (int i = 0; i < together; ++i) any |= raw[i].x;
            any = __reduce_or_sync(~0u, any);
            if (lane == 0) barrier_arrive_after(loaded, any);
        }
#pragma unroll
        for (int i = 0; i < together; ++i) {
            const int item = first + i * Warps * 32 + lane;
            if (item - lane >= items) break;
            std::uint32_t largest = largest_size(raw[i]);
#pragma unroll
            for (int offset = lanes / 2; offset > 0; offset /= 2) {
                largest = max(largest, __shfl_xor_sync(~0u, largest, offset));
            }
            if (item >= items) continue;
            const int row = product.m == 1 ? 0 : item / eights;
            const int at = (item - row * eights) * 8;
            const int chunk = at / Shape::chunk_values;
            Weights::template put<Weights>(digits + chunk * Shape::chunk_bytes(product.m), raw[i], group_power(largest),
                                           row, columns, at % Shape::chunk_values / Weights::values,
                                           at % Weights::values);
            if (at % Shape::chunk_values == 0) {
                units[chunk * product.m + row] = Weights::factor * unit_of(largest, Weights::unit_less);
            }
        }
    }
}

#endif

template <class Weights, int Columns, int Warps, int Segment, int Blocks, int Early, bool One>
__global__ __launch_bounds__(Warps * 32 + 64, Blocks) void digit_product_kernel(Product product) {
#if __CUDA_ARCH__ >= 900
    if constexpr (One) product.m = 1;  // known to the compiler: addresses are then constants
    using Shape = DigitShape<Weights, Columns, Warps, Segment, Blocks>;
    extern __shared__ __align__(128) std::uint8_t shared[];
    const int stages = Shape::stages(product.m, product.k);
    const std::uint32_t ring = shared_address(shared);
    const int slots = Shape::scale_slots(stages, product.k);
    const int slot_bytes = Shape::scale_bytes(product.k);
    std::uint8_t* const scales = shared + stages * Shape::stage_bytes;
    const std::uint32_t full = shared_address(scales) + static_cast<std::uint32_t>(slots * slot_bytes);
    const std::uint32_t empty = full + Shape::most_stages * 8;
    const std::uint32_t summed = empty + Shape::most_stages * 8;
    const std::uint32_t added = summed + Shape::part_sets * 8;
    const std::uint32_t loaded = added + Shape::part_sets * 8;
    std::uint8_t* const digits = scales + slots * slot_bytes + Shape::barrier_bytes;
    auto* const parts = reinterpret_cast<float*>(digits + Shape::digit_bytes(product.m, product.k));
    float* const units = parts + Shape::part_sets * Shape::part_floats(product.m);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int chunks = product.k / Shape::chunk_values;
    const int segments = Shape::segments(product.k);
    const int tiles = (product.n + Shape::rows - 1) / Shape::rows;
    const int blocks = static_cast<int>(gridDim.x);

    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; ++i) barrier_make(full + i * 8, 1), barrier_make(empty + i * 8, Warps);
        for (int i = 0; i < Shape::part_sets; ++i) barrier_make(summed + i * 8, Warps), barrier_make(added + i * 8, 1);
        barrier_make(loaded, Warps);
        barriers_ready();
    }
    __syncthreads();
    let_next_start();

    if (warp == Warps) {
        // A row's part of a segment is a copy of its own, so that rows lie in banks of their own; the scales of a tile
        // lie together and are one more. While the activations are on their way the ring is filled by a part only: they
        // would come after it, and the last blocks of the product before this one too.
        Turns at(stages);
        Turns slot(slots);
        const std::uint64_t policy = read_once_policy();
        int early = Early;  // segments before the activations
        for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += blocks) {
            const int first_row = tile * Shape::rows;
            const int tile_scales = min(Shape::rows, product.n - first_row) * chunks * 2;
            for (int segment = 0; segment < segments; ++segment) {
                const int some = min(Shape::segment_chunks, chunks - segment * Shape::segment_chunks) * 64;
                const bool with_scales = Weights::grouped && segment == 0;
                const std::uint32_t arrival = full + at.index * 8;
                if (early-- == 0) barrier_wait(loaded, 0);
                barrier_wait(empty + at.index * 8, at.parity ^ 1);
                __syncwarp();
                if (elected()) {
                    barrier_expect(arrival,
                                   static_cast<std::uint32_t>(some * Shape::rows + (with_scales ? tile_scales : 0)));
#pragma unroll
                    for (int i = 0; i < Shape::rows; ++i) {
                        bulk_copy_once(
                            ring + static_cast<std::uint32_t>(at.index * Shape::stage_bytes + i * Shape::pitch),
                            static_cast<const std::uint8_t*>(product.weights) +
                                static_cast<std::size_t>(min(first_row + i, product.n - 1)) *
                                    static_cast<std::size_t>(chunks * 64) +
                                segment * Segment,
                            static_cast<std::uint32_t>(some), arrival, policy);
                    }
                    if (with_scales) {
                        bulk_copy_once(shared_address(scales) + static_cast<std::uint32_t>(slot.index * slot_bytes),
                                       static_cast<const std::uint8_t*>(product.scales) +
                                           static_cast<std::size_t>(first_row) * static_cast<std::size_t>(chunks * 2),
                                       static_cast<std::uint32_t>(tile_scales), arrival, policy);
                    }
                }
                __syncwarp();
                at.advance();
            }
            slot.advance();
        }
        return;
    }

    if (warp == Warps + 1) {
        Turns set(Shape::part_sets);
        const int row_within = lane % Shape::rows;
        const auto scale_of = [&](int tile) {
            if constexpr (Weights::grouped) return 1.0f;
            return static_cast<const float*>(product.scales)[min(tile * Shape::rows + row_within, product.n - 1)];
        };
        float scale = scale_of(static_cast<int>(blockIdx.x));
        for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += blocks) {
            const float next_scale = scale_of(tile + blocks);  // on its way while the weights are
            barrier_wait(summed + set.index * 8, set.parity);
            const float* sums = parts + set.index * Shape::part_floats(product.m);
            const int row = tile * Shape::rows + row_within;
            for (int activation = lane / Shape::rows; activation < product.m; activation += 32 / Shape::rows) {
                float sum = 0.0f;
#pragma unroll
                for (int j = 0; j < Warps; ++j) {
                    sum += sums[(j * product.m + activation) * Shape::part_pitch + row_within];
                }
                if (row < product.n) {
                    static_cast<__nv_bfloat16*>(
                        product.y)[static_cast<std::size_t>(activation) * static_cast<std::size_t>(product.n) +
                                   static_cast<std::size_t>(row)] = __float2bfloat16_rn(sum * scale);
                }
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(added + set.index * 8);
            scale = next_scale;
            set.advance();
        }
        return;
    }

    wait_for_previous();
    cut_activations<Shape, Weights, Warps>(product, digits, units, loaded);
    asm volatile("bar.sync 1, %0;" ::"n"(Warps * 32) : "memory");

    const Weights unpack;
    const int quad = lane / 4;
    const int corner = lane % 4;
    // Columns beyond the activations are zero: they cost no bandwidth of shared memory and little power.
    bool counts[Columns];
    std::uint32_t column_at[Columns];
    const float* unit_at[Columns][2];
#pragma unroll
    for (int t = 0; t < Columns; ++t) {
        counts[t] = 8 * t + quad < Shape::columns(product.m);
        column_at[t] = shared_address(digits) + static_cast<std::uint32_t>((8 * t + quad) * 64 + corner * 16);
#pragma unroll
        for (int i = 0; i < 2; ++i) unit_at[t][i] = units + min(Weights::activation(t, corner, i), product.m - 1);
    }
    const auto chunk_bytes = static_cast<std::uint32_t>(Shape::chunk_bytes(product.m));
    const auto load_bytes = static_cast<std::uint32_t>(Shape::columns(product.m) * 64);
    float sums[Columns][Weights::sums];
    // One chunk: 64 bytes of the lane's two rows, `within` chunks into the segment at `start`.
    const auto add_chunk = [&](std::uint32_t start, int within, int chunk, const float(&scale)[2]) {
        const std::uint32_t from = start + static_cast<std::uint32_t>(quad * Shape::pitch + within * 64 + corner * 16);
        std::uint32_t upper[Weights::words];
        std::uint32_t lower[Weights::words];
        unpack.operands(shared_read(from), upper);
        unpack.operands(shared_read(from + 8 * Shape::pitch), lower);
#pragma unroll
        for (int t = 0; t < Columns; ++t) {
            uint4 other[Shape::loads];
#pragma unroll
            for (int j = 0; j < Shape::loads; ++j) {
                other[j] = shared_read_if(counts[t], column_at[t] + static_cast<std::uint32_t>(chunk) * chunk_bytes +
                                                         static_cast<std::uint32_t>(j) * load_bytes);
            }
            typename Weights::Sum sum[4] = {Weights::start, Weights::start, Weights::start, Weights::start};
#pragma unroll
            for (int j = 0; j < Weights::words; j += 2) {
                Weights::multiply(sum, upper[j], lower[j], upper[j + 1], lower[j + 1], word(other[j / 4], j % 4),
                                  word(other[j / 4], j % 4 + 1));
            }
            const float unit[2] = {unit_at[t][0][chunk * product.m],
                                   Weights::columns == 1 ? unit_at[t][1][chunk * product.m] : 0.0f};
#pragma unroll
            for (int i = 0; i < Weights::sums; ++i) {
                const float by = unit[Weights::columns == 1 ? i % 2 : 0];
                sums[t][i] += (Weights::grouped ? by * scale[Weights::below(i)] : by) * Weights::of(sum, i);
            }
        }
    };
    Turns at(stages);
    Turns slot(slots);
    Turns set(Shape::part_sets);
    const auto scale_of = [&](int row, int chunk) {
        return reinterpret_cast<const __nv_bfloat16*>(scales + slot.index * slot_bytes) + row * chunks + chunk;
    };
    for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += blocks) {
#pragma unroll
        for (int t = 0; t < Columns; ++t) {
#pragma unroll
            for (int i = 0; i < Weights::sums; ++i) sums[t][i] = 0.0f;
        }
        for (int segment = 0; segment < segments; ++segment) {
            barrier_wait(full + at.index * 8, at.parity);
            const std::uint32_t start = ring + static_cast<std::uint32_t>(at.index * Shape::stage_bytes);
            const int first = segment * Shape::segment_chunks;
            if (first + Shape::segment_chunks <= chunks) {
                // Neighbours, so that their scales are one load; no branches, so that the chunks overlap.
                struct alignas(2 * Shape::share) Scales {
                    __nv_bfloat16 of[Shape::share];
                };
                const int mine = warp * Shape::share;
                Scales tile_scales[2];
                if constexpr (Weights::grouped) {
                    tile_scales[0] = *reinterpret_cast<const Scales*>(scale_of(quad, first + mine));
                    tile_scales[1] = *reinterpret_cast<const Scales*>(scale_of(quad + 8, first + mine));
                }
#pragma unroll
                for (int i = 0; i < Shape::share; ++i) {
                    float scale[2] = {1.0f, 1.0f};
                    if constexpr (Weights::grouped) {
                        scale[0] = __bfloat162float(tile_scales[0].of[i]);
                        scale[1] = __bfloat162float(tile_scales[1].of[i]);
                    }
                    add_chunk(start, mine + i, first + mine + i, scale);
                }
            } else {
                for (int chunk = first + warp; chunk < chunks; chunk += Warps) {
                    float scale[2] = {1.0f, 1.0f};
                    if constexpr (Weights::grouped) {
                        scale[0] = __bfloat162float(*scale_of(quad, chunk));
                        scale[1] = __bfloat162float(*scale_of(quad + 8, chunk));
                    }
                    add_chunk(start, chunk - first, chunk, scale);
                }
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(empty + at.index * 8);
            at.advance();
        }
        slot.advance();

        barrier_wait(added + set.index * 8, set.parity ^ 1);
        float* mine = parts + set.index * Shape::part_floats(product.m) + warp * product.m * Shape::part_pitch;
#pragma unroll
        for (int t = 0; t < Columns; ++t) {
#pragma unroll
            for (int i = 0; i < Weights::sums; ++i) {
                const int activation = Weights::activation(t, corner, i);
                if (activation < product.m) {
                    mine[activation * Shape::part_pitch + quad + 8 * Weights::below(i)] = sums[t][i];
                }
            }
        }
        __syncwarp();
        if (lane == 0) barrier_arrive(summed + set.index * 8);
        set.advance();
    }
#endif
}

/// One: for one row of activations, and no more.
template <class Weights, int Columns, int Warps, int Blocks, int Early, bool One = false>
ProductVariant digit_variant(const char* name) {
    constexpr int segment = 2048;
    using Shape = DigitShape<Weights, Columns, Warps, segment, Blocks>;
    return {name,
            One ? 1 : Shape::activations,
            Warps * 32 + 64,
            Shape::rows,
            &digit_product_kernel<Weights, Columns, Warps, segment, Blocks, Early, One>,
            Shape::bytes,
            Blocks,
            &Shape::takes};
}

}  // namespace roofline::cuda::kernels
