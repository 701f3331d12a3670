// The kernels of elementwise.cuh: 16 bytes a thread, one row a block where a row is summed.
#include <algorithm>
#include <cuda_fp8.h>

#include "roofline/bench/cuda/eights.cuh"
#include "roofline/bench/cuda/elementwise.cuh"
#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/launch.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr int threads = 256;
constexpr float epsilon = 1e-5f;

__device__ float block_sum(float value) {
    __shared__ float sums[32];
#pragma unroll
    for (int i = 16; i > 0; i /= 2) value += __shfl_xor_sync(~0u, value, i);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    float total = 0.0f;
    for (unsigned i = 0; i < blockDim.x / 32; ++i) total += sums[i];
    return total;
}

/// Eight values of a row of x.
__device__ Eight eight_of(const void* x, std::size_t row, int piece, int pieces) {
    return read(x, row * pieces + piece);
}
__device__ Eight eight_of(const RowSums& x, std::size_t row, int piece, int pieces) {
    Eight sum = {};
#pragma unroll 8
    for (int i = 0; i < x.count; ++i) {
        const std::size_t at = row * x.count + i;
        const float share = x.shares[at];
        const Eight part = read(x.rows, static_cast<std::size_t>(x.places[at]) * pieces + piece);
#pragma unroll
        for (int j = 0; j < 8; ++j) sum.v[j] += share * part.v[j];
    }
    return sum;
}

/// A row of up to 8 x 8 x threads values, kept in registers between its two passes.
template <bool Add, class Rows>
__global__ void norm_kernel(void* to, void* residual, Rows x, const void* weight, int width) {
    constexpr int most = 4;
    let_next_start();
    wait_for_previous();
    const int pieces = width / 8;
    const std::size_t row = static_cast<std::size_t>(blockIdx.x) * pieces;
    Eight mine[most];
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < most; ++i) {
        const int piece = static_cast<int>(threadIdx.x + i * blockDim.x);
        if (piece >= pieces) break;
        mine[i] = eight_of(x, blockIdx.x, piece, pieces);
        if constexpr (Add) {
            const Eight before = read(residual, row + piece);
#pragma unroll
            for (int j = 0; j < 8; ++j)
                mine[i].v[j] = __bfloat162float(__float2bfloat16_rn(mine[i].v[j] + before.v[j]));
            write(residual, row + piece, mine[i]);
        }
#pragma unroll
        for (int j = 0; j < 8; ++j) squares += mine[i].v[j] * mine[i].v[j];
    }
    const float factor = rsqrtf(block_sum(squares) / static_cast<float>(width) + epsilon);
#pragma unroll
    for (int i = 0; i < most; ++i) {
        const int piece = static_cast<int>(threadIdx.x + i * blockDim.x);
        if (piece >= pieces) break;
        const Eight gain = read(weight, piece);
#pragma unroll
        for (int j = 0; j < 8; ++j) mine[i].v[j] *= factor * gain.v[j];
        write(to, row + piece, mine[i]);
    }
}

/// Kept in registers as above, between three passes.
__global__ void layer_norm_kernel(void* to, const void* x, const void* weight, const void* bias, int width) {
    constexpr int most = 4;
    let_next_start();
    wait_for_previous();
    const int pieces = width / 8;
    const std::size_t row = static_cast<std::size_t>(blockIdx.x) * pieces;
    const auto each_piece = [&](const auto& take) {
#pragma unroll
        for (int i = 0; i < most; ++i) {
            const int piece = static_cast<int>(threadIdx.x + i * blockDim.x);
            if (piece < pieces) take(i, piece);
        }
    };
    Eight mine[most];
    float sum = 0.0f;
    each_piece([&](int i, int piece) {
        mine[i] = read(x, row + piece);
#pragma unroll
        for (int j = 0; j < 8; ++j) sum += mine[i].v[j];
    });
    const float mean = block_sum(sum) / static_cast<float>(width);
    __syncthreads();  // before others' sums are written over
    float squares = 0.0f;
    each_piece([&](int i, int) {
#pragma unroll
        for (int j = 0; j < 8; ++j) squares += (mine[i].v[j] - mean) * (mine[i].v[j] - mean);
    });
    const float factor = rsqrtf(block_sum(squares) / static_cast<float>(width) + epsilon);
    each_piece([&](int i, int piece) {
        const Eight gain = read(weight, piece);
        const Eight added = read(bias, piece);
#pragma unroll
        for (int j = 0; j < 8; ++j) mine[i].v[j] = (mine[i].v[j] - mean) * factor * gain.v[j] + added.v[j];
        write(to, row + piece, mine[i]);
    });
}

__global__ void gelu_kernel(void* to, const void* x, std::size_t total) {
    constexpr float factor = 1.59576912f;  // 2 sqrt(2 / pi)
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    Eight eight = read(x, index);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float value = eight.v[i];
        eight.v[i] = value / (1.0f + __expf(-factor * (value + 0.044715f * value * value * value)));
    }
    write(to, index, eight);
}

__global__ void sum_rows_kernel(void* to, RowSums x, int pieces, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    write(to, index, eight_of(x, index / pieces, static_cast<int>(index % pieces), pieces));
}

__global__ void silu_kernel(void* to, const void* gate_up, int pieces, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    const std::size_t row = index / pieces;
    const Eight gate = read(gate_up, row * 2 * pieces + index % pieces);
    Eight up = read(gate_up, (row * 2 + 1) * pieces + index % pieces);
#pragma unroll
    for (int i = 0; i < 8; ++i) up.v[i] *= gate.v[i] / (1.0f + __expf(-gate.v[i]));
    write(to, index, up);
}

__global__ void add_kernel(void* to, const void* a, const void* b, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    Eight first = read(a, index);
    const Eight second = read(b, index);
#pragma unroll
    for (int i = 0; i < 8; ++i) first.v[i] += second.v[i];
    write(to, index, first);
}

__global__ void add_bias_kernel(void* x, const void* bias, int pieces, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    Eight sum = read(x, index);
    const Eight added = read(bias, index % pieces);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum.v[i] += added.v[i];
    write(x, index, sum);
}

/// A warp a head of up to 256 values.
__global__ void norm_heads_kernel(void* rows_of_heads, const void* weights, int heads, int normed_heads, int all_heads,
                                  int head_dim, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = (static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    if (index >= total) return;
    const int pieces = head_dim / 8;
    const int piece = static_cast<int>(threadIdx.x % 32);
    const int head = static_cast<int>(index % normed_heads);
    const std::size_t at = (index / normed_heads * all_heads + head) * pieces + piece;
    Eight mine{};
    if (piece < pieces) mine = read(rows_of_heads, at);
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) squares += mine.v[i] * mine.v[i];
#pragma unroll
    for (int i = 16; i > 0; i /= 2) squares += __shfl_xor_sync(~0u, squares, i);
    if (piece >= pieces) return;
    const float factor = rsqrtf(squares / static_cast<float>(head_dim) + epsilon);
    const Eight gain = read(weights, (head < heads ? 0 : pieces) + piece);
#pragma unroll
    for (int i = 0; i < 8; ++i) mine.v[i] *= factor * gain.v[i];
    write(rows_of_heads, at, mine);
}

__global__ void embed_kernel(void* to, const void* table, const int* which, int pieces, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    const std::size_t row = static_cast<std::size_t>(which[index / pieces]);
    static_cast<uint4*>(to)[index] = static_cast<const uint4*>(table)[row * pieces + index % pieces];
}

/// A thread turns 8 pairs: 16 bytes of the lower half of a head and 16 of the upper.
__global__ void rotate_kernel(void* rows_of_heads, const float2* angles, int tokens, int first, int heads,
                              int all_heads, int head_dim, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    const int pieces = head_dim / 16;
    const int piece = static_cast<int>(index % pieces);
    const int head = static_cast<int>(index / pieces % heads);
    const std::size_t row = index / pieces / heads;
    const std::size_t position = static_cast<std::size_t>(first) + row % tokens;
    const std::size_t at = (row * all_heads + head) * (head_dim / 8) + piece;
    Eight low = read(rows_of_heads, at);
    Eight high = read(rows_of_heads, at + pieces);
    const float2* turn = angles + position * (head_dim / 2) + piece * 8;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float2 angle = turn[i];
        const float x = low.v[i];
        const float y = high.v[i];
        low.v[i] = x * angle.x - y * angle.y;
        high.v[i] = y * angle.x + x * angle.y;
    }
    write(rows_of_heads, at, low);
    write(rows_of_heads, at + pieces, high);
}

template <bool Fp8Cache>
__global__ void write_cache_kernel(void* keys, void* values, const void* rows_of_heads, int tokens, int first,
                                   int heads, int kv_heads, int head_dim, int capacity, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    const int pieces = head_dim / 8;
    const int piece = static_cast<int>(index % pieces);
    const int cached = values != nullptr ? 2 * kv_heads : kv_heads;
    const int head = static_cast<int>(index / pieces % cached);
    const std::size_t row = index / pieces / cached;
    const std::size_t sequence = row / tokens;
    const std::size_t position = static_cast<std::size_t>(first) + row % tokens;
    void* cache = head < kv_heads ? keys : values;
    const std::size_t to = ((sequence * kv_heads + head % kv_heads) * capacity + position) * pieces + piece;
    const std::size_t from = (row * (heads + cached) + heads + head) * pieces + piece;
    if constexpr (Fp8Cache) {
        const Eight eight = read(rows_of_heads, from);
        uint2 packed{};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            packed.x |= static_cast<std::uint32_t>(__nv_cvt_float_to_fp8(eight.v[i], __NV_SATFINITE, __NV_E4M3))
                        << (8 * i);
            packed.y |= static_cast<std::uint32_t>(__nv_cvt_float_to_fp8(eight.v[i + 4], __NV_SATFINITE, __NV_E4M3))
                        << (8 * i);
        }
        static_cast<uint2*>(cache)[to] = packed;
    } else {
        static_cast<uint4*>(cache)[to] = static_cast<const uint4*>(rows_of_heads)[from];
    }
}

/// A value and its number as one word that orders as they do: larger values first, then smaller numbers.
__device__ unsigned long long ordered(float value, int number) {
    const std::uint32_t bits = __float_as_uint(value);
    const std::uint32_t key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return static_cast<unsigned long long>(key) << 32 | (~static_cast<std::uint32_t>(number));
}

__device__ unsigned long long block_largest(unsigned long long value) {
    __shared__ unsigned long long best[32];
#pragma unroll
    for (int i = 16; i > 0; i /= 2) value = max(value, __shfl_xor_sync(~0u, value, i));
    if (threadIdx.x % 32 == 0) best[threadIdx.x / 32] = value;
    __syncthreads();
    for (unsigned i = 0; i < blockDim.x / 32; ++i) value = max(value, best[i]);
    return value;
}

constexpr int largest_parts = 64;

__global__ void largest_part_kernel(unsigned long long* parts, const void* x, int width) {
    let_next_start();
    wait_for_previous();
    const int pieces = width / 8;
    const std::size_t row = static_cast<std::size_t>(blockIdx.y) * pieces;
    unsigned long long best = 0;
    for (int piece = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); piece < pieces;
         piece += static_cast<int>(gridDim.x * blockDim.x)) {
        const Eight eight = read(x, row + piece);
#pragma unroll
        for (int i = 0; i < 8; ++i) best = max(best, ordered(eight.v[i], piece * 8 + i));
    }
    best = block_largest(best);
    if (threadIdx.x == 0) parts[blockIdx.y * largest_parts + blockIdx.x] = best;
}

__global__ void largest_kernel(int* to, const unsigned long long* parts) {
    let_next_start();
    wait_for_previous();
    const unsigned long long best = block_largest(parts[blockIdx.x * largest_parts + threadIdx.x]);
    if (threadIdx.x == 0) to[blockIdx.x] = static_cast<int>(~static_cast<std::uint32_t>(best));
}

dim3 blocks_for(std::size_t total) {
    return dim3(static_cast<unsigned>((total + threads - 1) / threads));
}

/// Threads of a block that takes a row: as many as there are 16-byte pieces, within reason.
int row_threads(int width) {
    if (width % 8 != 0 || width / 8 > 4 * 1024) {
        throw Failure{"a norm's width must be a multiple of 8, at most 32768, but is " + std::to_string(width)};
    }
    return std::clamp((width / 8 + 31) / 32 * 32, 32, 1024);
}

}  // namespace

void norm(void* to, const void* x, const void* weight, int rows, int width, Launch launch) {
    start(&norm_kernel<false, const void*>, dim3(static_cast<unsigned>(rows)), row_threads(width), 0, launch.overlap,
          launch.stream, to, static_cast<void*>(nullptr), x, weight, width);
}

void layer_norm(void* to, const void* x, const void* weight, const void* bias, int rows, int width, Launch launch) {
    start(&layer_norm_kernel, dim3(static_cast<unsigned>(rows)), row_threads(width), 0, launch.overlap, launch.stream,
          to, x, weight, bias, width);
}

void gelu(void* to, const void* x, int rows, int width, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(&gelu_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, to, x, total);
}

void add_norm(void* to, void* residual, const void* x, const void* weight, int rows, int width, Launch launch) {
    start(&norm_kernel<true, const void*>, dim3(static_cast<unsigned>(rows)), row_threads(width), 0, launch.overlap,
          launch.stream, to, residual, x, weight, width);
}

void add_norm(void* to, void* residual, const RowSums& x, const void* weight, int rows, int width, Launch launch) {
    start(&norm_kernel<true, RowSums>, dim3(static_cast<unsigned>(rows)), row_threads(width), 0, launch.overlap,
          launch.stream, to, residual, x, weight, width);
}

void sum_rows(void* to, const RowSums& x, int rows, int width, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(&sum_rows_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, to, x, width / 8, total);
}

void silu_product(void* to, const void* gate_up, int rows, int width, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(&silu_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, to, gate_up, width / 8, total);
}

void add(void* to, const void* a, const void* b, int rows, int width, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(&add_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, to, a, b, total);
}

void add_bias(void* x, const void* bias, int rows, int width, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(&add_bias_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, x, bias, width / 8, total);
}

void norm_heads(void* rows_of_heads, const void* weights, int rows, int heads, int kv_heads, int head_dim,
                Launch launch) {
    if (head_dim > 256) throw Failure{"norms of heads take up to 256 values, not " + std::to_string(head_dim)};
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(heads + kv_heads);
    start(&norm_heads_kernel, blocks_for(total * 32), threads, 0, launch.overlap, launch.stream, rows_of_heads, weights,
          heads, heads + kv_heads, heads + 2 * kv_heads, head_dim, total);
}

void embed(void* to, const void* table, const int* which, int rows, int width, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(&embed_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, to, table, which, width / 8,
          total);
}

void rotate(void* rows_of_heads, const float2* angles, int rows, int tokens, int first, int heads, int kv_heads,
            int head_dim, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(heads + kv_heads) *
                              static_cast<std::size_t>(head_dim / 16);
    start(&rotate_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, rows_of_heads, angles, tokens,
          first, heads + kv_heads, heads + 2 * kv_heads, head_dim, total);
}

void write_cache(void* keys, void* values, const void* rows_of_heads, int rows, int tokens, int first, int heads,
                 int kv_heads, int head_dim, int capacity, Format cache, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * (values != nullptr ? 2 : 1) *
                              static_cast<std::size_t>(kv_heads) * static_cast<std::size_t>(head_dim / 8);
    start(cache == Format::fp8 ? &write_cache_kernel<true> : &write_cache_kernel<false>, blocks_for(total), threads, 0,
          launch.overlap, launch.stream, keys, values, rows_of_heads, tokens, first, heads, kv_heads, head_dim,
          capacity, total);
}

void largest(int* to, const void* x, int rows, int width, unsigned long long* scratch, Launch launch) {
    start(&largest_part_kernel, dim3(largest_parts, static_cast<unsigned>(rows)), threads, 0, launch.overlap,
          launch.stream, scratch, x, width);
    start(&largest_kernel, dim3(static_cast<unsigned>(rows)), largest_parts, 0, launch.overlap, launch.stream, to,
          static_cast<const unsigned long long*>(scratch));
}

}  // namespace roofline::cuda::kernels
