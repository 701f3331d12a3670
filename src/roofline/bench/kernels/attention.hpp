// Our own attention on a CPU: queries of a group share every key and value that is loaded, long contexts are split over
// threads and combined, scores never leave the first-level cache (online softmax).
//
// Keys and values lie as [sequence][KV head][position][head_dim], queries and the output as [row][head][head_dim], a
// row for every new token. Inside a KV head they lie row by row or in tiles (KvLayout), as the kernels want it.
#pragma once

#include <cstdint>
#include <vector>

#include "roofline/bench/numbers.hpp"
#include "roofline/bench/threads.hpp"
#include "roofline/core/dtype.hpp"

namespace roofline::bench {

/// rows: a position after another.
/// tiles: in the order in which instructions that multiply 2 x 4 by 4 x 2 read them, so that nothing has to be turned
///   and nothing is skipped. Keys as [position / 8][i / 8][4 pairs of positions][i / 4 % 2][2 positions][4], values as
///   [position / 64][i / 16][position / 4 % 16][16][4 positions]. Heads have room for whole 64s of positions, and what
///   lies beyond the last one is a number.
/// short_tiles: the same with 32s of positions instead of 64s.
enum class KvLayout { rows, tiles, short_tiles };
inline constexpr std::int64_t tile_positions = 64;
inline constexpr std::int64_t short_tile_positions = 32;

inline std::int64_t positions_of(KvLayout layout) {
    return layout == KvLayout::rows ? 1 : layout == KvLayout::tiles ? tile_positions : short_tile_positions;
}
inline std::int64_t key_place(KvLayout layout, std::int64_t position, std::int64_t i, std::int64_t head_dim) {
    if (layout == KvLayout::rows) return position * head_dim + i;
    const std::int64_t inside = position % 8;
    return (position - inside) * head_dim + i / 8 * 64 + inside / 2 * 16 + i / 4 % 2 * 8 + inside % 2 * 4 + i % 4;
}
inline std::int64_t value_place(KvLayout layout, std::int64_t position, std::int64_t i, std::int64_t head_dim) {
    if (layout == KvLayout::rows) return position * head_dim + i;
    const std::int64_t tile = positions_of(layout);
    const std::int64_t inside = position % tile;
    return (position - inside) * head_dim + (i / 16 * (tile / 4) + inside / 4) * 64 + i % 16 * 4 + inside % 4;
}
/// Entries that a head needs room for.
inline std::int64_t kv_room(KvLayout layout, std::int64_t positions) {
    const std::int64_t tile = positions_of(layout);
    return (positions + tile - 1) / tile * tile;
}

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
    /// `rows` queries (scaled) against positions [first, first + count) of a head; goes on from `state`.
    template <class T>
    using Piece = void (*)(const float* q, std::int64_t rows, const T* keys, const T* values, std::int64_t first,
                           std::int64_t count, std::int64_t head_dim, const AttentionState& state);
    Piece<Bf16> bf16;
    Piece<float> fp32;
    KvLayout bf16_layout = KvLayout::rows;
    Piece<Bf16> bf16_of_few = nullptr;  // where a KV head has four queries or fewer: over short tiles

    bool has_own_for(std::int64_t queries_to_a_head) const { return bf16_of_few != nullptr && queries_to_a_head <= 4; }
    KvLayout layout(DType kv, std::int64_t queries_to_a_head) const {
        if (kv != DType::bf16) return KvLayout::rows;
        return has_own_for(queries_to_a_head) ? KvLayout::short_tiles : bf16_layout;
    }
};

const AttentionKernels& portable_attention();
const AttentionKernels* neon_attention();
const AttentionKernels* avx2_attention();
const AttentionKernels* avx512_attention();
const AttentionKernels& best_attention();

/// Room for partial results, kept between calls.
struct AttentionScratch {
    std::vector<float> floats;
    std::vector<std::int64_t> ended;  // pieces of each head
};

/// From rows of positions (`context` to a head) to `layout` (`kv_room(context)` to a head), in bf16.
void lay_keys(const Bf16* rows, Bf16* to, KvLayout layout, std::int64_t heads, std::int64_t context,
              std::int64_t head_dim, Threads& threads);
void lay_values(const Bf16* rows, Bf16* to, KvLayout layout, std::int64_t heads, std::int64_t context,
                std::int64_t head_dim, Threads& threads);

void attend(const AttentionCall& call, const AttentionKernels& kernels, Threads& threads, AttentionScratch& scratch);

}  // namespace roofline::bench
