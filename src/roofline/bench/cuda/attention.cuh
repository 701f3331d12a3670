// Attention over a cache laid out [sequence, kv head, token, dimension], for decoding (one query a sequence) and for
// prefill (many, causal).
//
// Decode. FLOPs: 4 batch query_heads context head_dim. Bytes: 2 batch kv_heads context head_dim x bytes of a value, the
// queries and the outputs; the parts of a split cache, which stay in the L2, are not counted.
// Prefill. FLOPs: 4 batch query_heads head_dim x the query-key pairs that the causal mask leaves. Bytes: queries and
// outputs, and keys and values once.
#pragma once

#include <cstdint>
#include <cuda.h>
#include <cuda_runtime.h>
#include <vector>

#include "roofline/bench/cuda/memory.cuh"

namespace roofline::cuda::kernels {

struct Attention {
    const void* queries = nullptr;  // [sequence, token, query head, dimension] bf16
    const void* keys = nullptr;     // [sequence, kv head, capacity, dimension]
    const void* values = nullptr;
    void* output = nullptr;  // as the queries, without gaps
    int query_stride = 0;    // values between the queries of two tokens
    int batch = 0;
    int query_heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    int tokens = 1;    // new ones of a sequence
    int context = 0;   // keys the last token sees, itself included
    int capacity = 0;  // tokens the cache has room for, of a sequence
    float key_scale = 1.0f;
    float value_scale = 1.0f;
    // Decode alone: where the cache is split, the parts of the result; tickets are zero between launches.
    float* parts = nullptr;
    unsigned* tickets = nullptr;
    int splits = 1;
    int split_keys = 0;  // keys of a split
    // The cache as the copy engine sees it (tiles.cuh), where a variant has a ring.
    CUtensorMap key_tiles{};
    CUtensorMap value_tiles{};
};

struct DecodeVariant {
    const char* name;
    int threads;
    int unit;  // keys a block takes at a time
    int shared_bytes;
    void (*kernel)(Attention);
    int tile_keys = 0;     // of a ring's copies, which need Hopper; 0 where there is none
    int row_bytes = 0;     // of a key or value
    bool cluster = false;  // a head's splits are a cluster
};

/// The variants for a head dimension, a group (query heads a kv head) and a format of the cache; none where
/// unsupported.
std::vector<DecodeVariant> decode_variants(int head_dim, int group, Format cache);

/// Decides the splits: enough to fill the multiprocessors, as even as can be.
void split(Attention& attention, const DecodeVariant& variant);
std::size_t part_bytes(const Attention& attention);
std::size_t ticket_bytes(const Attention& attention);

void launch(const DecodeVariant& variant, Attention attention, bool overlap, cudaStream_t stream);

/// Whether the prefill kernel takes this shape.
bool prefill_supported(const Attention& attention, Format cache);
void launch_prefill(const Attention& attention, bool overlap, cudaStream_t stream);

}  // namespace roofline::cuda::kernels
