// Our own attention on a CPU: queries of a group share every key and value that is loaded, long contexts are split over
// threads and combined, scores never leave the first-level cache (online softmax).
//
// Keys and values lie as [sequence][KV head][position][head_dim], queries and the output as [row][head][head_dim], a
// row for every new token.
#pragma once

#include <cstdint>
#include <vector>

#include "roofline/bench/numbers.hpp"
#include "roofline/bench/threads.hpp"
#include "roofline/core/dtype.hpp"

namespace roofline::bench {

struct AttentionCall {
    std::int64_t batch = 0;
    std::int64_t tokens = 1;  // new ones of each sequence, the last of the context
    std::int64_t query_heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t context = 0;   // entries to attend to, the new ones included
    std::int64_t capacity = 0;  // entries that there is room for: the distance between heads
    DType kv = DType::bf16;     // bf16 or fp32
    const float* q = nullptr;
    const void* keys = nullptr;
    const void* values = nullptr;
    float* out = nullptr;
};

/// What has been seen so far of some positions by some rows of queries: the largest score, the sum of the weights and
/// the weighted values, for each row.
struct AttentionState {
    float* largest = nullptr;
    float* sum = nullptr;
    float* values = nullptr;  // rows x head_dim
};

struct AttentionKernels {
    const char* name;
    /// `rows` queries (scaled, in `q` as fp32 and in `narrow` as bf16) against `count` positions; goes on from `state`.
    template <class T>
    using Piece = void (*)(const float* q, const Bf16* narrow, std::int64_t rows, const T* keys, const T* values,
                           std::int64_t count, std::int64_t head_dim, const AttentionState& state);
    Piece<Bf16> bf16;
    Piece<float> fp32;
};

const AttentionKernels& portable_attention();
const AttentionKernels* neon_attention();
const AttentionKernels* avx2_attention();
const AttentionKernels* avx512_attention();
const AttentionKernels& best_attention();

/// Room for partial results, kept between calls.
struct AttentionScratch {
    std::vector<float> floats;
    std::vector<Bf16> narrow;
};

void attend(const AttentionCall& call, const AttentionKernels& kernels, Threads& threads, AttentionScratch& scratch);

}  // namespace roofline::bench
