// The weights and caches of a model's layers on the device (bench/stack.hpp has their shapes), random as they are.
#pragma once

#include <cstdint>

#include "roofline/bench/cuda/memory.cuh"
#include "roofline/bench/cuda/random_weights.cuh"
#include "roofline/bench/stack.hpp"

namespace roofline::cuda::kernels {

using bench::AttentionShape;
using bench::FfnShape;
using bench::HeadNorm;
using bench::LayerShape;
using bench::ProductShape;
using bench::StackShape;
using bench::StateMixerShape;

/// Sizes of shapes were looked at when they were read (step.cu): they fit.
inline int size_of(std::int64_t value) {
    return static_cast<int>(value);
}

/// What is run of a model.
struct StepShape {
    bool prefill = false;
    int batch = 1;
    int tokens = 1;         // new ones of a sequence
    int context = 1;        // keys the last of them sees, where no window is in the way
    bool expanded = false;  // latent entries: attention is over keys and values made of them, not over themselves

    int rows() const { return batch * tokens; }
};

/// A product's weights with their scales, and its bias where there is one. Several of one shape lie one after another.
struct Matrix {
    RandomWeights weights;
    Memory bias;  // bf16
    int n = 0;    // rows of each of them
    int k = 0;
    bool narrow = false;  // activations may be made as narrow

    double bytes() const { return weights.bytes() + static_cast<double>(bias.bytes()); }
};

/// By the root mean square; where the model takes off means, with a bias. Without gains there is none.
struct Norm {
    Memory gains;
    Memory bias;

    explicit operator bool() const { return gains.bytes() > 0; }
};

/// What a layer with a state has beside its products (states.cuh).
struct StateWeights {
    Memory taps;             // bf16 [tap][channel]
    Memory bias;             // bf16 [channel]
    Memory rates;            // float [head]
    Memory skips;            // float [head]
    Memory gains;            // bf16, of a head's values or, Mamba-2, of all of them
    Memory past;             // bf16 [sequence][taps][channel]
    Memory states;           // float [sequence][head][value][key]
    std::uint32_t seed = 0;  // of the states

    /// As they were at first.
    void renew(Memory& to, cudaStream_t stream) const;
};

struct LayerWeights {
    Norm before_attention, after_attention, before_ffn, after_ffn;
    // Grouped heads: queries, keys and values side by side. Latent entries: queries, or the latent rows that they are
    // made of, and the entry. States: all that goes in.
    Matrix qkv;
    Memory head_norms;      // of each head: of queries, then of keys; of all of them: queries', then keys'
    Matrix q_up;            // of latent rows of queries
    Memory query_norm;      // of these
    Memory entry_norm;      // of the part of an entry that is not turned
    Matrix kv_up;           // where entries are expanded: of each head its key's part, then its value
    Matrix into_queries;    // where they are not: [head][rank, unturned], and
    Matrix out_of_results;  // [head][value, rank]
    Matrix out;
    Memory sinks;   // float [query heads]
    Memory keys;    // [sequence, kv head, kept, dimension], or latent entries [sequence, kept, entry]
    Memory values;  // none of latent entries
    StateWeights state;
    Matrix router;
    Matrix up;  // of all experts, where there are some
    Matrix down;
    Matrix shared_up;
    Matrix shared_down;
    Memory shared_gate;  // bf16 [hidden]
};

/// The format of a cache of a type: bf16 or fp8.
Format format_of(DType cache);

/// Random weights whose products keep the size of what they multiply; `copies` of them one after another.
Matrix make_matrix(const ProductShape& shape, int copies, std::uint32_t seed, cudaStream_t stream);
/// bf16, uniform in +-amplitude.
Memory make_vector(std::size_t values, float amplitude, std::uint32_t seed, cudaStream_t stream);
Norm make_norm(int width, bool with_bias, std::uint32_t seed, cudaStream_t stream);
LayerWeights make_layer(const StackShape& stack, const LayerShape& layer, const StepShape& step, std::uint32_t seed,
                        cudaStream_t stream);

}  // namespace roofline::cuda::kernels
