// Attention over a cache laid out [sequence, kv head, token, dimension], for decoding (one query a sequence) and for
// prefill (many, causal).
//
// Decode. FLOPs: 2 batch query_heads context (head_dim + value_dim). Bytes: batch kv_heads context (head_dim +
// value_dim) x bytes of a value, or where the cache is latent batch context head_dim x bytes; the queries and the
// outputs; the parts of a split cache, which stay in the L2, are not counted.
// Prefill. FLOPs: 2 batch query_heads (head_dim + value_dim) x the query-key pairs that the causal mask and a window
// leave. Bytes: queries and outputs, and keys and values that any query sees, once.
#pragma once

#include <cstdint>
#include <cuda.h>
#include <cuda_runtime.h>
#include <string>
#include <vector>

#include "roofline/bench/cuda/memory.cuh"

namespace roofline::cuda::kernels {

struct Attention {
    const void* queries = nullptr;  // [sequence, token, query head, dimension] bf16
    const void* keys = nullptr;     // [sequence, kv head, capacity, dimension]
    const void* values = nullptr;
    void* output = nullptr;  // as the queries, without gaps, of values' dimensions
    int query_stride = 0;    // values between the queries of two tokens
    int batch = 0;
    int query_heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    int value_dim = 0;
    bool latent = false;  // one entry for all heads: the key, at its beginning the value; `values` is not used
    int tokens = 1;       // new ones of a sequence
    int context = 0;      // keys the last token sees, itself included
    int capacity = 0;     // tokens the cache has room for, of a sequence
    int window = 0;       // prefill alone: newest keys that a query sees, its own included; 0: all of them
    // Of each query head the score, scaled already, of an entry without a value: its weight counts in the sum of
    // weights alone. Null: there is none.
    const float* sinks = nullptr;
    float key_scale = 1.0f;
    float value_scale = 1.0f;
    // Decode alone: where splits of a cache meet, parts of the result; tickets are zero between launches.
    float* parts = nullptr;
    unsigned* tickets = nullptr;
    // As the way says that is launched (DecodeWay): keys of a split, and of the group's dimensions, four by four, how
    // many a block of a cluster puts together.
    int split_keys = 0;
    int share = 0;
    // The cache as the copy engine sees it (tiles.cuh), where a variant has a ring.
    CUtensorMap key_tiles{};
    CUtensorMap value_tiles{};
};

struct DecodeVariant {
    const char* name;
    int threads;
    int unit;        // keys a block takes at a time
    int unit_bytes;  // of these and their values
    int shared_bytes;
    void (*kernel)(Attention);
    int tile_lines = 0;      // of a ring's copies, which need Hopper; 0 where there is none
    bool clustered = false;  // its splits are clusters, which need Hopper too
    int most_heads = 0;      // of a latent cache: query heads that a block takes; 0 where it is not
};

/// A variant, and how its blocks divide the keys of a head.
struct DecodeWay {
    std::string name;
    DecodeVariant variant;
    int clusters;    // of a head
    int cluster;     // splits in one: blocks that run together and meet in shared memory
    int split_keys;  // keys of a split
};

/// The ways to run a shape with a cache of this format, on the current device: of each variant the few divisions that
/// promise most. None where the shape is not supported.
std::vector<DecodeWay> decode_ways(const Attention& shape, Format cache);

/// Memory for `parts` and `tickets` that is enough for any of the ways.
std::size_t part_bytes(const Attention& shape);
std::size_t ticket_bytes();

void launch(const DecodeWay& way, Attention attention, bool overlap, cudaStream_t stream);

/// Whether a prefill kernel takes this shape, and which one it is on this device.
bool prefill_supported(const Attention& attention, Format cache);
const char* prefill_name();
void launch_prefill(const Attention& attention, bool overlap, cudaStream_t stream);

}  // namespace roofline::cuda::kernels
