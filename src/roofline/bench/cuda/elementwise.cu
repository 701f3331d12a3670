// The kernels of elementwise.cuh: 16 bytes a thread, one row a block where a row is summed.
#include <algorithm>
#include <bit>
#include <type_traits>

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

__device__ float silu(float x) {
    return x / (1.0f + __expf(-x));
}

__device__ void add_to(Eight& sum, const Eight& other, float factor = 1.0f) {
#pragma unroll
    for (int i = 0; i < 8; ++i) sum.v[i] += factor * other.v[i];
}

/// Eight values of a row of x.
__device__ Eight eight_of(const Addend& x, std::size_t row, int piece, int pieces) {
    Eight sum = read(x.rows, row * pieces + piece);
    if (x.more != nullptr) add_to(sum, read(x.more, (x.same_for_all ? 0 : row * pieces) + piece));
    return sum;
}
__device__ Eight eight_of(const RowSums& x, std::size_t row, int piece, int pieces) {
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
__device__ Eight eight_of(const Apart& x, std::size_t row, int piece, int) {
    return read(x.rows, row * x.row + piece);
}

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

constexpr int most_row_threads = 512;

/// A row of up to 8 x Most x threads values, kept in registers between its passes. `to_row`: pieces from one to the
/// next.
template <bool Add, bool Mean, int Most, class Rows>
__global__ __launch_bounds__(most_row_threads) void norm_kernel(void* to, int to_row, void* residual, Rows x,
                                                                NormWeights weights, int width) {
    let_next_start();
    const int pieces = width / 8;
    const std::size_t row = static_cast<std::size_t>(blockIdx.x) * pieces;
    const auto each_piece = [&](const auto& take) {
#pragma unroll
        for (int i = 0; i < Most; ++i) {
            const int piece = static_cast<int>(threadIdx.x + i * blockDim.x);
            if (piece < pieces) take(i, piece);
        }
    };
    // No kernel writes a norm's weights: they come while the kernel before ends.
    uint4 gains[Most];
    uint4 biases[Mean ? Most : 1];
    each_piece([&](int i, int piece) {
        gains[i] = static_cast<const uint4*>(weights.gains)[piece];
        if constexpr (Mean) biases[i] = static_cast<const uint4*>(weights.bias)[piece];
    });
    wait_for_previous();
    Eight mine[Most];
    float mean = 0.0f;
    each_piece([&](int i, int piece) {
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
    each_piece([&](int i, int) {
#pragma unroll
        for (int j = 0; j < 8; ++j) squares += (mine[i].v[j] - mean) * (mine[i].v[j] - mean);
    });
    const float factor = rsqrtf(block_sum(squares) / static_cast<float>(width) + epsilon);
    each_piece([&](int i, int piece) {
        const Eight gain = read(&gains[i], 0);
        Eight normed = {};
        if constexpr (Mean) normed = read(&biases[i], 0);
#pragma unroll
        for (int j = 0; j < 8; ++j) normed.v[j] += (mine[i].v[j] - mean) * factor * gain.v[j];
        write(to, static_cast<std::size_t>(blockIdx.x) * to_row + piece, normed);
    });
}

template <class Rows>
__global__ void add_rows_kernel(void* residual, Rows x, int pieces, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    Eight sum = eight_of(x, index / pieces, static_cast<int>(index % pieces), pieces);
    add_to(sum, read(residual, index));
    write(residual, index, sum);
}

__global__ void row_gates_kernel(float* to, const void* x, const void* weight, int pieces) {
    let_next_start();
    wait_for_previous();
    float sum = 0.0f;
    for (int piece = static_cast<int>(threadIdx.x); piece < pieces; piece += static_cast<int>(blockDim.x)) {
        const Eight mine = read(x, static_cast<std::size_t>(blockIdx.x) * pieces + piece);
        const Eight factor = read(weight, piece);
#pragma unroll
        for (int i = 0; i < 8; ++i) sum += mine.v[i] * factor.v[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) to[blockIdx.x] = 1.0f / (1.0f + __expf(-sum));
}

template <bool Holds>
__global__ void gelu_kernel(void* to, const void* x, const void* bias, int pieces, std::size_t total) {
    constexpr float factor = 1.59576912f;  // 2 sqrt(2 / pi)
    if constexpr (!Holds) let_next_start();
    wait_for_previous();
    if constexpr (Holds) let_next_start();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    Eight eight = read(x, index);
    if (bias != nullptr) add_to(eight, read(bias, index % pieces));
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

template <bool Holds>
__global__ void silu_kernel(void* to, const void* gate_up, const void* bias, int pieces, std::size_t total) {
    if constexpr (!Holds) let_next_start();
    wait_for_previous();
    if constexpr (Holds) let_next_start();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    const std::size_t row = index / pieces;
    const std::size_t piece = index % pieces;
    Eight gate = read(gate_up, row * 2 * pieces + piece);
    Eight up = read(gate_up, (row * 2 + 1) * pieces + piece);
    if (bias != nullptr) {
        add_to(gate, read(bias, piece));
        add_to(up, read(bias, pieces + piece));
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) up.v[i] *= silu(gate.v[i]);
    write(to, index, up);
}

__global__ void open_gates_kernel(void* to, Apart x, Apart gates, int pieces, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    Eight opened = eight_of(x, index / pieces, static_cast<int>(index % pieces), pieces);
    const Eight gate = eight_of(gates, index / pieces, static_cast<int>(index % pieces), pieces);
#pragma unroll
    for (int i = 0; i < 8; ++i) opened.v[i] /= 1.0f + __expf(-gate.v[i]);
    write(to, index, opened);
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

__global__ void add_kernel(void* to, const void* a, const void* b, const void* c, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    Eight sum = read(a, index);
    add_to(sum, read(b, index));
    if (c != nullptr) add_to(sum, read(c, index));
    write(to, index, sum);
}

__global__ void add_bias_kernel(void* x, const void* bias, int pieces, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    Eight sum = read(x, index);
    add_to(sum, read(bias, index % pieces));
    write(x, index, sum);
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
    turn(low, high, angles + position * (head_dim / 2) + piece * 8);
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
        static_cast<uint2*>(cache)[to] = as_fp8(read(rows_of_heads, from));
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
    if (width % 8 != 0 || width / 8 > 8 * most_row_threads) {
        throw Failure{"a norm's width must be a multiple of 8, at most 32768, but is " + std::to_string(width)};
    }
    return std::clamp((width / 8 + 31) / 32 * 32, 32, most_row_threads);
}

}  // namespace

namespace {

template <bool Add, class Rows>
void start_norm(void* to, int to_row, void* residual, const Rows& x, const NormWeights& weights, int rows, int width,
                Launch launch) {
    const auto start_with = [&](auto* kernel) {
        start(kernel, dim3(static_cast<unsigned>(rows)), row_threads(width), 0, launch.overlap, launch.stream, to,
              to_row / 8, residual, x, weights, width);
    };
    const auto start_for = [&]<int Most>(std::integral_constant<int, Most>) {
        if (weights.bias != nullptr) {
            start_with(&norm_kernel<Add, true, Most, Rows>);
        } else {
            start_with(&norm_kernel<Add, false, Most, Rows>);
        }
    };
    const int each = (width / 8 + most_row_threads - 1) / most_row_threads;
    if (each <= 1) {
        start_for(std::integral_constant<int, 1>{});
    } else if (each <= 2) {
        start_for(std::integral_constant<int, 2>{});
    } else if (each <= 4) {
        start_for(std::integral_constant<int, 4>{});
    } else {
        start_for(std::integral_constant<int, 8>{});
    }
}

template <class Rows>
void start_add_rows(void* residual, const Rows& x, int rows, int width, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(&add_rows_kernel<Rows>, blocks_for(total), threads, 0, launch.overlap, launch.stream, residual, x, width / 8,
          total);
}

}  // namespace

void norm(void* to, const void* x, const void* weight, int rows, int width, Launch launch) {
    norm_apart(to, width, x, width, weight, rows, width, launch);
}

void norm_apart(void* to, int to_row, const void* x, int x_row, const void* weight, int rows, int width,
                Launch launch) {
    start_norm<false>(to, to_row, nullptr, Apart{x, x_row / 8}, {weight, nullptr}, rows, width, launch);
}

void layer_norm(void* to, const void* x, const void* weight, const void* bias, int rows, int width, Launch launch) {
    start_norm<false>(to, width, nullptr, Apart{x, width / 8}, {weight, bias}, rows, width, launch);
}

void add_norm(void* to, void* residual, const Addend& x, const NormWeights& weights, int rows, int width,
              Launch launch) {
    start_norm<true>(to, width, residual, x, weights, rows, width, launch);
}

void add_norm(void* to, void* residual, const RowSums& x, const NormWeights& weights, int rows, int width,
              Launch launch) {
    start_norm<true>(to, width, residual, x, weights, rows, width, launch);
}

void add_rows(void* residual, const Addend& x, int rows, int width, Launch launch) {
    start_add_rows(residual, x, rows, width, launch);
}

void add_rows(void* residual, const RowSums& x, int rows, int width, Launch launch) {
    start_add_rows(residual, x, rows, width, launch);
}

void gelu(void* to, const void* x, int rows, int width, Launch launch, const void* bias, bool holds) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(holds ? &gelu_kernel<true> : &gelu_kernel<false>, blocks_for(total), threads, 0, launch.overlap,
          launch.stream, to, x, bias, width / 8, total);
}

void open_gates(void* to, const void* x, int x_row, const void* gates, int gate_row, int rows, int width,
                Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(&open_gates_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, to, Apart{x, x_row / 8},
          Apart{gates, gate_row / 8}, width / 8, total);
}

void gated_norm(const GatedRows& rows, Launch launch) {
    if (rows.run % 8 != 0 || rows.width % rows.run != 0) {
        throw Failure{"runs of a norm with gates have a multiple of 8 values, not " + std::to_string(rows.run)};
    }
    if (rows.run == rows.width) {
        const Gated x{{rows.values, rows.value_row / 8}, {rows.gates, rows.gate_row / 8}};
        start_norm<false>(rows.to, rows.width, nullptr, x, {rows.gains, nullptr}, rows.rows, rows.width, launch);
        return;
    }
    if (rows.run > 256)
        throw Failure{"runs of a norm with gates have up to 256 values, not " + std::to_string(rows.run)};
    const int lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(rows.run / 8)));
    const std::size_t total = product_of({rows.rows, rows.width / rows.run});
    start(&gated_runs_kernel, blocks_for(total * static_cast<std::size_t>(lanes)), threads, 0, launch.overlap,
          launch.stream, rows, lanes, total);
}

void row_gates(float* to, const void* x, const void* weight, int rows, int width, Launch launch) {
    start(&row_gates_kernel, dim3(static_cast<unsigned>(rows)), threads, 0, launch.overlap, launch.stream, to, x,
          weight, width / 8);
}

void sum_rows(void* to, const RowSums& x, int rows, int width, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(&sum_rows_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, to, x, width / 8, total);
}

void silu_product(void* to, const void* gate_up, int rows, int width, Launch launch, const void* bias, bool holds) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(holds ? &silu_kernel<true> : &silu_kernel<false>, blocks_for(total), threads, 0, launch.overlap,
          launch.stream, to, gate_up, bias, width / 8, total);
}

void add(void* to, const void* a, const void* b, int rows, int width, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(&add_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, to, a, b,
          static_cast<const void*>(nullptr), total);
}

void add_two(void* to, const void* x, const void* a, const void* b, int rows, int width, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(&add_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, to, x, a, b, total);
}

void add_bias(void* x, const void* bias, int rows, int width, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(&add_bias_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, x, bias, width / 8, total);
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
