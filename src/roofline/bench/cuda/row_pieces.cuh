// What kernels that go over rows share: where eight values of a row come from, sums and largest values over a block
// that takes a row, and how a row in its registers is made narrow.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>

#include "roofline/bench/cuda/eights.cuh"
#include "roofline/bench/cuda/elementwise.cuh"
#include "roofline/bench/cuda/launch.cuh"

namespace roofline::cuda::kernels {

/// Over the threads of a block, for each of them.
__device__ inline float block_sum(float value) {
    __shared__ float sums[32];
#pragma unroll
    for (int i = 16; i > 0; i /= 2) value += __shfl_xor_sync(~0u, value, i);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    float total = 0.0f;
    for (unsigned i = 0; i < blockDim.x / 32; ++i) total += sums[i];
    return total;
}

/// Likewise the largest, of values that are not negative.
__device__ inline float block_largest(float value) {
    __shared__ float largest[32];
#pragma unroll
    for (int i = 16; i > 0; i /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, i));
    if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = value;
    __syncthreads();
    for (unsigned i = 0; i < blockDim.x / 32; ++i) value = fmaxf(value, largest[i]);
    return value;
}

__device__ inline float silu(float x) {
    return x / (1.0f + __expf(-x));
}

__device__ inline void add_to(Eight& sum, const Eight& other, float factor = 1.0f) {
#pragma unroll
    for (int i = 0; i < 8; ++i) sum.v[i] += factor * other.v[i];
}

/// Eight values of a row of x.
__device__ inline Eight eight_of(const Addend& x, std::size_t row, int piece, int pieces) {
    Eight sum = read(x.rows, row * pieces + piece);
    if (x.more != nullptr) add_to(sum, read(x.more, (x.same_for_all ? 0 : row * pieces) + piece));
    return sum;
}
__device__ inline Eight eight_of(const RowSums& x, std::size_t row, int piece, int pieces) {
    Eight sum = {};
    if (x.beside != nullptr) {
        add_to(sum, read(x.beside, row * pieces + piece), x.gates != nullptr ? x.gates[row] : 1.0f);
    }
#pragma unroll 8
    for (int i = 0; i < x.count; ++i) {
        const std::size_t at = row * x.count + i;
        const float share = x.shares[at];
        add_to(sum, read(x.rows, static_cast<std::size_t>(x.places[at]) * pieces + piece), share);
    }
    return sum;
}
/// Rows that may lie apart, as they are.
struct Apart {
    const void* rows;
    int row;  // pieces from one to the next
};
__device__ inline Eight eight_of(const Apart& x, std::size_t row, int piece, int) {
    return read(x.rows, row * x.row + piece);
}

constexpr int most_row_threads = 512;

/// Calls `take(i, piece)` for each of a thread's pieces of a row, Most at most, of a block that takes the row.
template <int Most, class Take>
__device__ void each_piece(int pieces, const Take& take) {
#pragma unroll
    for (int i = 0; i < Most; ++i) {
        const int piece = static_cast<int>(threadIdx.x + i * blockDim.x);
        if (piece < pieces) take(i, piece);
    }
}

/// Makes a row narrow whose pieces the threads of a block have as above. The largest value, of the row or of 128, which
/// sixteen threads have, becomes the largest there is; of zeros the scale may be anything.
template <int Most>
__device__ void write_narrow(const NarrowTo& to, int row, int pieces, const Eight (&mine)[Most]) {
    float largest[Most];
    float of_row = 0.0f;
#pragma unroll
    for (int i = 0; i < Most; ++i) {
        largest[i] = 0.0f;
        if (static_cast<int>(threadIdx.x + i * blockDim.x) >= pieces) continue;
#pragma unroll
        for (int j = 0; j < 8; ++j) largest[i] = fmaxf(largest[i], fabsf(mine[i].v[j]));
        of_row = fmaxf(of_row, largest[i]);
    }
    if (!to.blocks) of_row = block_largest(of_row);
#pragma unroll
    for (int i = 0; i < Most; ++i) {
        if (to.blocks) {
#pragma unroll
            for (int lanes = 8; lanes > 0; lanes /= 2) {
                largest[i] = fmaxf(largest[i], __shfl_xor_sync(~0u, largest[i], lanes));
            }
        }
        const int piece = static_cast<int>(threadIdx.x + i * blockDim.x);
        if (piece >= pieces) continue;
        const float factor = (to.whole ? 127.0f : e4m3_largest) / fmaxf(to.blocks ? largest[i] : of_row, 1e-30f);
        Eight scaled = mine[i];
#pragma unroll
        for (int j = 0; j < 8; ++j) scaled.v[j] *= factor;
        to.values[static_cast<std::size_t>(row) * pieces + piece] = to.whole ? as_int8(scaled) : as_fp8(scaled);
        if (to.blocks ? piece % 16 == 0 : piece == 0) to.scales[piece / 16 * to.stride + row] = 1.0f / factor;
    }
}

/// Threads of a block that takes a row: as many as there are 16-byte pieces, within reason.
inline int row_threads(int width) {
    if (width % 8 != 0 || width / 8 > 8 * most_row_threads) {
        throw Failure{"a row's width must be a multiple of 8, at most 32768, but is " + std::to_string(width)};
    }
    return std::clamp((width / 8 + 31) / 32 * 32, 32, most_row_threads);
}

/// Calls `start(std::integral_constant<int, Most>)` with the pieces that a thread of such a block may have.
template <class Start>
void start_for_pieces(int width, const Start& start) {
    const int each = (width / 8 + most_row_threads - 1) / most_row_threads;
    if (each <= 1) {
        start(std::integral_constant<int, 1>{});
    } else if (each <= 2) {
        start(std::integral_constant<int, 2>{});
    } else if (each <= 4) {
        start(std::integral_constant<int, 4>{});
    } else {
        start(std::integral_constant<int, 8>{});
    }
}

}  // namespace roofline::cuda::kernels
