#include "roofline/model/attention/indexer.hpp"

#include "roofline/model/lowering.hpp"

namespace roofline::model {

void lower_indexer(Lowering& to, const Indexer& indexer) {
    const int rows = to.tokens();
    to.product({.name = "index_query",
                .group = Group::attention,
                .role = Role::indexer,
                .rows = rows,
                .inner = indexer.query_inner,
                .cols = indexer.heads * indexer.dim});
    const double key_cols = indexer.key_cols > 0.0 ? indexer.key_cols : indexer.dim;
    const double weights = indexer.weighs_heads ? indexer.heads : 0.0;
    Operator& key = to.product({.name = "index_key",
                                .group = Group::attention,
                                .role = Role::indexer,
                                .rows = rows,
                                .inner = to.hidden(),
                                .cols = key_cols + weights});
    if (indexer.norm_parameters > 0.0) to.attach(key, indexer.norm_parameters, Role::indexer);
    const int written = indexer.scored.ratio > 1.0 ? to.entries(indexer.scored) : rows;
    to.cache_write("index_write", indexer.dim, indexer.key_bytes, written);
    to.keep("index", indexer.key_bytes, indexer.scored, indexer.waiting_bytes);

    // One product per head and key; the weighted sum over heads is the second "value" of width one per head.
    Operator& score = to.core({.name = "index_scores",
                               .reach = indexer.scored,
                               .heads = indexer.heads,
                               .key_dim = indexer.dim,
                               .value_dim = 1.0,
                               .entry_elements = indexer.dim,
                               .entry_bytes = indexer.key_bytes,
                               .formula = "F25"});
    score.type = DType::fp8;  // engines score in 8 bits; a device without falls back, as for any type
}

}  // namespace roofline::model
