// F40, F41: a sequence's caches as an engine allocates them, in blocks of whole tokens. Layers that keep everything,
// layers with a window and recurrent states take blocks at different rates; how they share a pool is the engine's rule.
#pragma once

#include <string>
#include <vector>

#include "roofline/model/operators.hpp"
#include "roofline/predict/engine.hpp"

namespace roofline::predict {

/// Layers whose blocks are handed out together.
struct PageTable {
    enum class Keeps { everything, window, chunk, state };

    Keeps keeps = Keeps::everything;
    double layers = 0.0;        // real ones
    double padding = 0.0;       // and those that only fill up a group
    double block_tokens = 0.0;  // 0: a state, whatever the context
    double reach = 0.0;         // of the window or chunk
    double state_blocks = 0.0;

    /// Blocks of a sequence that decodes at this context. A window may begin in the middle of a block.
    double held(double context) const;
    /// Blocks an engine sets aside for one sequence up to this length when `in_flight` tokens may be on their way.
    double admitted(double longest, double in_flight) const;
    /// Blocks that tokens on their way occupy beyond what `held` counts, once for the whole batch.
    double in_flight(double context, double tokens) const;
};

struct PagePool {
    double share = 1.0;        // of the memory for caches; see PagedCache::share
    double block_bytes = 0.0;  // of one block over the layers of a table
    std::vector<PageTable> tables;

    double held(double context) const;
    double admitted(double longest, double in_flight) const;
    double in_flight(double context, double tokens) const;
};

struct PagedCache {
    std::vector<PagePool> pools;  // empty: the model keeps nothing
    double block_tokens = 0.0;    // of the smallest block
    bool split_once = false;      // by the rules' ratios; false: as a sequence at the context in question needs

    /// What part of the memory for caches a pool has when sequences decode at this context.
    double share(const PagePool& pool, double context) const;
    /// F41: bytes one sequence occupies at a context, rounded up to whole blocks.
    double bytes(double context) const;
    /// Memory that all pools together must have so that each can hold this many sequences.
    double needed(double sequences, double context, double in_flight) const;
    double tables() const;
};

PagedCache paged(const model::Lowered& lowered, const EngineRules& rules, double block_tokens);

}  // namespace roofline::predict
