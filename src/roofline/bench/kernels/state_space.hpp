// What layers with a state do between their products, of which every sequence has its own: a short convolution over the
// last tokens, the update of a state by one token (Mamba-2, gated delta nets), the norm of what comes out, with a gate.
#pragma once

#include <cstdint>

#include "roofline/bench/threads.hpp"

namespace roofline::bench {

/// y = silu(sum over taps + bias), or the sum itself, channel by channel, over tokens of each sequence and `taps` - 1
/// before them, which are kept in `past` ([sequence][taps - 1][channel]) and become the last ones of these. Weights as
/// [tap][channel], the newest last.
struct ConvolutionShape {
    std::int64_t batch = 0;
    std::int64_t tokens = 0;
    std::int64_t channels = 0;
    std::int64_t taps = 0;
    bool plain = false;  // the sum itself
};
void convolve(const float* x, const float* weights, const float* bias, float* past, float* y,
              const ConvolutionShape& shape, Threads& threads);

/// States of [sequence][head], and tokens that go into them one after the other; rows are [sequence][token].
struct StateShape {
    std::int64_t batch = 0;
    std::int64_t heads = 0;
    std::int64_t groups = 0;     // of heads that share keys and queries
    std::int64_t key_dim = 0;    // what a state is read by
    std::int64_t value_dim = 0;  // what comes out of it
    std::int64_t tokens = 1;     // of each sequence

    std::int64_t keys() const { return groups * key_dim; }
    std::int64_t values() const { return heads * value_dim; }
    std::int64_t state() const { return key_dim * value_dim; }
};

/// Mamba-2. A row of x is [values][keys][queries][a step for each head]. With s = ln(1 + e^step), a state H of
/// [value][key] becomes e^(-s rate) H + s value key^T, and y is H query + skip value.
inline std::int64_t state_space_width(const StateShape& shape) {
    return shape.values() + 2 * shape.keys() + shape.heads;
}
void state_space_step(const float* x, const float* rates, const float* skips, float* states, float* y,
                      const StateShape& shape, Threads& threads);

/// A gated delta net. A row of x is [queries][keys][values][a step and a share for each head]. Queries and keys are
/// brought to length 1; a state S of [value][key] decays to D = e^(-s rate) S, takes over a share 1 / (1 + e^-share) of
/// what the value differs from D key, and y is S query.
inline std::int64_t delta_width(const StateShape& shape) {
    return 2 * shape.keys() + shape.values() + 2 * shape.heads;
}
void delta_step(const float* x, const float* rates, float* states, float* y, const StateShape& shape, Threads& threads);

/// Rows of x are [values][gates]. By runs of `run` values: where one is the whole row, norm(value silu(gate)) gain, as
/// Mamba-2 has it; else norm(value) gain silu(gate), as delta nets have it for each head.
void gated_norm(const float* x, const float* gain, float* y, std::int64_t rows, std::int64_t width, std::int64_t run,
                Threads& threads);

}  // namespace roofline::bench
