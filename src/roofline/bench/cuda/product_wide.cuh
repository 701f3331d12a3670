// The product of product.cuh for many rows of activations, bf16, on Hopper: prompts, and large batches. A block
// multiplies 64 or 128 rows of activations with 256 rows of weights, 64 values of each at a time, on the tensor cores'
// own reading of shared memory. One warp group copies both into a ring, piece by piece: so rows of activations may lie
// anywhere, as those of an expert do. The two others multiply, each 64 x 256 (or 64 x 128) sums in registers.
//
// Bytes a multiprocessor asks of the L2: (128 + 256) 128 for 128 x 256 x 64 products, 87 FLOPs a byte; so at 500
// TFLOP/s all of them ask for 5.7 TB/s.
#pragma once

#include <cuda_bf16.h>

#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/product_turn.cuh"
#include "roofline/bench/cuda/warpgroup.cuh"

namespace roofline::cuda::kernels {

/// Rows: of activations, 64 or 128.
template <int Rows>
struct WideShape {
    static_assert(Rows == 64 || Rows == 128);
    static constexpr int weights = 256;  // rows of them
    static constexpr int line = 128;     // bytes of a row at a time
    static constexpr int stage_bytes = (Rows + weights) * line;
    static constexpr int stages = Rows == 64 ? 5 : 4;
    static constexpr int bytes = 1024 + stages * (stage_bytes + 16);
    static constexpr int threads = 384;
    static constexpr int halves = Rows / 64;  // of 128 rows of weights that a warp group multiplies
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ inline int panel_turns(const Product& product, int tiles, int panel_rows) {
    return (product.m + panel_rows - 1) / panel_rows * tiles;
}
__device__ inline int panel_turns(const RoutedProduct& product, int tiles, int) {
    return turns(product, tiles);
}

/// The panel of rows whose turn it is, and the tile of weights.
__device__ inline Product panel_at(const Product& product, int number, int tiles, int panel_rows, int& tile) {
    const Turn turn = grouped_turn(number, tiles, (product.m + panel_rows - 1) / panel_rows);
    tile = turn.tile;
    const int first = turn.panel * panel_rows;
    Product own = product;
    own.m = min(panel_rows, product.m - first);
    own.x = static_cast<const std::uint8_t*>(product.x) + 2 * static_cast<std::size_t>(first) * product.k;
    own.y = static_cast<std::uint8_t*>(product.y) + 2 * static_cast<std::size_t>(first) * product.n;
    return own;
}
__device__ inline RoutedProduct panel_at(const RoutedProduct& product, int turn, int tiles, int, int& tile) {
    tile = turn % tiles;
    return at_turn(product, turn, tiles, product.k * 2, 0);
}

/// What the copying warp group does at a turn.
template <class Shape, int Rows, class Work>
__device__ void copy_panel(const Work& product, int tile, std::uint32_t ring, std::uint32_t full, std::uint32_t empty,
                           Turns& at) {
    const auto thread = static_cast<int>(threadIdx.x);
    const int line = thread / 8;  // of 16 that are copied together
    const int piece = thread % 8;
    const auto to = static_cast<std::uint32_t>(line * Shape::line + (piece ^ line % 8) * 16);
    const std::size_t row_bytes = static_cast<std::size_t>(product.k) * 2;
    int rows[Rows / 16];
#pragma unroll
    for (int i = 0; i < Rows / 16; ++i) rows[i] = line + 16 * i < product.m ? row_of_x(product, line + 16 * i) : -1;
    const int first_row = tile * Shape::weights + line;
    const auto* x = static_cast<const std::uint8_t*>(product.x) + piece * 16;
    const auto* weights = static_cast<const std::uint8_t*>(product.weights) + piece * 16 +
                          static_cast<std::size_t>(weight_row(product, first_row)) * row_bytes;
    const std::size_t apart = (is_gated(product) ? 8 : 16) * row_bytes;  // tiles' rows that are 16 apart
    for (int begin = 0; begin < product.k; begin += 64) {
        barrier_wait(empty + at.index * 8, at.parity ^ 1);
        const std::uint32_t stage = ring + static_cast<std::uint32_t>(at.index * Shape::stage_bytes) + to;
        const bool there = begin + piece * 8 < product.k;
#pragma unroll
        for (int i = 0; i < Rows / 16; ++i) {
            copy_piece(stage + i * 16 * Shape::line, x + static_cast<std::size_t>(max(rows[i], 0)) * row_bytes,
                       there && rows[i] >= 0);
        }
        const auto* from = weights;
#pragma unroll 4
        for (int i = 0; i < Shape::weights / 16; ++i) {
            copy_piece(stage + (Rows + i * 16) * Shape::line, from, there && first_row + 16 * i < product.n);
            from += apart;
        }
        x += Shape::line;
        weights += Shape::line;
        arrive_with_pieces(full + at.index * 8);
        at.advance();
    }
}

/// What a multiplying warp group, 0 or 1, does at a turn.
template <class Shape, int Rows, class Work>
__device__ void multiply_panel(const Work& product, int tile, int group, std::uint32_t ring, std::uint32_t full,
                               std::uint32_t empty, Turns& at) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int first_line = Rows == 128 ? group * 64 : 0;  // of activations
    const int first_half = Rows == 128 ? 0 : group;       // of the tile's weights
    float sums[Shape::halves][64];
    int before = -1;  // the stage that is given back when what was asked of it is done
    const auto give_back = [&] {
        if (before >= 0 && lane == 0) barrier_arrive(empty + before * 8);
    };
    for (int begin = 0; begin < product.k; begin += 64) {
        barrier_wait(full + at.index * 8, at.parity);
        shared_settled();
        const std::uint32_t stage = ring + static_cast<std::uint32_t>(at.index * Shape::stage_bytes);
        const std::uint64_t a = operand_at(stage + first_line * Shape::line);
        const std::uint64_t b = operand_at(stage + (Rows + first_half * 128) * Shape::line);
        warpgroup_begin();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int half = 0; half < Shape::halves; ++half) {
                warpgroup_multiply(sums[half], a + 2 * i, b + half * (128 * Shape::line >> 4) + 2 * i,
                                   begin > 0 || i > 0);
            }
        }
        warpgroup_commit();
        warpgroup_wait<1>();
        give_back();
        before = at.index;
        at.advance();
    }
    warpgroup_wait<0>();
    give_back();

    const int row = first_line + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
    const int column = tile * Shape::weights + first_half * 128;
    const int width = width_of_y(product);
    const auto write = [&](int line, int at, float low, float high) {
        if (line >= product.m || at >= width) return;
        *reinterpret_cast<__nv_bfloat162*>(static_cast<__nv_bfloat16*>(product.y) +
                                           static_cast<std::size_t>(line) * static_cast<std::size_t>(width) + at) =
            __floats2bfloat162_rn(low, high);
    };
#pragma unroll
    for (int half = 0; half < Shape::halves; ++half) {
        const float* sum = sums[half];
        const int first = column + half * 128;
        if (is_gated(product)) {
#pragma unroll
            for (int i = 0; i < 64; i += 8) {
                const int at = first / 2 + i + lane % 4 * 2;
                write(row, at, gated(sum[i], sum[i + 4]), gated(sum[i + 1], sum[i + 5]));
                write(row + 8, at, gated(sum[i + 2], sum[i + 6]), gated(sum[i + 3], sum[i + 7]));
            }
        } else {
#pragma unroll
            for (int i = 0; i < 64; i += 4) {
                const int at = first + 2 * i + lane % 4 * 2;
                write(row, at, sum[i], sum[i + 1]);
                write(row + 8, at, sum[i + 2], sum[i + 3]);
            }
        }
    }
}

#endif

template <int Rows, class Work>
__global__ __launch_bounds__(WideShape<Rows>::threads) void wide_product_kernel(Work work) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    using Shape = WideShape<Rows>;
    extern __shared__ std::uint8_t shared[];
    const std::uint32_t ring = (shared_address(shared) + 1023u) & ~1023u;
    const std::uint32_t full = ring + Shape::stages * Shape::stage_bytes;
    const std::uint32_t empty = full + Shape::stages * 8;
    if (threadIdx.x == 0) {
        for (int i = 0; i < Shape::stages; ++i) {
            barrier_make(full + i * 8, 128);  // copying threads
            barrier_make(empty + i * 8, 8);   // multiplying warps
        }
        barriers_ready();
    }
    __syncthreads();
    wait_for_previous();
    let_next_start();
    const int tiles = (work.n + Shape::weights - 1) / Shape::weights;
    const int all = panel_turns(work, tiles, Rows);
    const auto group = static_cast<int>(threadIdx.x) / 128;
    Turns at(Shape::stages);
    const auto each_turn = [&](const auto& take) {
        for (int turn = static_cast<int>(blockIdx.x); turn < all; turn += static_cast<int>(gridDim.x)) {
            int tile = 0;
            const auto product = panel_at(work, turn, tiles, Rows, tile);
            take(product, tile);
        }
    };
    if (group == 0) {
        fewer_registers<80>();
        each_turn(
            [&](const auto& product, int tile) { copy_panel<Shape, Rows>(product, tile, ring, full, empty, at); });
    } else {
        more_registers<208>();
        each_turn([&](const auto& product, int tile) {
            multiply_panel<Shape, Rows>(product, tile, group - 1, ring, full, empty, at);
        });
    }
#endif
}

template <int Rows, class Work = Product>
Variant<Work> wide_variant(const char* name) {
    using Shape = WideShape<Rows>;
    static_assert(Shape::bytes <= 227 * 1024);
    return {.name = name,
            .most_rows = Rows,
            .threads = Shape::threads,
            .block_rows = Shape::weights,
            .kernel = &wide_product_kernel<Rows, Work>,
            .shared_bytes = Shape::bytes,
            .resident = 1,
            .in_panels = true,
            .hopper_alone = true};
}

}  // namespace roofline::cuda::kernels
