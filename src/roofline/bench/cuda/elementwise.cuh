// The small operators of a layer, all on bf16 activations: they move little and mostly cost their launch. FLOPs and
// bytes of each are beside its declaration; weights of norms and the table of angles count, once.
#pragma once

#include <cstddef>
#include <cuda_runtime.h>

#include "roofline/bench/cuda/memory.cuh"

namespace roofline::cuda::kernels {

/// How small kernels are started.
struct Launch {
    cudaStream_t stream = nullptr;
    bool overlap = false;
};

/// Where rows go that are made as narrow as the weights by which they are multiplied (narrow.cuh): e4m3 or int8 with a
/// scale for each row, or for each 128 of its values. A kernel that makes rows may leave them there too: 3 rows width
/// FLOP more; rows width bytes, and 4 for each scale.
struct NarrowTo {
    uint2* values = nullptr;  // null: nowhere
    float* scales = nullptr;
    int stride = 0;  // from the scales of 128 values of all rows to those of the next
    bool blocks = false;
    bool whole = false;  // int8

    __host__ __device__ explicit operator bool() const { return values != nullptr; }
};

/// to = x / rms(x) * weight, a row at a time. 4 rows width FLOP; 4 rows width + 2 width bytes.
void norm(void* to, const void* x, const void* weight, int rows, int width, Launch launch, const NarrowTo& narrow = {});

/// The same of rows that do not follow each other: `to_row` and `x_row` numbers from one to the next.
void norm_apart(void* to, int to_row, const void* x, int x_row, const void* weight, int rows, int width, Launch launch);

/// to = (x - mean(x)) / deviation(x) * weight + bias. 7 rows width FLOP; 4 rows width + 4 width bytes.
void layer_norm(void* to, const void* x, const void* weight, const void* bias, int rows, int width, Launch launch,
                const NarrowTo& narrow = {});

/// Rows that are added to others.
struct Addend {
    const void* rows = nullptr;
    const void* more = nullptr;  // added too
    bool same_for_all = false;   // `more` is one row: a bias
};

/// Rows that are sums of rows of others, each with its share.
struct RowSums {
    const void* rows = nullptr;     // [place, width]
    const int* places = nullptr;    // [row][count]
    const float* shares = nullptr;  // [row][count]
    int count = 0;
    const void* beside = nullptr;  // [row, width]: added as they are,
    const float* gates = nullptr;  // or each with its share
};

/// A norm's weights: without a bias it is by the root mean square, with one the mean is taken off.
struct NormWeights {
    const void* gains = nullptr;
    const void* bias = nullptr;
};

/// residual += x; to = its norm. 5 rows width FLOP (8 with a mean), and 1 or 2 for each row added; 2 rows width bytes
/// for each row added, 6 rows width and the weights.
void add_norm(void* to, void* residual, const Addend& x, const NormWeights& weights, int rows, int width, Launch launch,
              const NarrowTo& narrow = {});
void add_norm(void* to, void* residual, const RowSums& x, const NormWeights& weights, int rows, int width,
              Launch launch, const NarrowTo& narrow = {});

/// residual += x, as above.
void add_rows(void* residual, const Addend& x, int rows, int width, Launch launch);
void add_rows(void* residual, const RowSums& x, int rows, int width, Launch launch);

/// to = the sums. 2 rows width count FLOP; 2 rows width (count + 1) bytes.
void sum_rows(void* to, const RowSums& x, int rows, int width, Launch launch);

/// to = 1 / (1 + exp(-x . weight)), a number a row. 2 rows width FLOP; 2 rows width + 2 width bytes.
void row_gates(float* to, const void* x, const void* weight, int rows, int width, Launch launch);

/// to = silu(gate) up, gate and up side by side in a row of 2 width, a bias of both added first where there is one.
/// 5 rows width FLOP; 6 rows width bytes. `holds`: the next kernel does not begin before the one before this has ended.
void silu_product(void* to, const void* gate_up, int rows, int width, Launch launch, const void* bias = nullptr,
                  bool holds = false);

/// The same, narrow alone. 8 rows width FLOP; 5 rows width bytes.
void silu_product(const NarrowTo& to, const void* gate_up, int rows, int width, Launch launch,
                  const void* bias = nullptr, bool holds = false);

/// Rows as they are, narrow. 3 rows width FLOP; 3 rows width bytes, and 4 for each scale.
void narrow_rows(const NarrowTo& to, const void* x, int rows, int width, Launch launch);

/// to = gelu(x), by its approximation with a tangent, of x and its bias where there is one. 8 rows width FLOP; 4 rows
/// width bytes. `holds`: as above.
void gelu(void* to, const void* x, int rows, int width, Launch launch, const void* bias = nullptr, bool holds = false);

/// to = x / (1 + exp(-gate)), of rows that may lie apart: `x_row` and `gate_row` numbers from one to the next. 4 rows
/// width FLOP; 6 rows width bytes.
void open_gates(void* to, const void* x, int x_row, const void* gates, int gate_row, int rows, int width,
                Launch launch);

/// Rows of values and of gates, which may lie apart. By runs of `run` values: where one is the whole row,
/// norm(value silu(gate)) gain, as Mamba-2 has it; else norm(value) gain silu(gate), as delta nets have it for each
/// head. 8 rows width FLOP; 6 rows width + 2 run bytes.
struct GatedRows {
    void* to = nullptr;  // [row][width]
    const void* values = nullptr;
    int value_row = 0;  // numbers from one row to the next
    const void* gates = nullptr;
    int gate_row = 0;
    const void* gains = nullptr;  // [run]
    int rows = 0;
    int width = 0;
    int run = 0;
};
void gated_norm(const GatedRows& rows, Launch launch);

/// to = a + b. rows width FLOP; 6 rows width bytes.
void add(void* to, const void* a, const void* b, int rows, int width, Launch launch);

/// to = x + a + b. 2 rows width FLOP; 8 rows width bytes.
void add_two(void* to, const void* x, const void* a, const void* b, int rows, int width, Launch launch);

/// x += bias, the same for each row, in place. rows width FLOP; 4 rows width + 2 width bytes.
void add_bias(void* x, const void* bias, int rows, int width, Launch launch);

/// Rows of a table, by their number. No FLOP; 4 rows width + 4 rows bytes.
void embed(void* to, const void* table, const int* which, int rows, int width, Launch launch);

/// Turns the first `heads` + `kv_heads` heads of each row (the queries and keys of query | key | value), in place.
/// `angles` is [position][head_dim / 2] of cosine and sine; row r is at position first + r % tokens.
/// 3 rows (heads + kv_heads) head_dim FLOP; 4 rows (heads + kv_heads) head_dim + 4 tokens head_dim bytes.
void rotate(void* rows_of_heads, const float2* angles, int rows, int tokens, int first, int heads, int kv_heads,
            int head_dim, Launch launch);

/// Copies keys and values of each row into the cache [sequence, kv head, capacity, head_dim] at position
/// first + r % tokens; keys alone where `values` is null, and there are none in the rows. No FLOP; rows 2 kv_heads
/// head_dim (2 + bytes of a cached value) bytes, or half of it.
void write_cache(void* keys, void* values, const void* rows_of_heads, int rows, int tokens, int first, int heads,
                 int kv_heads, int head_dim, int capacity, Format cache, Launch launch);

/// The number of the largest value of each row. No FLOP; 2 rows width bytes. `scratch`: rows x 64 words of 8 bytes.
void largest(int* to, const void* x, int rows, int width, unsigned long long* scratch, Launch launch);

}  // namespace roofline::cuda::kernels
