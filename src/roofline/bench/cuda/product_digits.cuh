// The product of product.cuh for weights of eight or four bits and few rows of activations, on Hopper: activations are
// put into a form in which weights meet them on the tensor cores as they lie in memory, or nearly so. For integers that
// is a pair of eight-bit digits (digits.hpp): a byte of weights is an operand as it is, and eight nibbles are by three
// operations. For fp8 it is fp16 under a power of two shared by 64 of them: the hardware turns two weights into fp16 by
// one instruction. Nibbles of e2m1 are looked up as whole numbers (fp4_digits.cuh). A kernel that unpacks to bf16
// spends 11 operations on eight nibbles, and then waits for itself instead of for memory.
//
// One or two blocks a multiprocessor stay for the whole product. Its warps wait for memory, and never for each other:
// - one copies segments of 16 rows of weights, or 8 longer ones, (and their scales) into a ring;
// - most put the activations into their form while the first segments are on their way, then share each segment's inner
//   dimension: a quad of lanes takes 64 bytes of a row (a chunk) at a time. Activations share a unit within a chunk;
//   across chunks sums are fp32;
// - one adds up the others' sums when a tile of rows is done, and writes the results.
#pragma once

#include <algorithm>
#include <cuda_bf16.h>

#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/digit_room.cuh"
#include "roofline/bench/cuda/digit_weights.cuh"
#include "roofline/bench/cuda/fp4_digits.cuh"
#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda::kernels {

#if __CUDA_ARCH__ >= 900

/// Puts m rows of k activations into their form, [chunk][load][column][corner][16 bytes], and their units,
/// [chunk][row]. A warp arrives at `loaded` when its last ones have come.
template <class Shape, class Weights, int Warps>
__device__ void cut_activations(const Product& product, const DigitRoom<Shape>& room) {
    constexpr int lanes = Shape::chunk_values / 8;  // that share a chunk, 8 values each
    constexpr int together = 8;                     // loads on their way
    const int columns = Shape::columns(product.m);
    const int eights = product.k / 8;
    const int items = eights * product.m;
    constexpr int threads = Warps * 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int begin = static_cast<int>(threadIdx.x) - lane;
    if (begin >= items && lane == 0) barrier_arrive(room.loaded);  // has none
    for (int first = begin; first < items; first += together * threads) {
        uint4 raw[together];
#pragma unroll
        for (int i = 0; i < together; ++i) {
            // Rows lie one after another, so an item is where it is counted.
            const int item = first + i * threads + lane;
            raw[i] = item < items ? static_cast<const uint4*>(product.x)[item] : uint4{0, 0, 0, 0};
        }
        if (first + together * threads >= items) {
            std::uint32_t any = 0;
#pragma unroll
            for (int i = 0; i < together; ++i) any |= raw[i].x;
            any = __reduce_or_sync(~0u, any);
            if (lane == 0) barrier_arrive_after(room.loaded, any);
        }
#pragma unroll
        for (int i = 0; i < together; ++i) {
            const int item = first + i * threads + lane;
            if (item - lane >= items) break;
            const std::uint32_t largest = largest_among<lanes>(raw[i]);
            if (item >= items) continue;
            const int row = product.m == 1 ? 0 : item / eights;
            const int at = (item - row * eights) * 8;
            const int chunk = at / Shape::chunk_values;
            Weights::template put<Weights>(room.digits + chunk * Shape::chunk_bytes(product.m), raw[i],
                                           group_power(largest), row, columns,
                                           at % Shape::chunk_values / Weights::values, at % Weights::values);
            if (at % Shape::chunk_values == 0) {
                room.units[chunk * product.m + row] = Weights::factor * unit_of(largest, Weights::unit_less);
            }
        }
    }
}

/// What a multiplying warp does with tiles of 16 rows.
template <class Shape, class Weights, int Columns, int Warps>
__device__ void multiply_rows(const Product& product, const DigitRoom<Shape>& room) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int chunks = product.k / Shape::chunk_values;
    const int segments = Shape::segments(product.k);
    const int tiles = (product.n + Shape::rows - 1) / Shape::rows;
    const int blocks = static_cast<int>(gridDim.x);
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
        column_at[t] = shared_address(room.digits) + static_cast<std::uint32_t>((8 * t + quad) * 64 + corner * 16);
#pragma unroll
        for (int i = 0; i < 2; ++i) unit_at[t][i] = room.units + min(Weights::activation(t, corner, i), product.m - 1);
    }
    [[maybe_unused]] const std::uint32_t digits_at = shared_address(room.digits);
    const auto chunk_bytes = static_cast<std::uint32_t>(Shape::chunk_bytes(product.m));
    const auto load_bytes = static_cast<std::uint32_t>(Shape::columns(product.m) * 64);
    float sums[Columns][Weights::sums];
    constexpr bool grouped = Weights::scaling == Scaling::groups;
    constexpr bool summed_scales = grouped || Weights::scaling == Scaling::blocks;
    const int scale_row = scale_row_bytes<Weights>(product.k);
    const std::uint8_t* row_scales = nullptr;  // of the tile's row `quad`, where they came with the tile
    // What the lane has of a chunk, 64 bytes of two rows, `within` chunks into the segment at `start`.
    struct Pair {
        uint4 upper;
        uint4 lower;
    };
    const auto read_chunk = [&](std::uint32_t start, int within) {
        const std::uint32_t row = start + Shape::Rows::at(quad) + static_cast<std::uint32_t>(within * 64);
        return Pair{Weights::read(row, corner), Weights::read(row + Shape::Rows::at(8), corner)};
    };
    const auto add_chunk = [&](const Pair& of, int chunk, const float(&scale)[2]) {
        if constexpr (Weights::scaling == Scaling::pieces) {
            const ChunkActivations x{digits_at + static_cast<std::uint32_t>(chunk) * chunk_bytes,
                                     Shape::columns(product.m), room.units + chunk * product.m, product.m};
            unpack.template add_chunk<Columns>(sums, of.upper, of.lower, {row_scales, 8 * scale_row, scale_row - 1}, x,
                                               chunk);
        } else {
            std::uint32_t upper[Weights::words];
            std::uint32_t lower[Weights::words];
            unpack_row(unpack, of.upper, row_scales, chunk * 4 + corner, upper);
            unpack_row(unpack, of.lower, row_scales + 8 * scale_row, chunk * 4 + corner, lower);
#pragma unroll
            for (int t = 0; t < Columns; ++t) {
                uint4 other[Shape::loads];
#pragma unroll
                for (int j = 0; j < Shape::loads; ++j) {
                    other[j] =
                        shared_read_if(counts[t], column_at[t] + static_cast<std::uint32_t>(chunk) * chunk_bytes +
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
                    sums[t][i] += (summed_scales ? by * scale[Weights::below(i)] : by) * Weights::of(sum, i);
                }
            }
        }
    };
    Turns at(room.stages);
    Turns slot(room.slots);
    Turns set(Shape::part_sets);
    const auto scale_of = [&](int row, int chunk) {
        return reinterpret_cast<const __nv_bfloat16*>(room.scales + slot.index * room.slot_bytes) + row * chunks +
               chunk;
    };
    for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += blocks) {
#pragma unroll
        for (int t = 0; t < Columns; ++t) {
#pragma unroll
            for (int i = 0; i < Weights::sums; ++i) sums[t][i] = 0.0f;
        }
        const std::uint8_t* tile_begin = room.scales + slot.index * room.slot_bytes;
        row_scales = tile_begin + quad * scale_row;
        const auto* blocks_of_tile = reinterpret_cast<const float*>(tile_begin);
        for (int segment = 0; segment < segments; ++segment) {
            const int first = segment * Shape::segment_chunks;
            barrier_wait(room.full + at.index * 8, at.parity);
            const std::uint32_t start = room.ring + static_cast<std::uint32_t>(at.index * Shape::stage_bytes);
            if (first + Shape::segment_chunks <= chunks) {
                // Neighbours, so that their scales are one load; no branches, so that the chunks overlap.
                struct alignas(2 * Shape::share) Scales {
                    __nv_bfloat16 of[Shape::share];
                };
                const int mine = warp * Shape::share;
                Scales tile_scales[2];
                if constexpr (grouped) {
                    tile_scales[0] = *reinterpret_cast<const Scales*>(scale_of(quad, first + mine));
                    tile_scales[1] = *reinterpret_cast<const Scales*>(scale_of(quad + 8, first + mine));
                }
#pragma unroll
                for (int i = 0; i < Shape::share; ++i) {
                    float scale[2] = {1.0f, 1.0f};
                    if constexpr (grouped) {
                        scale[0] = __bfloat162float(tile_scales[0].of[i]);
                        scale[1] = __bfloat162float(tile_scales[1].of[i]);
                    }
                    if constexpr (Weights::scaling == Scaling::blocks) {
                        scale[0] = scale[1] = blocks_of_tile[(first + mine + i) / 2];
                    }
                    add_chunk(read_chunk(start, mine + i), first + mine + i, scale);
                }
            } else {
                for (int chunk = first + warp; chunk < chunks; chunk += Warps) {
                    float scale[2] = {1.0f, 1.0f};
                    if constexpr (grouped) {
                        scale[0] = __bfloat162float(*scale_of(quad, chunk));
                        scale[1] = __bfloat162float(*scale_of(quad + 8, chunk));
                    }
                    if constexpr (Weights::scaling == Scaling::blocks) scale[0] = scale[1] = blocks_of_tile[chunk / 2];
                    add_chunk(read_chunk(start, chunk - first), chunk, scale);
                }
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(room.empty + at.index * 8);
            at.advance();
        }
        slot.advance();

        if constexpr (Weights::together > 1) {
#pragma unroll
            for (float& sum : sums[0]) Weights::join(sum);
        }
        barrier_wait(room.added + set.index * 8, set.parity ^ 1);
        float* mine = room.parts + set.index * Shape::part_floats(product.m) + warp * product.m * Shape::part_pitch;
#pragma unroll
        for (int t = 0; t < Columns; ++t) {
#pragma unroll
            for (int i = 0; i < Weights::sums; ++i) {
                const int activation = Weights::activation(t, corner, i);
                if (activation < product.m && corner % Weights::together == 0) {
                    mine[activation * Shape::part_pitch + quad + 8 * Weights::below(i)] = sums[t][i];
                }
            }
        }
        __syncwarp();
        if (lane == 0) barrier_arrive(room.summed + set.index * 8);
        set.advance();
    }
}

/// What a multiplying warp does where a row's `Pieces` pieces are rows of their own to the tensor cores: the 16 rows of
/// an operand are 16 / Pieces rows of weights, and of its 8 columns two belong to each piece, the digits of the
/// activations that meet it. Of the products of pieces and columns those that belong together are kept: by lane corner
/// c those of piece c. So a stage of the ring is fewer and longer stretches of memory.
template <class Shape, class Weights, int Warps, int Pieces>
__device__ void multiply_pieces(const Product& product, const DigitRoom<Shape>& room) {
    const Weights unpack;
    static_assert(Weights::scaling == Scaling::rows || Weights::scaling == Scaling::groups ||
                  Weights::scaling == Scaling::blocks);
    constexpr bool grouped = Weights::scaling == Scaling::groups;
    constexpr bool in_blocks = Weights::scaling == Scaling::blocks;
    constexpr int rows = Shape::rows;
    constexpr int run = Shape::share / Pieces;  // chunks of a piece that a warp takes of a segment, neighbours
    static_assert(run > 0 && Shape::share % Pieces == 0);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int quad = lane / 4;
    const int corner = lane % 4;
    const int chunks = product.k / Shape::chunk_values;
    const int segments = Shape::segments(product.k);
    const int tiles = (product.n + rows - 1) / rows;
    const int row = quad % rows;
    const int piece = corner % Pieces;
    const bool lower = piece >= Pieces / 2;
    const bool keeps = corner < Pieces && corner % (Pieces / 2) == quad / rows;
    const bool counts = quad / 2 < Pieces && quad % 2 < Weights::columns;
    const int upper_piece = quad / rows;
    const std::uint32_t row_at = Shape::Rows::at(row) + static_cast<std::uint32_t>(corner * 16);
    const std::uint32_t column_at =
        shared_address(room.digits) + static_cast<std::uint32_t>(quad % 2 * 64 + corner * 16);
    constexpr int chunk_bytes = Shape::chunk_bytes(1);
    float total = 0.0f;
    // A chunk of each piece: pieces begin `apart` chunks from each other, the first `within` chunks into the segment.
    const auto add_chunks = [&](std::uint32_t start, int within, int chunk, int apart, float scale) {
        const std::uint32_t from = start + row_at + static_cast<std::uint32_t>((within + upper_piece * apart) * 64);
        std::uint32_t upper[Weights::words];
        std::uint32_t under[Weights::words];
        unpack.operands(shared_read(from), upper);
        unpack.operands(shared_read(from + static_cast<std::uint32_t>(Pieces / 2 * apart * 64)), under);
        uint4 other[Shape::loads];
#pragma unroll
        for (int j = 0; j < Shape::loads; ++j) {
            other[j] =
                shared_read_if(counts, column_at + static_cast<std::uint32_t>((chunk + quad / 2 * apart) * chunk_bytes +
                                                                              j * Weights::columns * 64));
        }
        typename Weights::Sum sum[4] = {Weights::start, Weights::start, Weights::start, Weights::start};
#pragma unroll
        for (int j = 0; j < Weights::words; j += 2) {
            Weights::multiply(sum, upper[j], under[j], upper[j + 1], under[j + 1], word(other[j / 4], j % 4),
                              word(other[j / 4], j % 4 + 1));
        }
        const float unit = room.units[chunk + piece * apart];
        total += (grouped || in_blocks ? unit * scale : unit) * Weights::one(sum, lower);
    };
    Turns at(room.stages);
    Turns slot(room.slots);
    Turns set(Shape::part_sets);
    for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
        total = 0.0f;
        const std::uint8_t* tile_scales = room.scales + slot.index * room.slot_bytes;
        const auto* row_scales = reinterpret_cast<const __nv_bfloat16*>(tile_scales) + row * chunks;
        const auto scale_of = [&](int chunk) {
            if constexpr (grouped) return __bfloat162float(row_scales[chunk]);
            if constexpr (in_blocks) return reinterpret_cast<const float*>(tile_scales)[chunk / 2];
            return 1.0f;
        };
        for (int segment = 0; segment < segments; ++segment) {
            barrier_wait(room.full + at.index * 8, at.parity);
            const std::uint32_t start = room.ring + static_cast<std::uint32_t>(at.index * Shape::stage_bytes);
            const int first = segment * Shape::segment_chunks;
            if (first + Shape::segment_chunks <= chunks) {
                const int mine = warp * Shape::share;
                struct alignas(2 * run) Scales {
                    __nv_bfloat16 of[run];
                } of_run;
                if constexpr (grouped) {
                    of_run = *reinterpret_cast<const Scales*>(row_scales + first + mine + piece * run);
                }
#pragma unroll
                for (int i = 0; i < run; ++i) {
                    const int chunk = first + mine + i;
                    add_chunks(start, mine + i, chunk, run,
                               grouped ? __bfloat162float(of_run.of[i]) : scale_of(chunk + piece * run));
                }
            } else {
                for (int within = warp * Pieces; first + within < chunks; within += Warps * Pieces) {
                    add_chunks(start, within, first + within, 1, scale_of(first + within + piece));
                }
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(room.empty + at.index * 8);
            at.advance();
        }
        slot.advance();

        float sum = keeps ? total : 0.0f;
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        if constexpr (rows < 8) sum += __shfl_xor_sync(~0u, sum, 4 * rows);
        barrier_wait(room.added + set.index * 8, set.parity ^ 1);
        if (corner == 0 && quad < rows) {
            room.parts[set.index * Shape::part_floats(1) + warp * Shape::part_pitch + quad] = sum;
        }
        __syncwarp();
        if (lane == 0) barrier_arrive(room.summed + set.index * 8);
        set.advance();
    }
}

#endif

template <class Weights, int Columns, int Warps, int Segment, int Blocks, int Early, bool One, int Pieces, int Ahead>
__global__ __launch_bounds__(Warps * 32 + 64, Blocks) void digit_product_kernel(Product product) {
#if __CUDA_ARCH__ >= 900
    static_assert(Pieces == 1 || One);
    if constexpr (One) product.m = 1;  // known to the compiler: addresses are then constants
    using Shape = DigitShape<Weights, Columns, Warps, Segment, Blocks, Pieces>;
    extern __shared__ __align__(128) std::uint8_t shared[];
    const DigitRoom<Shape> room(product, shared);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int chunks = product.k / Shape::chunk_values;
    const int segments = Shape::segments(product.k);
    const int tiles = (product.n + Shape::rows - 1) / Shape::rows;
    const int blocks = static_cast<int>(gridDim.x);

    if (threadIdx.x == 0) {
        for (int i = 0; i < room.stages; ++i)
            barrier_make(room.full + i * 8, 1), barrier_make(room.empty + i * 8, Warps);
        for (int i = 0; i < Shape::part_sets; ++i)
            barrier_make(room.summed + i * 8, Warps), barrier_make(room.added + i * 8, 1);
        barrier_make(room.loaded, Warps);
        barriers_ready();
    }
    __syncthreads();
    let_next_start();

    if (warp == Warps) {
        // A row's part of a segment is a copy of its own, so that rows lie in banks of their own; the scales of a tile
        // lie together and are one more. While the activations are on their way the ring is filled by a part only: they
        // would come after it, and the last blocks of the product before this one too.
        Turns at(room.stages);
        Turns slot(room.slots);
        const std::uint64_t policy = read_once_policy();
        int early = Early;  // segments before the activations
        [[maybe_unused]] int before_ahead = room.stages;
        const auto weights_at = [&](int tile, int row, int segment) {
            return static_cast<const std::uint8_t*>(product.weights) +
                   static_cast<std::size_t>(min(tile * Shape::rows + row, product.n - 1)) *
                       static_cast<std::size_t>(chunks * 64) +
                   segment * Segment;
        };
        for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += blocks) {
            const int first_row = tile * Shape::rows;
            const int tile_scales = scale_rows_bytes<Weights>(min(Shape::rows, product.n - first_row), product.k);
            for (int segment = 0; segment < segments; ++segment) {
                const int some = min(Shape::segment_chunks, chunks - segment * Shape::segment_chunks) * 64;
                const bool with_scales = scales_travel<Weights> && segment == 0;
                const std::uint32_t arrival = room.full + at.index * 8;
                if (early-- == 0) barrier_wait(room.loaded, 0);
                if constexpr (Ahead > 0) {
                    // The ring is full, and until the activations are cut nothing makes room in it: memory goes on with
                    // what comes next, as far as the L2.
                    if (before_ahead-- == 0) {
                        int next_tile = tile;
                        int next_segment = segment;
                        for (int i = 0; i < Ahead && next_tile < tiles; ++i) {
                            const int bytes =
                                min(Shape::segment_chunks, chunks - next_segment * Shape::segment_chunks) * 64;
                            if (elected()) {
#pragma unroll
                                for (int row = 0; row < Shape::rows; ++row) {
                                    bulk_prefetch(weights_at(next_tile, row, next_segment),
                                                  static_cast<std::uint32_t>(bytes));
                                }
                            }
                            __syncwarp();
                            if (++next_segment == segments) next_segment = 0, next_tile += blocks;
                        }
                    }
                }
                barrier_wait(room.empty + at.index * 8, at.parity ^ 1);
                __syncwarp();
                if (elected()) {
                    barrier_expect(arrival,
                                   static_cast<std::uint32_t>(some * Shape::rows + (with_scales ? tile_scales : 0)));
#pragma unroll
                    for (int i = 0; i < Shape::rows; ++i) {
                        bulk_copy_once(
                            room.ring + static_cast<std::uint32_t>(at.index * Shape::stage_bytes) + Shape::Rows::at(i),
                            weights_at(tile, i, segment), static_cast<std::uint32_t>(some), arrival, policy);
                    }
                    if (with_scales) {
                        bulk_copy_once(
                            shared_address(room.scales) + static_cast<std::uint32_t>(slot.index * room.slot_bytes),
                            static_cast<const std::uint8_t*>(product.scales) +
                                scale_place<Weights>(first_row, product.k),
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
            if constexpr (Weights::scaling != Scaling::rows) {
                return product.whole_scale != nullptr ? *product.whole_scale : 1.0f;
            }
            return static_cast<const float*>(product.scales)[min(tile * Shape::rows + row_within, product.n - 1)];
        };
        float scale = scale_of(static_cast<int>(blockIdx.x));
        for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += blocks) {
            const float next_scale = scale_of(tile + blocks);  // on its way while the weights are
            barrier_wait(room.summed + set.index * 8, set.parity);
            const float* sums = room.parts + set.index * Shape::part_floats(product.m);
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
            if (lane == 0) barrier_arrive(room.added + set.index * 8);
            scale = next_scale;
            set.advance();
        }
        return;
    }

    wait_for_previous();
    cut_activations<Shape, Weights, Warps>(product, room);
    asm volatile("bar.sync 1, %0;" ::"n"(Warps * 32) : "memory");
    if constexpr (Pieces > 1)
        multiply_pieces<Shape, Weights, Warps, Pieces>(product, room);
    else
        multiply_rows<Shape, Weights, Columns, Warps>(product, room);
#endif
}

/// One: for one row of activations, and no more. Ahead: segments beyond the ring that are fetched into the L2.
template <class Weights, int Columns, int Warps, int Blocks, int Early, bool One = false, int Pieces = 1, int Ahead = 0>
ProductVariant digit_variant(const char* name) {
    constexpr int segment = 2048 * Pieces;
    using Shape = DigitShape<Weights, Columns, Warps, segment, Blocks, Pieces>;
    return {name,
            One ? 1 : Shape::activations,
            Warps * 32 + 64,
            Shape::rows,
            &digit_product_kernel<Weights, Columns, Warps, segment, Blocks, Early, One, Pieces, Ahead>,
            Shape::bytes,
            Blocks,
            &Shape::takes};
}

}  // namespace roofline::cuda::kernels
