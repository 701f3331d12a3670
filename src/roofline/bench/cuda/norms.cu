// Norms (elementwise.cuh): one row a block, in registers between its passes, or runs within rows.
#include <bit>

#include "roofline/bench/cuda/row_pieces.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr int threads = 256;
constexpr float epsilon = 1e-5f;

/// Rows of which each value is multiplied by its gate's activation.
struct Gated {
    Apart values;
    Apart gates;
};
__device__ Eight eight_of(const Gated& x, std::size_t row, int piece, int pieces) {
    Eight value = eight_of(x.values, row, piece, pieces);
    const Eight gate = eight_of(x.gates, row, piece, pieces);
#pragma unroll
    for (int i = 0; i < 8; ++i) value.v[i] *= silu(gate.v[i]);
    return value;
}

/// A row of up to 8 x Most x threads values, kept in registers between its passes. `to_row`: pieces from one to the
/// next.
template <bool Add, bool Mean, int Most, class Rows>
__global__ __launch_bounds__(most_row_threads) void norm_kernel(void* to, int to_row, NarrowTo narrow, void* residual,
                                                                Rows x, NormWeights weights, int width) {
    let_next_start();
    const int pieces = width / 8;
    const std::size_t row = static_cast<std::size_t>(blockIdx.x) * pieces;
    // No kernel writes a norm's weights: they come while the kernel before ends.
    uint4 gains[Most];
    uint4 biases[Mean ? Most : 1];
    each_piece<Most>(pieces, [&](int i, int piece) {
        gains[i] = static_cast<const uint4*>(weights.gains)[piece];
        if constexpr (Mean) biases[i] = static_cast<const uint4*>(weights.bias)[piece];
    });
    wait_for_previous();
    Eight mine[Most];
    float mean = 0.0f;
    each_piece<Most>(pieces, [&](int i, int piece) {
        mine[i] = eight_of(x, blockIdx.x, piece, pieces);
        if constexpr (Add) {
            add_to(mine[i], read(residual, row + piece));
#pragma unroll
            for (int j = 0; j < 8; ++j) mine[i].v[j] = __bfloat162float(__float2bfloat16_rn(mine[i].v[j]));
            write(residual, row + piece, mine[i]);
        }
        if constexpr (Mean) {
#pragma unroll
            for (int j = 0; j < 8; ++j) mean += mine[i].v[j];
        }
    });
    if constexpr (Mean) {
        mean = block_sum(mean) / static_cast<float>(width);
        __syncthreads();  // before others' sums are written over
    }
    float squares = 0.0f;
    each_piece<Most>(pieces, [&](int i, int) {
#pragma unroll
        for (int j = 0; j < 8; ++j) squares += (mine[i].v[j] - mean) * (mine[i].v[j] - mean);
    });
    const float factor = rsqrtf(block_sum(squares) / static_cast<float>(width) + epsilon);
    each_piece<Most>(pieces, [&](int i, int piece) {
        const Eight gain = read(&gains[i], 0);
        Eight normed = {};
        if constexpr (Mean) normed = read(&biases[i], 0);
#pragma unroll
        for (int j = 0; j < 8; ++j) normed.v[j] += (mine[i].v[j] - mean) * factor * gain.v[j];
        write(to, static_cast<std::size_t>(blockIdx.x) * to_row + piece, normed);
        mine[i] = normed;
    });
    if (narrow) write_narrow(narrow, static_cast<int>(blockIdx.x), pieces, mine);
}

/// `lanes` lanes, a power of two of at least as many as a run has pieces of 16 bytes, take a run.
__global__ __launch_bounds__(threads) void gated_runs_kernel(const GatedRows rows, int lanes, std::size_t total) {
    let_next_start();
    const std::size_t thread = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
    const std::size_t index = thread / static_cast<unsigned>(lanes);
    const int runs = rows.width / rows.run;
    const int piece = static_cast<int>(thread % static_cast<unsigned>(lanes));
    const bool mine = index < total && piece < rows.run / 8;
    const std::size_t row = index / static_cast<unsigned>(runs);
    const std::size_t within = index % static_cast<unsigned>(runs) * (rows.run / 8) + piece;
    Eight gain{};
    if (mine) gain = read(rows.gains, piece);
    wait_for_previous();
    Eight value{};
    Eight gate{};
    if (mine) {
        value = read(rows.values, row * (rows.value_row / 8) + within);
        gate = read(rows.gates, row * (rows.gate_row / 8) + within);
    }
    float square = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) square += value.v[i] * value.v[i];
    for (int i = lanes / 2; i > 0; i /= 2) square += __shfl_xor_sync(~0u, square, i);
    const float factor = rsqrtf(square / static_cast<float>(rows.run) + epsilon);
    if (!mine) return;
#pragma unroll
    for (int i = 0; i < 8; ++i) value.v[i] *= factor * gain.v[i] * silu(gate.v[i]);
    write(rows.to, row * (rows.width / 8) + within, value);
}

template <bool Add, class Rows>
void start_norm(void* to, int to_row, const NarrowTo& narrow, void* residual, const Rows& x, const NormWeights& weights,
                int rows, int width, Launch launch) {
    const auto start_with = [&](auto* kernel) {
        start(kernel, dim3(static_cast<unsigned>(rows)), row_threads(width), 0, launch.overlap, launch.stream, to,
              to_row / 8, narrow, residual, x, weights, width);
    };
    start_for_pieces(width, [&]<int Most>(std::integral_constant<int, Most>) {
        if (weights.bias != nullptr) {
            start_with(&norm_kernel<Add, true, Most, Rows>);
        } else {
            start_with(&norm_kernel<Add, false, Most, Rows>);
        }
    });
}

}  // namespace

void norm(void* to, const void* x, const void* weight, int rows, int width, Launch launch, const NarrowTo& narrow) {
    start_norm<false>(to, width, narrow, nullptr, Apart{x, width / 8}, {weight, nullptr}, rows, width, launch);
}

void norm_apart(void* to, int to_row, const void* x, int x_row, const void* weight, int rows, int width,
                Launch launch) {
    start_norm<false>(to, to_row, {}, nullptr, Apart{x, x_row / 8}, {weight, nullptr}, rows, width, launch);
}

void layer_norm(void* to, const void* x, const void* weight, const void* bias, int rows, int width, Launch launch,
                const NarrowTo& narrow) {
    start_norm<false>(to, width, narrow, nullptr, Apart{x, width / 8}, {weight, bias}, rows, width, launch);
}

void add_norm(void* to, void* residual, const Addend& x, const NormWeights& weights, int rows, int width, Launch launch,
              const NarrowTo& narrow) {
    start_norm<true>(to, width, narrow, residual, x, weights, rows, width, launch);
}

void add_norm(void* to, void* residual, const RowSums& x, const NormWeights& weights, int rows, int width,
              Launch launch, const NarrowTo& narrow) {
    start_norm<true>(to, width, narrow, residual, x, weights, rows, width, launch);
}

void gated_norm(const GatedRows& rows, Launch launch) {
    if (rows.run % 8 != 0 || rows.width % rows.run != 0) {
        throw Failure{"runs of a norm with gates have a multiple of 8 values, not " + std::to_string(rows.run)};
    }
    if (rows.run == rows.width) {
        const Gated x{{rows.values, rows.value_row / 8}, {rows.gates, rows.gate_row / 8}};
        start_norm<false>(rows.to, rows.width, {}, nullptr, x, {rows.gains, nullptr}, rows.rows, rows.width, launch);
        return;
    }
    if (rows.run > 256)
        throw Failure{"runs of a norm with gates have up to 256 values, not " + std::to_string(rows.run)};
    const int lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(rows.run / 8)));
    const std::size_t total = product_of({rows.rows, rows.width / rows.run});
    const auto blocks = static_cast<unsigned>((total * static_cast<std::size_t>(lanes) + threads - 1) / threads);
    start(&gated_runs_kernel, dim3(blocks), threads, 0, launch.overlap, launch.stream, rows, lanes, total);
}

}  // namespace roofline::cuda::kernels
