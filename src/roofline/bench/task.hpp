// What is to be run: the operators of a model's step as kernels see them, with their real shapes. Made from the lowered
// model, so every task has the name, flops and bytes of the record that `predict` gives for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "roofline/bench/stored_as.hpp"
#include "roofline/bench/weight_format.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/core/record.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::bench {

enum class TaskKind {
    product,
    absorption,  // products of each head: into queries before latent attention, and out of its results
    attention,
    norm,            // by the root mean square
    layer_norm,      // by mean and deviation, with a bias
    gated_norm,      // by the root mean square, and a gate
    convolution,     // over the last tokens
    state_space,     // a state, and tokens that go into it: Mamba-2
    delta_rule,      // the same, of a gated delta net
    selective_scan,  // of every channel: Mamba-1
    add,
    add_two,           // of attention and FFN, where they read the same input
    activation,        // of a gate, times what it gates
    plain_activation,  // without a gate
    output_gate,       // what attention found, times 1 / (1 + e^-gate), of each number or of a head
    multiply,          // two numbers beside each other
    rotary,
    kv_write,
    index_write,   // small keys of entries
    index_scores,  // and how well these suit a token
    embedding,
    sampling,
    choice,     // of experts, by a router's scores
    expert_sum  // of a row's results by its experts
};
std::string_view name(TaskKind kind);

struct Task {
    std::string name;  // layers.ffn.gate_up
    TaskKind kind = TaskKind::product;
    bool prefill = false;

    // Products: y[m, n] = x[m, k] W[n, k]^T.
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    std::int64_t experts = 1;  // more: each has weights of its own and a share of the rows
    bool settled = false;      // who they are is known before the kernel that goes before has ended
    WeightFormat weights = WeightFormat::bf16;
    OtherRows others = {};
    DType activations = DType::bf16;  // what the weights are multiplied with

    // Attention, rotary, kv_write; and rows x width for the rest.
    std::int64_t batch = 0;
    std::int64_t tokens = 0;   // new ones of each sequence
    std::int64_t context = 0;  // entries each sequence has in reach, the new ones included
    std::int64_t window = 0;   // a prompt: how many of the newest a token sees, where that is not all of them
    std::int64_t query_heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t value_dim = 0;  // of values, where they are narrower than keys; 0: as wide as these
                                 // (absorption: from head_dim to k, and from k to value_dim)
    bool latent = false;  // the cache holds one entry a token: the key of all heads, their value at its beginning
    bool sinks = false;   // of each query head: the score of an entry without a value
    DType kv = DType::bf16;
    std::int64_t rows = 0;
    std::int64_t width = 0;   // choice: experts there are
    std::int64_t chosen = 0;  // choice, expert_sum: experts of a row; attention: entries that a token sees, 0: all
    std::int64_t run = 1;     // gated_norm: values that are normed together; output_gate: that share a gate
    std::int64_t taps = 0;    // convolution: tokens it looks at,
    bool plain = false;       // and that no activation follows it

    // Of one call, as `predict` counts them.
    double count = 1.0;
    double flops = 0.0;
    double bytes = 0.0;    // through memory: weights, keys and values, activations that do not fit the chip
    double rotated = 0.0;  // weights, keys and values: what a step would find cold
};

/// The first row of an expert; of the one after the last: all of them.
inline std::int64_t first_row(const Task& task, std::int64_t expert) {
    return expert * task.m / task.experts;
}

/// Matrices of a product: of each expert, or two of each head.
inline std::int64_t matrices_of(const Task& task) {
    return task.kind == TaskKind::absorption ? 2 * task.query_heads : task.experts;
}

/// Values of a head.
inline std::int64_t value_width(const Task& task) {
    return task.value_dim > 0 ? task.value_dim : task.head_dim;
}
/// Keys as wide as values, and each for itself: what most kernels take for granted.
inline bool has_even_heads(const Task& task) {
    return !task.latent && value_width(task) == task.head_dim;
}
/// Heads that lie side by side in the rows that are turned and written to a cache: of queries, keys and values, or,
/// where entries are latent, of queries and the entry.
inline std::int64_t fused_heads(const Task& task) {
    return task.query_heads + (task.latent ? 1 : 2) * task.kv_heads;
}

/// Where a state is kept for each sequence, of which there are `query_heads` of head_dim x value_dim, `kv_heads` groups
/// of them with keys of their own. (Mamba-1: one of head_dim numbers for each channel.)
inline bool keeps_state(const Task& task) {
    return task.kind == TaskKind::state_space || task.kind == TaskKind::delta_rule ||
           task.kind == TaskKind::selective_scan;
}

/// The same kernel on the same sizes, whatever it is called.
bool same_work(const Task& a, const Task& b);
/// "1 x 4096 x 14336 bf16": m, n, k; "8 x 1 of 1024, 32/8 heads of 128".
std::string describe(const Task& task);

/// The type that kernels keep a KV cache of this format in; empty for those that none keeps.
std::optional<DType> cache_type(const Format& format);
/// Whether kernels for processors keep a KV cache in it.
constexpr bool kept_by_processors(DType cache) {
    return cache == DType::bf16 || cache == DType::fp32;
}
/// Whether a norm is one by mean and deviation.
bool takes_off_the_mean(const model::Operator& norm);
/// One for every record of the stage, in order: a task, or why there is none.
struct Planned {
    std::optional<Task> task;
    std::string reason;
    bool idle = false;  // there is nothing for it to do in this step
};
std::vector<Planned> plan_tasks(const predict::Scenario& scenario, const predict::StageReport& stage);

}  // namespace roofline::bench
