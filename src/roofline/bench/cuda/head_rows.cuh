// What becomes of queries, keys and values between their product and attention, each of it one kernel in a step:
// biases, norms of heads, turning, writing to the cache. (As operators of their own they are in elementwise.cuh.)
#pragma once

#include <cuda_runtime.h>

#include "roofline/bench/cuda/elementwise.cuh"

namespace roofline::cuda::kernels {

/// Rows of query | key | value, and perhaps more. Queries stay where they are; keys and values go to the cache
/// [sequence, kv head, capacity, head_dim]. Heads are of a multiple of 16 numbers, up to 256.
struct HeadRows {
    void* rows = nullptr;
    int row = 0;                     // numbers from one to the next
    const void* bias = nullptr;      // of a whole row; null: none
    const void* norms = nullptr;     // gains of a query head, then of a key head; null: they are not normed
    const float2* angles = nullptr;  // [position][head_dim / 2] of cosine and sine; null: they are not turned
    void* keys = nullptr;
    void* values = nullptr;
    void* fresh_keys = nullptr;  // [sequence, kv head, token, head_dim] in bf16, beside the cache; null: not needed
    void* fresh_values = nullptr;
    int count = 0;     // of rows
    int tokens = 1;    // rows of a sequence
    int position = 0;  // of its first row
    int place = 0;     // of its first row in the cache
    int heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    int capacity = 0;
    Format cache = Format::bf16;
};
void settle_heads(const HeadRows& rows, Launch launch);

/// Rows that hold a latent entry, and queries with a part that is turned at the end of each head. The entry is normed,
/// but for the part that is turned, and goes to the cache [sequence, capacity, rank + rope_dim].
struct LatentRows {
    const void* entries = nullptr;   // of the first row
    int entry_row = 0;               // numbers from one row to the next
    const void* gains = nullptr;     // of the norm
    const float2* angles = nullptr;  // [position][rope_dim / 2]
    void* cache = nullptr;
    void* low = nullptr;            // [row, rank], where the part that is normed is needed by itself
    const void* queries = nullptr;  // the turned part of the first head of the first row
    int query_row = 0;
    int query_head = 0;
    void* turned = nullptr;  // where it goes, which may be where it is
    int turned_row = 0;
    int turned_head = 0;
    float factor = 1.0f;  // of queries
    int count = 0;        // of rows
    int tokens = 1;
    int position = 0;
    int heads = 0;
    int rank = 0;
    int rope_dim = 0;
    int capacity = 0;
};
void settle_entries(const LatentRows& rows, Launch launch);

/// Keys and values of each head [sequence, head, token, dimension] out of what `kv_up` made of latent entries, and of
/// their turned parts in the cache.
struct ExpandedRows {
    const void* made = nullptr;   // [row][head][unturned | value_dim]
    const void* cache = nullptr;  // [sequence, capacity, entry], this step's at its end
    void* keys = nullptr;
    void* values = nullptr;
    int count = 0;  // of rows
    int tokens = 1;
    int heads = 0;
    int unturned = 0;
    int value_dim = 0;
    int rank = 0;
    int rope_dim = 0;
    int capacity = 0;
};
void place_expanded(const ExpandedRows& rows, Launch launch);

}  // namespace roofline::cuda::kernels
