// The small scorer of sparse attention: it looks at every earlier key in a narrow space and names the ones that the
// real attention will read (DeepSeek V3.2, GLM-5, MiniMax M3).
#pragma once

#include "roofline/model/reach.hpp"

namespace roofline::model {

class Lowering;

struct Indexer {
    double heads = 0.0;
    double dim = 0.0;
    double query_inner = 0.0;      // width its queries are projected from (a latent, or the hidden width)
    double key_bytes = 0.0;        // of one cached index key
    double norm_parameters = 0.0;  // of its key (and query) norm, and other small vectors
    double key_cols = 0.0;         // columns of its key projection; 0: dim
    double waiting_bytes = 0.0;    // state per sequence where its keys are pooled
    bool weighs_heads = true;      // a learned weight per head (DeepSeek); MiniMax takes the maximum instead
    Reach scored;                  // what it scores: all tokens, or pooled entries
};

/// F25: projections, the index key written to its cache, and the scores of all keys in reach.
void lower_indexer(Lowering& lowering, const Indexer& indexer);

}  // namespace roofline::model
