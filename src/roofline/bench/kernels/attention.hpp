// Our own attention on a CPU: queries of a group share every key and value that is loaded, long contexts are split over
// threads and combined, scores never leave the first-level cache (online softmax).
//
// Keys and values lie as [sequence][KV head][position][width], queries and the output as [row][head][width], a row for
// every new token. Inside a KV head they lie row by row or in tiles (KvLayout), as the kernels want it. Values may be
// narrower than keys, and may be the beginning of them, as latent attention has it: then they always lie in rows.
#pragma once

#include <cstdint>
#include <vector>

#include "roofline/bench/numbers.hpp"
#include "roofline/bench/threads.hpp"
#include "roofline/core/dtype.hpp"

namespace roofline::bench {

/// rows: a position after another.
/// tiles: in the order in which instructions that multiply 2 x 4 by 4 x 2 read them, so that nothing has to be turned
///   and nothing is skipped. Keys as [position / 16][i / 4][8 pairs of positions][2 positions][4], positions 0 and 2, 1
///   and 3 of every four being a pair; values, T positions to a tile, as [position / T][i / 16][position % T / 4][16][4
///   positions]. Heads have room for whole 64s of positions, and what lies beyond the last one is a number.
/// pairs: two numbers of 16 of them to a line, for kernels that widen what they load. Keys as [position / 16][i / 2][16
///   positions][2], values as [position / 64][i / 16][position % 64 / 2][16][2 positions]; room as for tiles.
enum class KvLayout { rows, tiles, pairs };

/// Numbers of a key (or positions of a column of values) that lie together, where they are not rows.
inline std::int64_t together(KvLayout layout) {
    return layout == KvLayout::tiles ? 4 : 2;
}
/// A tile of keys or values is 8 KiB, where it can be: in turns of so much memory gives most.
inline std::int64_t positions_of_tile(std::int64_t head_dim) {
    return head_dim <= 64 ? 64 : head_dim <= 128 ? 32 : 16;
}
inline std::int64_t key_place(KvLayout layout, std::int64_t position, std::int64_t i, std::int64_t head_dim) {
    if (layout == KvLayout::rows) return position * head_dim + i;
    const std::int64_t inside = position % 16;
    if (layout == KvLayout::pairs) return (position - inside) * head_dim + i / 2 * 32 + inside * 2 + i % 2;
    const std::int64_t pair = inside / 4 * 2 + inside % 2;
    return (position - inside) * head_dim + i / 4 * 64 + pair * 8 + inside / 2 % 2 * 4 + i % 4;
}
inline std::int64_t value_place(KvLayout layout, std::int64_t position, std::int64_t i, std::int64_t head_dim) {
    if (layout == KvLayout::rows) return position * head_dim + i;
    if (layout == KvLayout::pairs) {
        const std::int64_t in = position % 64;
        return (position - in) * head_dim + (i / 16 * 32 + in / 2) * 32 + i % 16 * 2 + in % 2;
    }
    const std::int64_t tile = positions_of_tile(head_dim);
    const std::int64_t inside = position % tile;
    return (position - inside) * head_dim + (i / 16 * (tile / 4) + inside / 4) * 64 + i % 16 * 4 + inside % 4;
}
/// Entries that a head needs room for.
inline std::int64_t kv_room(KvLayout layout, std::int64_t positions) {
    return layout == KvLayout::rows ? positions : (positions + 63) / 64 * 64;
}

struct HeadWidths {
    std::int64_t key = 0;    // of queries too
    std::int64_t value = 0;  // of the output too
    bool shared = false;     // values are the beginning of keys, and not stored apart

    static HeadWidths same(std::int64_t width) { return {width, width}; }
    bool even() const { return key == value && !shared; }
    /// From a value to that of the next position.
    std::int64_t value_pitch() const { return shared ? key : value; }
};

struct AttentionCall {
    std::int64_t batch = 0;
    std::int64_t tokens = 1;  // new ones of each sequence, the last of the context
    std::int64_t query_heads = 0;
    std::int64_t kv_heads = 0;
    HeadWidths widths;
    std::int64_t context = 0;   // entries to attend to, the new ones included
    std::int64_t capacity = 0;  // entries that there is room for: the distance between heads
    std::int64_t window = 0;    // how many of the newest a token sees, itself included; 0: all before it
    DType kv = DType::bf16;     // bf16 or fp32
    const float* q = nullptr;
    const void* keys = nullptr;
    const void* values = nullptr;
    const float* sinks = nullptr;  // of each query head: the score of an entry without a value; null: there is none
    float* out = nullptr;
};

/// What has been seen so far of some positions by some rows of queries: the largest score, the sum of the weights and
/// the weighted values, for each row.
struct AttentionState {
    float* largest = nullptr;
    float* sum = nullptr;
    float* values = nullptr;  // rows x the width of a value
};

struct AttentionKernels {
    const char* name;
    /// `rows` queries (scaled) against positions [first, first + count) of a head; goes on from `state`.
    template <class T>
    using Piece = void (*)(const float* q, std::int64_t rows, const T* keys, const T* values, std::int64_t first,
                           std::int64_t count, const HeadWidths& widths, const AttentionState& state);
    Piece<Bf16> bf16;  // of even widths, over `bf16_layout`
    Piece<Bf16> bf16_rows;
    Piece<float> fp32;
    KvLayout bf16_layout = KvLayout::rows;
    std::int64_t grain = 32;  // what widths are multiples of

    bool takes(const HeadWidths& widths) const { return widths.key % grain == 0 && widths.value % grain == 0; }
    KvLayout layout(DType kv, const HeadWidths& widths) const {
        return kv == DType::bf16 && widths.even() ? bf16_layout : KvLayout::rows;
    }
};

const AttentionKernels& portable_attention();
const AttentionKernels* neon_attention();        // null where the processor (or the build) has no bf16
const AttentionKernels* neon_pairs_attention();  // likewise for AArch64
const AttentionKernels* avx2_attention();
const AttentionKernels* avx512_attention();
const AttentionKernels* amx_attention();  // likewise for tile registers beside AVX-512
/// What widths have to be multiples of for any kernels at all: of whole lines of floats.
inline constexpr std::int64_t attention_grain = 16;
/// Of those that take heads of such widths.
const AttentionKernels& best_attention(const HeadWidths& widths);

/// A vector that lies across two lines of a cache is loaded twice.
struct alignas(64) LineOfFloats {
    float floats[16];
};

/// Room for partial results, kept between calls.
struct AttentionScratch {
    std::vector<LineOfFloats> lines;
    std::vector<std::int64_t> ended;  // pieces of each head
};

/// From rows of positions (`context` to a head) to `layout` (`kv_room(context)` to a head), in bf16.
void lay_keys(const Bf16* rows, Bf16* to, KvLayout layout, std::int64_t heads, std::int64_t context,
              std::int64_t head_dim, Threads& threads);
void lay_values(const Bf16* rows, Bf16* to, KvLayout layout, std::int64_t heads, std::int64_t context,
                std::int64_t head_dim, Threads& threads);

void attend(const AttentionCall& call, const AttentionKernels& kernels, Threads& threads, AttentionScratch& scratch);

}  // namespace roofline::bench
