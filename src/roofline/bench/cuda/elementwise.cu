// The kernels of elementwise.cuh but for norms (norms.cu) and what makes rows narrow (narrow.cu): 16 bytes a thread,
// one row a block where a row is summed.
#include "roofline/bench/cuda/row_pieces.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr int threads = 256;

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

template <class Rows>
void start_add_rows(void* residual, const Rows& x, int rows, int width, Launch launch) {
    const std::size_t total = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width / 8);
    start(&add_rows_kernel<Rows>, blocks_for(total), threads, 0, launch.overlap, launch.stream, residual, x, width / 8,
          total);
}

}  // namespace

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
