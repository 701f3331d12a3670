// What a step does between its products, row by row: norms, rotary embedding, gates, writes to the cache. Plain loops
// that compilers vectorise; they cost little beside the products, and rows are shared out over threads.
#pragma once

#include <cstdint>
#include <vector>

#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/numbers.hpp"
#include "roofline/bench/threads.hpp"
#include "roofline/core/dtype.hpp"

namespace roofline::bench {

/// y = x / rms(x) * gain.
void rms_norm(const float* x, const float* gain, float* y, std::int64_t rows, std::int64_t width, Threads& threads);
/// The same in place and without a gain: `count` runs of `width` numbers at the beginning of rows `pitch` apart.
void norm_runs(float* x, std::int64_t rows, std::int64_t pitch, std::int64_t count, std::int64_t width,
               Threads& threads);
/// y = (x - mean(x)) / deviation(x) * gain + bias.
void layer_norm(const float* x, const float* gain, const float* bias, float* y, std::int64_t rows, std::int64_t width,
                Threads& threads);
/// To every row of y, where there is a bias.
void add_bias(float* y, const std::vector<float>& bias, std::int64_t rows, Threads& threads);
void add(float* stream, const float* x, std::int64_t rows, std::int64_t width, Threads& threads);
void add_two(float* stream, const float* x, const float* z, std::int64_t rows, std::int64_t width, Threads& threads);
/// y = silu(gate) * up, with gate and up beside each other in a row of x.
void silu_multiply(const float* x, float* y, std::int64_t rows, std::int64_t width, Threads& threads);

/// The same for one run, by whoever calls.
void silu_product(const float* gate, const float* up, float* y, std::int64_t run);

/// y = value / (1 + e^-gate), with values and gates beside each other in a row of x: a gate for every `run` values.
void open_gates(const float* x, float* y, std::int64_t rows, std::int64_t width, std::int64_t run, Threads& threads);

/// y = a b, number by number, in rows that lie so far apart.
struct RowsApart {
    const float* at = nullptr;
    std::int64_t pitch = 0;
};
void multiply_rows(const RowsApart& a, const RowsApart& b, float* y, std::int64_t rows, std::int64_t width,
                   Threads& threads);

/// y = gelu(x), by its approximation x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3).
void gelu(const float* x, float* y, std::int64_t rows, std::int64_t width, Threads& threads);

/// Where the rows of a fused QKV product lie and what becomes of them.
struct QkvRows {
    std::int64_t batch = 0;
    std::int64_t tokens = 0;    // of each sequence
    std::int64_t position = 0;  // of the first of them
    std::int64_t query_heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    bool latent = false;         // keys, which are values too, and nothing behind them
    std::int64_t value_dim = 0;  // 0: as wide as keys

    std::int64_t rows() const { return batch * tokens; }
    std::int64_t values() const { return value_dim > 0 ? value_dim : head_dim; }
    std::int64_t width() const { return (query_heads + kv_heads) * head_dim + (latent ? 0 : kv_heads * values()); }
};
/// Heads of rows that are turned by their position: `count` of them, of `dim` numbers each.
struct TurnedHeads {
    std::int64_t rows = 0;
    std::int64_t tokens = 0;  // of each sequence
    std::int64_t count = 0;
    std::int64_t dim = 0;
    std::int64_t apart = 0;  // from a head to the next,
    std::int64_t width = 0;  // and from a row to the next
};
/// In place; `table` from rotary_table. Halves are rotated against each other.
void rotary(float* heads, const float* table, const TurnedHeads& shape, Threads& threads);
/// Queries and keys.
void rotary(float* qkv, const float* table, const QkvRows& shape, Threads& threads);
/// cos and sin for every position of [first, first + count): count x head_dim / 2 x 2.
void rotary_table(float* table, std::int64_t first, std::int64_t count, std::int64_t head_dim);
/// Keys and values of the new tokens into the cache, in bf16 or fp32 (attention.hpp says how it lies); latent entries
/// as keys alone.
void kv_write(const float* qkv, void* keys, void* values, std::int64_t capacity, DType kv, KvLayout layout,
              const QkvRows& shape, Threads& threads);
/// Queries out of the fused rows, as attention wants them.
void take_queries(const float* qkv, float* q, const QkvRows& shape, Threads& threads);

/// [a][b][width] to [b][a][width], with other things between the rows of either where pitches are wider.
struct Turned {
    std::int64_t a = 0;
    std::int64_t b = 0;
    std::int64_t width = 0;
    std::int64_t from_pitch = 0;
    std::int64_t to_pitch = 0;
    float scale = 1.0F;
};
void turn(const float* from, float* to, const Turned& shape, Threads& threads);

void gather(const Bf16* table, const std::int32_t* tokens, float* y, std::int64_t rows, std::int64_t width,
            Threads& threads);
/// Greedy sampling: the place of the largest logit of each row.
void argmax(const float* logits, std::int32_t* best, std::int64_t rows, std::int64_t width, Threads& threads);

/// x as products want it.
void narrow_to_bf16(const float* x, Bf16* y, std::int64_t count, Threads& threads);
/// To int8, one scale for each run of `run` numbers; `sums` (may be null) gets the sum of each run's int8 values.
void narrow_to_int8(const float* x, std::int8_t* y, float* scales, float* sums, std::int64_t count, std::int64_t run,
                    Threads& threads);
/// For a row of int4 weights whose bytes are multiplied whole (neon_int4.cpp), in groups of 128. A byte holds the
/// weights l + 16 h of two places; with x_h rounded to H and x_l to L + H / 16,
///   16 (l x_l + h x_h) = (16 l) L + (l + 16 h) H,
/// so no weight has to be taken out of its byte, and x_l is off by half a unit at most, as when rounded by itself. Runs
/// of 16 L, then 16 H; scales and sums are of sixteenths. All of y is larger by `offset`.
void narrow_for_whole_bytes(const float* x, std::int8_t* y, float* scales, float* sums, std::int64_t count, int offset,
                            Threads& threads);

}  // namespace roofline::bench
