#include "roofline/model/attention/compressed.hpp"

#include "roofline/model/attention/share_context.hpp"
#include "roofline/model/deployment.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/model/shares.hpp"

namespace roofline::model {

void Compressed::lower(Lowering& to) const {
    const CompressedShape& s = shape_;
    const int rows = to.tokens();
    const double query = s.heads * s.head_dim;

    to.product({.name = "q_down",
                .group = Group::attention,
                .role = Role::latent_q_down,
                .rows = rows,
                .inner = to.hidden(),
                .cols = s.query_rank});
    to.norm("q_norm", s.query_rank, s.query_rank);
    to.product({.name = "q_up",
                .group = Group::attention,
                .role = Role::latent_q_up,
                .rows = rows,
                .inner = s.query_rank,
                .cols = query});
    to.product({.name = "kv",
                .group = Group::attention,
                .role = Role::latent_kv_down,
                .rows = rows,
                .inner = to.hidden(),
                .cols = s.head_dim});
    to.norm("kv_norm", s.head_dim, s.head_dim);
    const double rotated = (s.heads + 1.0) * s.rope_dim;
    to.elementwise("rotary", 3.0 * rotated, rotated, rotated, rows);

    // An 8-bit cache keeps the rotary part in 16 bits and eight bytes of scales (F26).
    const bool narrow = bits_per_element(to.types().kv) <= 8.5;
    const double entry = narrow ? s.head_dim - s.rope_dim + 2.0 * s.rope_dim + 8.0 : to.types().kv_bytes(s.head_dim);
    const Reach window = Reach::window(s.window);
    to.cache_write("kv_write", s.head_dim, entry, rows);
    to.keep("kv", entry, window);

    const Reach pooled = Reach::pooled(s.ratio > 0.0 ? s.ratio : 1.0, s.chosen);
    if (s.ratio > 0.0) {
        // Keys and their gates are pooled over `ratio` tokens; those not yet pooled wait in fp32.
        const double width = s.series * s.head_dim;
        Operator& compressor = to.product({.name = "compressor",
                                           .group = Group::attention,
                                           .role = Role::compressor,
                                           .rows = rows,
                                           .inner = to.hidden(),
                                           .cols = 2.0 * width});
        to.attach(compressor, s.ratio * width + s.head_dim, Role::compressor);
        const int emitted = to.entries(pooled);
        const double waiting = s.series * s.ratio * 2.0 * width * 4.0;
        // In decode every token waits in the state and a full pool is read back; a prefill pools what it has at hand.
        const int decoding = to.tokens(Who::decode());
        Operator& pool = to.cache_write("pool", 2.0 * width, 0.0, rows);
        pool.kind = Kind::elementwise;
        pool.formula = "F26";
        pool.flops = Form(3.0 * s.series * s.ratio * s.head_dim, emitted);
        pool.flops_text = "3 x " + to.number(s.series * s.ratio * s.head_dim) + " x " + to.slot(emitted);
        const double waits = 2.0 * width * 4.0 + waiting / s.ratio;
        pool.cache_bytes = Form(entry, emitted).add(waits, decoding);
        pool.bytes_text =
            to.slot(emitted) + " x " + to.number(entry) + " B + " + to.slot(decoding) + " x " + to.number(waits) + " B";
        to.keep("pooled", entry, Reach::pooled(s.ratio), waiting);
    }
    if (s.indexer) lower_indexer(to, *s.indexer);
    share_context(to, window, entry, to.stream_bytes(query));

    Operator& core = to.core({.reach = window,
                              .heads = s.heads,
                              .key_dim = s.head_dim,
                              .value_dim = s.head_dim,
                              .entry_elements = s.head_dim,
                              .entry_bytes = entry,
                              .formula = "F26"});
    if (s.ratio > 0.0) {
        const int more_pairs = to.pairs(pooled);
        const int more_keys = to.keys(pooled);
        core.flops.add(4.0 * query, more_pairs);
        core.cache_bytes.add(entry, more_keys);
        core.flops_text += " + 4 x " + to.number(query) + " x " + to.slot(more_pairs);
        core.bytes_text += " + " + to.slot(more_keys) + " pooled x " + to.number(entry) + " B";
    }
    to.attach(core, s.heads, Role::other);  // one sink per head

    to.product({.name = "out_down",
                .group = Group::attention,
                .role = Role::attention_out,
                .rows = rows,
                .inner = query / s.out_groups,
                .cols = s.out_rank,
                .copies = s.out_groups});
    to.product({.name = "out_up",
                .group = Group::attention,
                .role = Role::attention_out,
                .rows = rows,
                .inner = s.out_groups * s.out_rank,
                .cols = to.hidden()});
}

std::string Compressed::describe() const {
    std::string result = "compressed MQA, " + whole(shape_.heads) + " heads of " + whole(shape_.head_dim) +
                         ", window of " + whole(shape_.window);
    if (shape_.ratio > 0.0) {
        const Reach pooled = Reach::pooled(shape_.ratio, shape_.chosen);
        result += " and " + model::describe(pooled);
    }
    return result;
}

Result<BlockPtr> Compressed::on_rank(const Deployment& deployment) const {
    CompressedShape cut = shape_;
    Shares shares;
    // One key-value vector serves all heads: it, its pools and the indexer are copied.
    shares.even(cut.heads, deployment.tensor, "attention heads");
    shares.even(cut.out_groups, deployment.tensor, "groups of the output projection");
    return shares.block<Compressed>(cut);
}

}  // namespace roofline::model
