// What one forward pass is asked to do: sequences that each bring some new tokens to some that are already cached.
#pragma once

#include <span>
#include <vector>

namespace roofline::model {

enum class Phase { prefill, decode };

/// Sequences of a step that are alike.
struct Sequences {
    Phase phase = Phase::decode;
    double count = 1.0;
    double new_tokens = 1.0;  // per sequence, in this step
    double past = 0.0;        // tokens whose keys and values are cached before this step
    double logits = 1.0;      // positions per sequence that need logits
};

/// Prefill: one group; decode: one group; chunked prefill beside decode: two; a ragged batch: several.
using Step = std::vector<Sequences>;

/// F6: `batch` prompts, causal, after a prefix of `cached` tokens whose keys and values are there already.
inline Step prefill_step(double batch, double prompt, double cached = 0.0) {
    return {{Phase::prefill, batch, prompt, cached, 1.0}};
}

/// F7: one token for each of `batch` sequences; `context` tokens are in the cache when it attends, itself included.
inline Step decode_step(double batch, double context) {
    return {{Phase::decode, batch, 1.0, context - 1.0, 1.0}};
}

/// F8: a chunk of one prompt beside the decoding of others, as engines schedule it. Only the last chunk of a prompt
/// needs logits.
inline Step mixed_step(double batch, double context, double chunk, double cached, bool last_chunk) {
    return {{Phase::prefill, 1.0, chunk, cached, last_chunk ? 1.0 : 0.0},
            {Phase::decode, batch, 1.0, context - 1.0, 1.0}};
}

}  // namespace roofline::model
