#include "roofline/model/attention/mla.hpp"

#include <limits>

#include "roofline/model/attention/share_context.hpp"
#include "roofline/model/deployment.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/model/shares.hpp"

namespace roofline::model {

void Mla::lower(Lowering& to) const {
    const MlaShape& s = shape_;
    const int rows = to.tokens();
    const double query = s.heads * (s.nope_dim + s.rope_dim);
    const double latent = s.kv_rank + s.rope_dim;
    const Reach reach = s.chosen > 0.0 ? Reach::best(s.chosen) : Reach::full();

    if (s.query_rank > 0.0) {
        to.product({.name = "q_down",
                    .group = Group::attention,
                    .role = Role::latent_q_down,
                    .rows = rows,
                    .inner = to.hidden(),
                    .cols = s.query_rank,
                    .bias = s.bias ? s.query_rank : 0.0});
        to.norm("q_norm", s.query_rank, s.query_rank);
        to.product({.name = "q_up",
                    .group = Group::attention,
                    .role = Role::latent_q_up,
                    .rows = rows,
                    .inner = s.query_rank,
                    .cols = query});
    } else {
        to.product({.name = "q",
                    .group = Group::attention,
                    .role = Role::attention_qkv,
                    .rows = rows,
                    .inner = to.hidden(),
                    .cols = query});
    }
    to.product({.name = "kv_down",
                .group = Group::attention,
                .role = Role::latent_kv_down,
                .rows = rows,
                .inner = to.hidden(),
                .cols = latent,
                .bias = s.bias ? latent : 0.0});
    to.norm("kv_norm", s.kv_rank, s.kv_rank);
    const double rotated = (s.heads + 1.0) * s.rope_dim;
    to.elementwise("rotary", 3.0 * rotated, rotated, rotated, rows);

    // Both ways read the same latent entry: rank and rotary key, once for all heads. An 8-bit cache under sparse
    // attention keeps the rotary key in 16 bits and a scale for every 128 numbers.
    const bool narrow_sparse = s.chosen > 0.0 && bits_per_element(to.types().kv) <= 8.5;
    const double entry =
        narrow_sparse ? s.kv_rank + 4.0 * s.kv_rank / 128.0 + 2.0 * s.rope_dim : to.types().kv_bytes(latent);
    to.cache_write("kv_write", latent, entry, rows);
    to.keep("kv", entry, Reach::full());
    if (s.indexer) lower_indexer(to, *s.indexer);
    share_context(to, Reach::full(), entry, to.stream_bytes(s.heads * s.kv_rank));

    // Who goes which way. Sparse attention picks keys per query, so it works on the latent, except for prompts so short
    // that nothing would be left out.
    const LatentMode mode = to.options().latent;
    const bool any_absorbed = mode != LatentMode::expanded || s.chosen > 0.0;
    const bool any_expanded = mode != LatentMode::absorbed;
    Who absorbed = Who::all();
    Who expanded = Who::all();
    if (s.chosen > 0.0) {
        absorbed = any_expanded ? Who::not_short(s.chosen) : Who::all();
        expanded = Who::short_prefill(s.chosen);
    } else if (mode == LatentMode::automatic) {
        // Expanding costs a projection of every cached entry and saves on every pair; who gains is a matter of counts.
        const double saved_per_pair = 2.0 * s.heads * (latent + s.kv_rank - (s.nope_dim + s.rope_dim) - s.value_dim);
        const double cost_per_entry = 2.0 * s.kv_rank * s.heads * (s.nope_dim + s.value_dim);
        const double pairs_per_past =
            saved_per_pair > 0.0 ? cost_per_entry / saved_per_pair : std::numeric_limits<double>::infinity();
        absorbed = Who::absorbing(pairs_per_past);
        expanded = Who::expanding(pairs_per_past);
    }
    const bool both = any_absorbed && any_expanded;
    const double up_cols = s.heads * (s.nope_dim + s.value_dim);

    // The up-projection is one weight, stored and counted once, whichever way it is used. Its flops (F23, F24):
    //   absorbed: per new token, into the query and out of the result; expanded: per cached entry of a prefill.
    Operator& up = to.product({.name = "kv_up",
                               .group = Group::attention,
                               .role = Role::latent_kv_up,
                               .rows = rows,
                               .inner = s.kv_rank,
                               .cols = up_cols});
    up.flops = Form();
    up.activation_bytes = Form();
    up.flops_text.clear();
    up.shape =
        "[" + to.number(s.kv_rank) + " x " + to.number(up_cols) + "], into queries and outputs, or over cached entries";
    up.formula = both ? "F23, F24" : any_expanded ? "F24" : "F23";
    const auto use = [&](int feature, double input, double output) {
        up.flops.add(2.0 * s.kv_rank * up_cols, feature);
        up.activation_bytes.add(to.stream_bytes(input + output), feature);
        up.flops_text += (up.flops_text.empty() ? "2 x " : " + 2 x ") + to.slot(feature) + " x " +
                         to.number(s.kv_rank) + " x " + to.number(up_cols);
    };
    const int expanded_entries = any_expanded ? to.keys(Reach::full(), expanded) : 0;
    if (any_absorbed) use(to.tokens(absorbed), s.heads * (s.nope_dim + s.kv_rank), s.heads * (s.kv_rank + s.value_dim));
    if (any_expanded) {
        use(expanded_entries, 0.0, up_cols);
        up.cache_bytes = Form(entry, expanded_entries);  // the latent is read here and not again by the core
    }
    if (any_absorbed) {
        to.core({.name = both ? "core_absorbed" : "core",
                 .who = absorbed,
                 .reach = reach,
                 .heads = s.heads,
                 .key_dim = latent,
                 .value_dim = s.kv_rank,
                 .entry_elements = latent,
                 .entry_bytes = entry,
                 .latent = true,
                 .formula = "F23"});
    }
    if (any_expanded) {
        Operator& core = to.core({.name = both ? "core_expanded" : "core",
                                  .who = expanded,
                                  .reach = Reach::full(),
                                  .heads = s.heads,
                                  .key_dim = s.nope_dim + s.rope_dim,
                                  .value_dim = s.value_dim,
                                  .kv_heads = s.heads,
                                  .latent = true,
                                  .formula = "F24"});
        core.activation_bytes.add(to.stream_bytes(up_cols), expanded_entries);
        core.bytes_text.clear();
    }
    to.product({.name = "out",
                .group = Group::attention,
                .role = Role::attention_out,
                .rows = rows,
                .inner = s.heads * s.value_dim,
                .cols = to.hidden(),
                .bias = s.bias ? to.hidden() : 0.0});
}

std::string Mla::describe() const {
    std::string result =
        "MLA, " + whole(shape_.heads) + " heads, latent of " + whole(shape_.kv_rank) + " + " + whole(shape_.rope_dim);
    if (shape_.chosen > 0.0) result += ", best " + whole(shape_.chosen) + " of all keys";
    return result;
}

Result<BlockPtr> Mla::on_rank(const Deployment& deployment) const {
    MlaShape cut = shape_;
    Shares shares;
    // The latent and what leads to it serve all heads: every device has them whole. So is the indexer.
    shares.even(cut.heads, deployment.tensor, "attention heads");
    return shares.block<Mla>(cut);
}

}  // namespace roofline::model
