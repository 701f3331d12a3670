// The product of product.cuh for Hopper: one or two blocks a multiprocessor stay for the whole product. One warp of a
// block copies segments of 16 rows of weights into a ring in shared memory, the others share each segment's inner
// dimension among them; sums over warps are made once a tile of rows while the copies go on.
#pragma once

#include <cuda_bf16.h>

#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/product_turn.cuh"

namespace roofline::cuda::kernels {

/// Sizes of a bulk product's shared memory. Rows lie 64 bytes apart from a multiple of 128, so that the rows two quads
/// read together meet in no bank.
template <int Columns, int Warps, int Tiles, int Segment, int Stages>
struct BulkShape {
    static constexpr int rows = 16 * Tiles;
    static constexpr int pitch = Segment + 64;
    static constexpr int ring_bytes = Stages * rows * pitch;
    static constexpr int part_pitch = rows + 1;
    static constexpr int part_sets = Columns == 1 ? 2 : 1;
    static constexpr int part_bytes = part_sets * Warps * 8 * Columns * part_pitch * 4;
    static constexpr int bytes = ring_bytes + part_bytes + Stages * 16;
};

template <class Weights, int Columns, int Warps, int Tiles, int Segment, int Stages, class Work>
__global__ __launch_bounds__(Warps * 32 + 32) void bulk_product_kernel(Work work) {
#if __CUDA_ARCH__ >= 900
    using Shape = BulkShape<Columns, Warps, Tiles, Segment, Stages>;
    constexpr int x_bytes = Weights::operand_loads * 16 / Weights::values;  // of one activation
    constexpr int share = Segment / 64 / Warps;                             // chunks of a segment a warp takes
    static_assert(share > 0 && Segment % (64 * Warps) == 0);
    extern __shared__ __align__(128) std::uint8_t shared[];
    const std::uint32_t ring = shared_address(shared);
    auto* parts = reinterpret_cast<float*>(shared + Shape::ring_bytes);
    const std::uint32_t full = ring + Shape::ring_bytes + Shape::part_bytes;
    const std::uint32_t empty = full + Stages * 8;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int row_bytes = work.k / (4 * Weights::values) * 64;
    const int chunks = row_bytes / 64;
    const int segments = (row_bytes + Segment - 1) / Segment;
    const int tiles = (work.n + Shape::rows - 1) / Shape::rows;

    if (threadIdx.x == 0) {
        for (int i = 0; i < Stages; ++i) barrier_make(full + i * 8, 1), barrier_make(empty + i * 8, Warps);
        barriers_ready();
    }
    __syncthreads();
    if constexpr (is_routed<Work>) {
        if (!work.settled) wait_for_previous();  // which weights are asked for, it has found out
    }
    let_next_start();
    const int all = turns(work, tiles);
    const auto tile_of = [&](int turn) { return is_routed<Work> ? turn % tiles : turn; };

    int stage = 0;
    std::uint32_t parity = 0;
    const auto advance = [&] {
        if (++stage == Stages) stage = 0, parity ^= 1;
    };
    if (warp == Warps) {
        const std::uint64_t policy = read_once_policy();
        for (int turn = static_cast<int>(blockIdx.x); turn < all; turn += static_cast<int>(gridDim.x)) {
            const auto product = at_turn(work, turn, tiles, row_bytes);
            const int tile = tile_of(turn);
            for (int segment = 0; segment < segments; ++segment) {
                barrier_wait(empty + stage * 8, parity ^ 1);
                const int bytes = min(Segment, row_bytes - segment * Segment);
                if constexpr (Weights::grouped) {  // scales, into the L2 by the time they are asked for
                    for (int i = lane; i < Shape::rows; i += 32) {
                        const int row = weight_row(product, tile * Shape::rows + i);
                        asm volatile("prefetch.global.L2 [%0];" ::"l"(
                            static_cast<const __nv_bfloat16*>(product.scales) +
                            static_cast<std::size_t>(row) * static_cast<std::size_t>(chunks) +
                            segment * (Segment / 64)));
                    }
                }
                __syncwarp();
                if (elected()) {
                    barrier_expect(full + stage * 8, static_cast<std::uint32_t>(bytes * Shape::rows));
#pragma unroll
                    for (int i = 0; i < Shape::rows; ++i) {
                        bulk_copy_once(ring + static_cast<std::uint32_t>((stage * Shape::rows + i) * Shape::pitch),
                                       static_cast<const std::uint8_t*>(product.weights) +
                                           static_cast<std::size_t>(weight_row(product, tile * Shape::rows + i)) *
                                               static_cast<std::size_t>(row_bytes) +
                                           segment * Segment,
                                       static_cast<std::uint32_t>(bytes), full + stage * 8, policy);
                    }
                }
                __syncwarp();
                advance();
            }
        }
        return;
    }

    wait_for_previous();
    const int quad = lane / 4;
    const int corner = lane % 4;
    const std::size_t x_row = static_cast<std::size_t>(work.k) * x_bytes;
    int set = 0;
    for (int turn = static_cast<int>(blockIdx.x); turn < all; turn += static_cast<int>(gridDim.x)) {
        const auto product = at_turn(work, turn, tiles, row_bytes);
        const int first_row = tile_of(turn) * Shape::rows;
        const auto* x = static_cast<const std::uint8_t*>(product.x) + corner * Weights::values * x_bytes;
        int rows_of_x[Columns];
#pragma unroll
        for (int column = 0; column < Columns; ++column) {
            rows_of_x[column] = 8 * column + quad < product.m ? row_of_x(product, 8 * column + quad) : 0;
        }
        float sums[Tiles][Columns][4] = {};
        for (int segment = 0; segment < segments; ++segment) {
            const int first = segment * (Segment / 64) + warp * share;
            // Activations (and the scales of groups) come from the caches while the weights are on their way.
            uint4 raw[share][Columns][Weights::operand_loads];
            float scales[share][Tiles][2];
#pragma unroll
            for (int i = 0; i < share; ++i) {
                const int chunk = first + i;
#pragma unroll
                for (int column = 0; column < Columns; ++column) {
                    const bool inside = 8 * column + quad < product.m && chunk < chunks;
                    const auto* source =
                        reinterpret_cast<const uint4*>(x + static_cast<std::size_t>(rows_of_x[column]) * x_row +
                                                       static_cast<std::size_t>(chunk) * 4 * Weights::values * x_bytes);
#pragma unroll
                    for (int j = 0; j < Weights::operand_loads; ++j) {
                        raw[i][column][j] = inside ? source[j] : uint4{0, 0, 0, 0};
                    }
                }
                if constexpr (Weights::grouped) {
#pragma unroll
                    for (int j = 0; j < 2 * Tiles; ++j) {
                        const int row = weight_row(product, first_row + 8 * j + quad);
                        scales[i][j / 2][j % 2] =
                            chunk < chunks
                                ? __bfloat162float(static_cast<const __nv_bfloat16*>(
                                      product.scales)[static_cast<std::size_t>(row) * static_cast<std::size_t>(chunks) +
                                                      static_cast<std::size_t>(chunk)])
                                : 0.0f;
                    }
                }
            }
            barrier_wait(full + stage * 8, parity);
#pragma unroll
            for (int i = 0; i < share; ++i) {
                if (first + i >= chunks) break;
                std::uint32_t other[Columns][Weights::words];
#pragma unroll
                for (int column = 0; column < Columns; ++column) Weights::arrange(raw[i][column], other[column]);
#pragma unroll
                for (int t = 0; t < Tiles; ++t) {
                    const std::uint32_t at =
                        ring + static_cast<std::uint32_t>((stage * Shape::rows + 16 * t + quad) * Shape::pitch +
                                                          (warp * share + i) * 64 + corner * 16);
                    std::uint32_t upper[Weights::words];
                    std::uint32_t lower[Weights::words];
                    Weights::unpack(shared_read(at), upper);
                    Weights::unpack(shared_read(at + 8 * Shape::pitch), lower);
#pragma unroll
                    for (int column = 0; column < Columns; ++column) {
                        float group_sums[4] = {};
#pragma unroll
                        for (int j = 0; j < Weights::words; j += 2) {
                            if constexpr (Weights::grouped) {
                                Weights::multiply(group_sums, upper[j], lower[j], upper[j + 1], lower[j + 1],
                                                  other[column][j], other[column][j + 1]);
                            } else {
                                Weights::multiply(sums[t][column], upper[j], lower[j], upper[j + 1], lower[j + 1],
                                                  other[column][j], other[column][j + 1]);
                            }
                        }
                        if constexpr (Weights::grouped) {
#pragma unroll
                            for (int j = 0; j < 4; ++j) sums[t][column][j] += scales[i][t][j / 2] * group_sums[j];
                        }
                    }
                }
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(empty + stage * 8);
            advance();
        }

        // Two sets of parts by turns: whoever writes a set again has passed the barrier after it was last read. Where
        // there is room for one only, it takes a barrier more.
        float* mine = parts + set * Warps * 8 * Columns * Shape::part_pitch;
        if constexpr (Shape::part_sets == 2) {
            set ^= 1;
        } else {
            asm volatile("bar.sync 1, %0;" ::"n"(Warps * 32) : "memory");
        }
#pragma unroll
        for (int t = 0; t < Tiles; ++t) {
#pragma unroll
            for (int column = 0; column < Columns; ++column) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int activation = 8 * column + 2 * corner + i % 2;
                    if (activation >= product.m) continue;
                    mine[(warp * 8 * Columns + activation) * Shape::part_pitch + 16 * t + quad + 8 * (i / 2)] =
                        sums[t][column][i];
                }
            }
        }
        asm volatile("bar.sync 1, %0;" ::"n"(Warps * 32) : "memory");
        write_tile<Shape::rows>(product, first_row, 8 * Columns, Warps * 32, [&](int activation, int row) {
            float sum = 0.0f;
#pragma unroll
            for (int j = 0; j < Warps; ++j) sum += mine[(j * 8 * Columns + activation) * Shape::part_pitch + row];
            if constexpr (!Weights::grouped && Weights::values > 8) {
                sum *= static_cast<const float*>(product.scales)[weight_row(product, first_row + row)];
            }
            return sum;
        });
    }
#endif
}

template <class Weights, int Columns, int Warps, int Tiles, int Segment, int Stages, int Blocks, class Work = Product>
Variant<Work> bulk_variant(const char* name) {
    using Shape = BulkShape<Columns, Warps, Tiles, Segment, Stages>;
    static_assert(Blocks * (Shape::bytes + 1024) <= 228 * 1024 && Shape::bytes <= 227 * 1024);
    return {name,
            8 * Columns,
            Warps * 32 + 32,
            Shape::rows,
            &bulk_product_kernel<Weights, Columns, Warps, Tiles, Segment, Stages, Work>,
            Shape::bytes,
            Blocks};
}

}  // namespace roofline::cuda::kernels
