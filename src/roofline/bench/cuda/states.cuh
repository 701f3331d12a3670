// What layers with a state (Mamba-2, gated delta nets) do between their products: a short convolution over the last
// tokens, the update of a state by each token, a norm with a gate. Formulas are those of kernels/state_space.hpp.
#pragma once

#include <cstdint>

#include "roofline/bench/cuda/elementwise.cuh"

namespace roofline::cuda::kernels {

constexpr int most_taps = 4;

/// Of a convolution over tokens, channel by channel. The last inputs of a sequence are kept in a ring,
/// bf16 [sequence][taps][channels], the one of position p at p % taps: what a token writes no token beside it reads.
struct Convolution {
    const void* weights = nullptr;  // bf16 [tap][channel], the newest last; null: what goes in is convolved already
    const void* bias = nullptr;     // bf16 [channel]
    void* past = nullptr;
    int taps = 0;
    int channels = 0;
    int position = 0;  // of the first new token of a sequence; prompts begin at 0, with nothing before them
};

/// to = silu(convolution of x and its past), with `x_row` numbers from one row of x to the next. 2 taps rows channels
/// FLOP and the activation; 4 rows channels bytes, weights, and the past read and written.
void convolve(void* to, const void* x, int x_row, const Convolution& by, int rows, int tokens, Launch launch);

/// Rows as the first product of a layer leaves them, and the states that they go into: all that lies between the
/// products, but for Mamba-2's norm. For one token of few sequences it is one kernel. Convolved are, for Mamba-2,
/// values, keys and queries, in that order; for a delta net queries, keys and values. Behind what is convolved and
/// gates there is a step of each head, and of a delta net a share of each. A token is 5 (Mamba-2) or 7 FLOP for each
/// number of the states; these are read and written once: 8 bytes each.
struct StateRows {
    const void* rows = nullptr;  // bf16
    int width = 0;               // numbers from one row to the next
    int convolved_at = 0;        // in a row; multiples of 8
    int gates_at = -1;           // less than 0: there are none, and no norm
    int heads_at = 0;
    Convolution convolution;
    void* convolved = nullptr;     // bf16 [row][channels], to work with where there is a convolution
    void* chunks = nullptr;        // `chunk_bytes`, to work with; null: a prompt goes token by token
    const float* rates = nullptr;  // [head]
    const float* skips = nullptr;  // [head], of Mamba-2
    const void* gains = nullptr;   // bf16 [value_dim] of a delta net's norm, where there are gates
    float* states = nullptr;       // [sequence][head][value][key]
    void* to = nullptr;            // bf16 [row][head][value]
    int sequences = 0;
    int tokens = 1;  // of each
    int heads = 0;
    int groups = 0;
    int key_dim = 0;
    int value_dim = 0;
    bool delta = false;
    bool fresh = false;  // states begin as zeros, and are not read
};
void run_states(const StateRows& rows, Launch launch);

/// Fewer tokens of a sequence go one by one.
constexpr int least_for_chunks = 32;

/// What `chunks` has to hold for rows of these sizes; 0: they do not go in chunks (states_chunks.cuh).
std::size_t chunk_bytes(const StateRows& rows);

}  // namespace roofline::cuda::kernels
