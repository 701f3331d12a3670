// One operator at one shape: made, checked against float64, timed. What cannot be run is thrown as Failure, and so is a
// wrong answer: a wrong kernel has no speed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "roofline/bench/cuda/layer_weights.cuh"
#include "roofline/bench/cuda/memory.cuh"
#include "roofline/bench/cuda/timing.cuh"

namespace roofline::cuda::kernels {

struct ProductTask {
    int m = 0;
    int n = 0;
    int k = 0;
    Format weights = Format::bf16;
    bool narrow_activations = false;  // in the weights' eight bits; else bf16
    int experts = 1;                  // more: each has weights of its own and a share of the rows
    bool settled =
        false;  // which experts have rows was known before the call before began, as it is to a second product
};

struct AttentionTask {
    bool prefill = false;
    int batch = 0;
    int query_heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    int context = 0;
    int tokens = 1;
    Format cache = Format::bf16;
    int value_dim = 0;
    bool latent = false;  // the cache holds one entry a token: the key of all heads, their value at its beginning
    int window = 0;       // newest keys that a token sees, itself included; 0: all of them
    bool sinks = false;   // of each query head: the score of an entry without a value
};

/// Two products of each head: from head_dim to rank, into queries, and from rank to value_dim, out of results.
struct HeadsTask {
    int rows = 0;
    int heads = 0;
    int head_dim = 0;
    int value_dim = 0;
    int rank = 0;
    Format weights = Format::bf16;
};

struct ConvolutionTask {
    int sequences = 0;
    int tokens = 1;
    int channels = 0;
    int taps = 0;
};

/// The states of each sequence, and tokens that go into them one after the other.
struct StatesTask {
    StateMixerShape shape;  // without its products
    int sequences = 0;
    int tokens = 1;
};

struct SmallTask {
    std::string kind;
    int rows = 0;
    int width = 0;
    int heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    int chosen = 0;               // choice, expert_sum: experts of a row; `width` of a choice: experts there are
    Format cache = Format::bf16;  // kv_write
    int run = 0;                  // gated_norm: values that are normed together
    bool latent = false;          // rotary, kv_write: beside the queries' heads there is an entry alone
};

/// A way of doing a task.
struct Tried {
    std::string name;
    double time = 0.0;            // 0: it could not run
    std::optional<double> error;  // where its answer was looked at
};

struct Outcome {
    Timing timing;
    double flops = 0.0;
    double bytes = 0.0;
    double error = 0.0;
    double tolerance = 0.0;
    int buffers = 1;
    std::string variant;  // the fastest that is right
    std::vector<Tried> tried;
};

/// How long the chosen way is timed, and whether the answers of the others are looked at too.
struct Effort {
    double seconds = 0.05;
    bool check_all = false;
};

/// Backends: "own" and "cublaslt" for products, "own" and "cudnn" for attention, "own" for the rest.
Outcome run(const Clock& clock, const ProductTask& task, const std::string& backend, const Effort& effort);
Outcome run(const Clock& clock, const AttentionTask& task, const std::string& backend, const Effort& effort);
Outcome run(const Clock& clock, const HeadsTask& task, const std::string& backend, const Effort& effort);
Outcome run(const Clock& clock, const ConvolutionTask& task, const std::string& backend, const Effort& effort);
Outcome run(const Clock& clock, const StatesTask& task, const std::string& backend, const Effort& effort);
Outcome run(const Clock& clock, const SmallTask& task, const std::string& backend, double seconds);

/// Throws where the error is over the tolerance.
void accept(const Outcome& outcome);

/// The fastest of the ways tried whose answer is right, by `error_of` their index. Throws where none is.
std::size_t choose(Outcome& outcome, bool check_all, const std::function<double(std::size_t)>& error_of);

}  // namespace roofline::cuda::kernels
