// The kernel behind product.cuh. A block owns 16 (or 32) rows of weights; its warps share the inner dimension and add
// up their sums at the end. Weights are the first operand of the tensor instruction, so up to 8 rows of activations
// cost the same as one. Loads in flight: warps x tiles x 2 rows x loads x 512 bytes a block; about 40 KB a
// multiprocessor are needed to hide the memory's latency.
#pragma once

#include <cuda_bf16.h>

#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/product_turn.cuh"

namespace roofline::cuda::kernels {

/// Columns: tiles of 8 rows of activations. Tiles: of 16 rows of weights. Loads: 16-byte loads of a row a lane issues
/// together. Ahead: the next loads are issued before the present ones are used.
template <class Weights, int Columns, int Warps, int Tiles, int Loads, bool Ahead, class Work>
__global__ __launch_bounds__(Warps * 32) void product_kernel(Work work) {
    constexpr int x_bytes = Weights::operand_loads * 16 / Weights::values;  // of one activation
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int quad = lane / 4;
    const int corner = lane % 4;
    const int chunks = work.k / (4 * Weights::values);
    const int tiles = (work.n + 16 * Tiles - 1) / (16 * Tiles);
    const int turn = static_cast<int>(blockIdx.x);
    if constexpr (is_routed<Work>) {
        if (!work.settled) wait_for_previous();
        let_next_start();
        if (turn >= turns(work, tiles)) return;
    }
    const auto product = at_turn(work, turn, tiles, chunks * 64);
    const int first_row = (is_routed<Work> ? turn % tiles : turn) * 16 * Tiles;
    const int groups = (chunks + Loads - 1) / Loads;

    const std::uint8_t* rows[Tiles][2];
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = weight_row(product, first_row + 16 * tile + 8 * half + quad);
            rows[tile][half] = static_cast<const std::uint8_t*>(product.weights) +
                               static_cast<std::size_t>(row) * static_cast<std::size_t>(chunks) * 64 + corner * 16;
        }
    }
    // The scales of groups travel with their weights: they too come from memory.
    using Scales = float[Weights::grouped ? Loads : 1][Weights::grouped ? Tiles : 1][2];
    const auto load = [&](uint4(&to)[Loads][Tiles][2], Scales& scales, int group) {
#pragma unroll
        for (int i = 0; i < Loads; ++i) {
            const int chunk = group * Loads + i;
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    to[i][tile][half] = chunk < chunks
                                            ? read_once(rows[tile][half] + static_cast<std::size_t>(chunk) * 64)
                                            : uint4{0, 0, 0, 0};
                    if constexpr (Weights::grouped) {
                        const int row = weight_row(product, first_row + 16 * tile + 8 * half + quad);
                        scales[i][tile][half] = Weights::scale(product.scales, row, min(chunk, chunks - 1), chunks);
                    }
                }
            }
        }
    };

    float sums[Tiles][Columns][4] = {};
    uint4 present[Loads][Tiles][2];
    Scales present_scales;
    load(present, present_scales, warp);
    if constexpr (is_routed<Work>) {
        if (work.settled) wait_for_previous();
    } else {
        let_next_start();
        wait_for_previous();
    }

    int rows_of_x[Columns];
#pragma unroll
    for (int column = 0; column < Columns; ++column) {
        rows_of_x[column] = 8 * column + quad < product.m ? row_of_x(product, 8 * column + quad) : 0;
    }
    const auto* x = static_cast<const std::uint8_t*>(product.x) + corner * Weights::values * x_bytes;
    const std::size_t x_row = static_cast<std::size_t>(product.k) * x_bytes;
    const auto use = [&](const uint4(&from)[Loads][Tiles][2], const Scales& scales, int group) {
#pragma unroll
        for (int i = 0; i < Loads; ++i) {
            const int chunk = group * Loads + i;
            if (chunk >= chunks) break;
            std::uint32_t other[Columns][Weights::words];
#pragma unroll
            for (int column = 0; column < Columns; ++column) {
                uint4 raw[Weights::operand_loads];
                const bool inside = 8 * column + quad < product.m;
                const auto* source =
                    reinterpret_cast<const uint4*>(x + static_cast<std::size_t>(rows_of_x[column]) * x_row +
                                                   static_cast<std::size_t>(chunk) * 4 * Weights::values * x_bytes);
#pragma unroll
                for (int j = 0; j < Weights::operand_loads; ++j) raw[j] = inside ? source[j] : uint4{0, 0, 0, 0};
                Weights::arrange(raw, other[column]);
            }
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile) {
                std::uint32_t upper[Weights::words];
                std::uint32_t lower[Weights::words];
                Weights::unpack(from[i][tile][0], upper);
                Weights::unpack(from[i][tile][1], lower);
                if constexpr (Weights::grouped) {
                    const float above = scales[i][tile][0];
                    const float below = scales[i][tile][1];
#pragma unroll
                    for (int column = 0; column < Columns; ++column) {
                        float group_sums[4] = {};
#pragma unroll
                        for (int j = 0; j < Weights::words; j += 2) {
                            Weights::multiply(group_sums, upper[j], lower[j], upper[j + 1], lower[j + 1],
                                              other[column][j], other[column][j + 1]);
                        }
                        sums[tile][column][0] += above * group_sums[0];
                        sums[tile][column][1] += above * group_sums[1];
                        sums[tile][column][2] += below * group_sums[2];
                        sums[tile][column][3] += below * group_sums[3];
                    }
                } else {
#pragma unroll
                    for (int column = 0; column < Columns; ++column) {
#pragma unroll
                        for (int j = 0; j < Weights::words; j += 2) {
                            Weights::multiply(sums[tile][column], upper[j], lower[j], upper[j + 1], lower[j + 1],
                                              other[column][j], other[column][j + 1]);
                        }
                    }
                }
            }
        }
    };
    for (int group = warp; group < groups; group += Warps) {
        if constexpr (Ahead) {
            uint4 next[Loads][Tiles][2];
            Scales next_scales;
            load(next, next_scales, group + Warps);
            use(present, present_scales, group);
#pragma unroll
            for (int i = 0; i < Loads; ++i) {
#pragma unroll
                for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        present[i][tile][half] = next[i][tile][half];
                        if constexpr (Weights::grouped) present_scales[i][tile][half] = next_scales[i][tile][half];
                    }
                }
            }
        } else {
            use(present, present_scales, group);
            load(present, present_scales, group + Warps);
        }
    }

    // The warps' sums, [warp][activation][row of weights], added up and written.
    constexpr int block_rows = 16 * Tiles;
    __shared__ float parts[Warps][8 * Columns][block_rows + 1];
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
        for (int column = 0; column < Columns; ++column) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                parts[warp][8 * column + 2 * corner + i % 2][16 * tile + quad + 8 * (i / 2)] = sums[tile][column][i];
            }
        }
    }
    __syncthreads();
    write_tile<block_rows>(product, first_row, 8 * Columns, Warps * 32, [&](int activation, int row) {
        float sum = 0.0f;
#pragma unroll
        for (int j = 0; j < Warps; ++j) sum += parts[j][activation][row];
        if constexpr (!Weights::grouped && Weights::values > 8) {
            sum *= static_cast<const float*>(product.scales)[weight_row(product, first_row + row)];
        }
        return sum;
    });
    after_tile(work);
}

template <class Weights, int Columns, int Warps, int Tiles, int Loads, bool Ahead, class Work = Product>
Variant<Work> product_variant(const char* name) {
    return {name, 8 * Columns, Warps * 32, 16 * Tiles,
            &product_kernel<Weights, Columns, Warps, Tiles, Loads, Ahead, Work>};
}

}  // namespace roofline::cuda::kernels
