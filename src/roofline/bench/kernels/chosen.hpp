// Attention to some entries of a long context alone, as an indexer chooses them (DeepSeek V3.2, GLM-5): every entry has
// a small key besides, and a token reads the entries whose keys score best with its small queries.
#pragma once

#include <cstdint>
#include <vector>

#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/rowwise.hpp"
#include "roofline/bench/threads.hpp"

namespace roofline::bench {

/// The small keys of sequences: int8 with a scale for each, rows as products of int8 want them, with room for
/// `capacity` of them, a multiple of `tile_rows`, to a sequence.
struct IndexKeys {
    std::int8_t* values = nullptr;
    float* scales = nullptr;
    std::int64_t dim = 0;
    std::int64_t capacity = 0;
    Tiles tiles = Tiles::none;

    static std::int64_t room(std::int64_t positions) { return (positions + tile_rows - 1) / tile_rows * tile_rows; }
    /// How they lie for the products of this processor.
    static Tiles best_tiles() {
        return best_products().in_tiles(WeightFormat::int8) ? best_products().tiles : Tiles::none;
    }
    /// Those of a sequence, as weights.
    Weights of(std::int64_t sequence) const;
    /// What was written there, as floats.
    void read(std::int64_t sequence, std::int64_t position, float* to) const;
};
/// Rows of `keys`, `tokens` of each sequence, to the positions from `first` on.
void write_index_keys(const RowsApart& keys, const IndexKeys& to, std::int64_t batch, std::int64_t tokens,
                      std::int64_t first, Threads& threads);

/// to[p] = sum over heads of share x max(0, dots[head][p]), for `count` positions: a thousand or so at a time.
void weigh_heads(const float* dots, std::int64_t pitch, const float* shares, std::int64_t heads, float* to,
                 std::int64_t count);

/// Of every row the places of the best `chosen` scores, from the first on; of row r, of `tokens` to a sequence, the
/// first past + r % tokens + 1 of `pitch` scores count. Rows with fewer than `chosen` are left out.
void choose_entries(const float* scores, std::int64_t pitch, std::int64_t rows, std::int64_t tokens, std::int64_t past,
                    std::int64_t chosen, std::int64_t* places, Threads& threads);

/// Room for entries that lie together.
struct ChosenScratch {
    std::vector<LineOfFloats> entries;
    AttentionScratch attention;
};
/// Attention over latent entries (one KV head, rows, shared widths): each new token sees those at its `places`, or all
/// before it, where these are no more than `chosen`.
void attend_to_chosen(const AttentionCall& call, const std::int64_t* places, std::int64_t chosen,
                      const AttentionKernels& kernels, Threads& threads, ChosenScratch& scratch);

}  // namespace roofline::bench
