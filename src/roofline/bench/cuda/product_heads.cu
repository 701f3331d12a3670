// Rows of a head's weights are short: a warp takes 16 of them whole, asks for all of what it multiplies at once, and
// has nothing to share with others. Otherwise as product_kernel.cuh.
#include <algorithm>
#include <bit>

#include "roofline/bench/cuda/eights.cuh"
#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/launch.cuh"
#include "roofline/bench/cuda/product.cuh"
#include "roofline/bench/cuda/product_heads.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr int most_warps = 4;   // of a block
constexpr int slice_rows = 64;  // of activations that a block goes through

/// Chunks of 64 bytes of a row whose activations are asked for at once: as many as 64 registers hold.
template <class Weights, int Columns, int Loads>
constexpr int chunks_ahead = std::clamp(16 / (Columns * Weights::operand_loads), 1, Loads);

/// 16 bytes of weights that are zero.
template <class Weights>
__device__ uint4 past_the_end() {
    if constexpr (Weights::grouped) {
        return {Weights::zeros, Weights::zeros, Weights::zeros, Weights::zeros};
    } else {
        return {0, 0, 0, 0};
    }
}

/// Columns: tiles of 8 rows of activations. Together: numbers of a row of weights that are asked for at once.
template <class Weights, int Columns, int Together>
__global__ __launch_bounds__(most_warps * 32, Together > 128 ? 2 : 3) void heads_kernel(HeadProduct product) {
    constexpr int loads = Together / (4 * Weights::values);
    // An addition waits for the one before it: where a warp has few sums, each is kept in two parts.
    constexpr int parts = Weights::grouped || Columns > 2 ? 1 : 2;
    constexpr int ahead = chunks_ahead<Weights, Columns, loads>;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int quad = lane / 4;
    const int corner = lane % 4;
    const int first_row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / 32 * 16;
    if (first_row >= product.n) return;
    const auto head = static_cast<std::size_t>(blockIdx.y);
    const int chunks = product.k / (4 * Weights::values);

    // The lane's rows of weights are this and the eighth after it.
    const std::size_t row = head * static_cast<std::size_t>(product.n) + static_cast<std::size_t>(first_row + quad);
    const std::size_t row_bytes = static_cast<std::size_t>(chunks) * 64;
    const auto* weights = static_cast<const std::uint8_t*>(product.weights) + corner * 16;
    const auto* scales = static_cast<const std::uint8_t*>(product.scales) + head * product.scale_stride;
    uint4 present[loads][2];
    float group_scales[Weights::grouped ? loads : 1][2];
    const auto load = [&](int first) {
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            const int chunk = first + i;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const std::size_t own = row + 8 * static_cast<std::size_t>(half);
                present[i][half] = chunk < chunks
                                       ? read_once(weights + own * row_bytes + static_cast<std::size_t>(chunk) * 64)
                                       : past_the_end<Weights>();
                if constexpr (Weights::grouped) {
                    group_scales[i][half] =
                        Weights::scale(scales, first_row + quad + 8 * half, min(chunk, chunks - 1), chunks);
                }
            }
        }
    };
    load(0);
    float above = product.factor;
    float below = product.factor;
    if constexpr (!Weights::grouped && Weights::values > 8) {
        above *= reinterpret_cast<const float*>(scales)[first_row + quad];
        below *= reinterpret_cast<const float*>(scales)[first_row + quad + 8];
    }
    let_next_start();
    wait_for_previous();

    const auto* first_x = static_cast<const __nv_bfloat16*>(product.x) +
                          head * static_cast<std::size_t>(product.x_head) + corner * Weights::values;
    auto* first_y = static_cast<__nv_bfloat16*>(product.y) + head * static_cast<std::size_t>(product.y_head) +
                    static_cast<std::size_t>(first_row + 2 * corner);
    const int first_of_slice = static_cast<int>(blockIdx.z) * slice_rows;
    const int end = min(product.m, first_of_slice + slice_rows);
    // Weights that were asked for at once stay in the registers for the next rows of activations.
#pragma unroll 1
    for (int begin = first_of_slice; begin < end; begin += 8 * Columns) {
        const __nv_bfloat16* x[Columns];
#pragma unroll
        for (int column = 0; column < Columns; ++column) {
            // Past the end the last row stands in: nothing comes of it, and loads need no branches.
            const auto activation = static_cast<std::size_t>(min(begin + 8 * column + quad, end - 1));
            x[column] = first_x + activation * static_cast<std::size_t>(product.x_row);
        }
        float sums[parts][Columns][4] = {};
        for (int first = 0; first < chunks; first += loads) {
            if (first > 0 || (begin > first_of_slice && chunks > loads)) load(first);
#pragma unroll
            for (int from = 0; from < loads; from += ahead) {
                uint4 raw[ahead][Columns][Weights::operand_loads];
#pragma unroll
                for (int i = 0; i < ahead; ++i) {
                    const auto chunk = static_cast<std::size_t>(min(first + from + i, chunks - 1));
#pragma unroll
                    for (int column = 0; column < Columns; ++column) {
                        const auto* source = reinterpret_cast<const uint4*>(x[column] + chunk * 4 * Weights::values);
#pragma unroll
                        for (int j = 0; j < Weights::operand_loads; ++j) raw[i][column][j] = source[j];
                    }
                }
#pragma unroll
                for (int i = 0; i < ahead; ++i) {
                    std::uint32_t upper[Weights::words];
                    std::uint32_t lower[Weights::words];
                    Weights::unpack(present[from + i][0], upper);
                    Weights::unpack(present[from + i][1], lower);
#pragma unroll
                    for (int column = 0; column < Columns; ++column) {
                        std::uint32_t other[Weights::words];
                        Weights::arrange(raw[i][column], other);
                        if constexpr (Weights::grouped) {
                            float group_sums[4] = {};
#pragma unroll
                            for (int j = 0; j < Weights::words; j += 2) {
                                Weights::multiply(group_sums, upper[j], lower[j], upper[j + 1], lower[j + 1], other[j],
                                                  other[j + 1]);
                            }
#pragma unroll
                            for (int j = 0; j < 4; ++j) {
                                sums[0][column][j] += group_scales[from + i][j / 2] * group_sums[j];
                            }
                        } else {
#pragma unroll
                            for (int j = 0; j < Weights::words; j += 2) {
                                Weights::multiply(sums[j / 2 % parts][column], upper[j], lower[j], upper[j + 1],
                                                  lower[j + 1], other[j], other[j + 1]);
                            }
                        }
                    }
                }
            }
        }

#pragma unroll
        for (int column = 0; column < Columns; ++column) {
            float sum[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                sum[j] = sums[0][column][j];
                if constexpr (parts > 1) sum[j] += sums[1][column][j];
                sum[j] *= j < 2 ? above : below;
            }
            // Two neighbouring activations of a row of weights become two neighbouring rows of an activation, as y has
            // them.
            const std::uint32_t upper = turned(pack(sum[0], sum[1]));
            const std::uint32_t lower = turned(pack(sum[2], sum[3]));
            const int activation = begin + 8 * column + quad;
            if (activation < end) {
                auto* to = reinterpret_cast<std::uint32_t*>(first_y + static_cast<std::size_t>(activation) *
                                                                          static_cast<std::size_t>(product.y_row));
                to[0] = upper;
                to[4] = lower;
            }
        }
    }
}

template <class Weights, int Columns>
void launch_columns(const HeadProduct& product, bool overlap, cudaStream_t stream) {
    constexpr int short_rows = 128;
    constexpr int long_rows = 512;
    const auto kernel = product.k <= short_rows ? &heads_kernel<Weights, Columns, short_rows>
                                                : &heads_kernel<Weights, Columns, long_rows>;
    const int tiles = product.n / 16;
    const int slices = (product.m + slice_rows - 1) / slice_rows;
    // Warps side by side share activations in the L1; but first every multiprocessor should have some.
    const int even = std::clamp(tiles * product.heads * slices / multiprocessors(), 1, std::min(tiles, most_warps));
    const int warps = static_cast<int>(std::bit_floor(static_cast<unsigned>(even)));
    const dim3 blocks(static_cast<unsigned>((tiles + warps - 1) / warps), static_cast<unsigned>(product.heads),
                      static_cast<unsigned>(slices));
    start(kernel, blocks, warps * 32, 0, overlap, stream, product);
}

template <class Weights>
void launch_weights(const HeadProduct& product, bool overlap, cudaStream_t stream) {
    if (product.m <= 8) {
        launch_columns<Weights, 1>(product, overlap, stream);
    } else if (product.m <= 16) {
        launch_columns<Weights, 2>(product, overlap, stream);
    } else {
        launch_columns<Weights, 4>(product, overlap, stream);
    }
}

}  // namespace

void launch(const HeadProduct& product, Format weights, bool overlap, cudaStream_t stream) {
    const int granule = product_granule(weights);
    if (product.m < 1 || product.heads < 1 || product.n < 1 || product.k < 1) {
        throw Failure{"products of heads need rows, heads and widths"};
    }
    if (product.k % granule != 0) {
        throw Failure{"products of heads: k must be a multiple of " + std::to_string(granule) + ", not " +
                      std::to_string(product.k)};
    }
    if (product.n % 16 != 0) {
        throw Failure{"products of heads: n must be a multiple of 16, not " + std::to_string(product.n)};
    }
    for (const int distance : {product.x_row, product.x_head, product.y_row, product.y_head}) {
        if (distance % 8 != 0) {
            throw Failure{"products of heads: distances must be multiples of 8, not " + std::to_string(distance)};
        }
    }
    switch (weights) {
        case Format::bf16:
            return launch_weights<Bf16>(product, overlap, stream);
        case Format::fp8:
            return launch_weights<Fp8>(product, overlap, stream);
        case Format::fp8_block:
            return launch_weights<Fp8Block>(product, overlap, stream);
        case Format::int8:
            return launch_weights<Int8>(product, overlap, stream);
        case Format::int4:
            return launch_weights<Int4>(product, overlap, stream);
        default:
            throw Failure{"no product of heads reads " + std::string(bench::name(weights)) + " weights"};
    }
}

}  // namespace roofline::cuda::kernels
