#include "roofline/model/attention/gqa.hpp"

#include "roofline/model/attention/share_context.hpp"
#include "roofline/model/deployment.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/model/shares.hpp"

namespace roofline::model {

void Gqa::lower_inputs(Lowering& to) const {
    const GqaShape& s = shape_;
    const int rows = to.tokens();
    const double query = s.query();
    const double key = s.key();
    const double value = s.value();
    const double gate = s.gate ? query : s.head_gate ? s.heads : 0.0;
    const double cols = query + key + value + gate;
    to.product({.name = "qkv",
                .group = Group::attention,
                .role = Role::attention_qkv,
                .rows = rows,
                .inner = to.hidden(),
                .cols = cols,
                .bias = s.qkv_bias ? query + key + value : 0.0});
    if (s.qk_norm != QkNorm::none) {
        const auto parameters = [&] {
            switch (s.qk_norm) {
                case QkNorm::per_head:
                    return 2.0 * s.head_dim;
                case QkNorm::per_head_with_bias:
                    return 4.0 * s.head_dim;
                case QkNorm::full_width:
                    return query + key;
                default:
                    return 0.0;
            }
        };
        to.norm("qk_norm", query + key, parameters());
    }
    // F13: a rotation of a pair is 4 multiplies and 2 adds: 3 flops an element
    if (s.rotary) to.elementwise("rotary", 3.0 * (query + key), query + key, query + key, rows);
    const double entry = to.types().kv_bytes(entry_elements());
    to.cache_write("kv_write", entry_elements(), entry, rows).held_bytes = Form(entry, to.keys(s.reach));
    to.keep("kv", entry, s.reach);
}

void Gqa::lower_core(Lowering& to, const Reach& reach) const {
    const GqaShape& s = shape_;
    const Core core{.reach = reach,
                    .heads = s.heads,
                    .key_dim = s.head_dim,
                    .value_dim = s.values(),
                    .entry_elements = entry_elements(),
                    .entry_bytes = to.types().kv_bytes(entry_elements()),
                    .kv_heads = s.kv_heads};
    Operator& op = to.options().scores == AttentionScores::in_memory ? to.unfused_core(core) : to.core(core);
    if (s.sinks) to.attach(op, s.heads, Role::other);
}

void Gqa::lower_output(Lowering& to) const {
    const GqaShape& s = shape_;
    const double width = s.heads * s.values();
    if (s.gate || s.head_gate)
        to.elementwise("gate", 2.0 * width, width + (s.gate ? width : s.heads), width, to.tokens());
    if (s.out_norm) to.norm("out_norm", width, to.norm_parameters(width));
    to.product({.name = "out",
                .group = Group::attention,
                .role = Role::attention_out,
                .rows = to.tokens(),
                .inner = width,
                .cols = to.hidden(),
                .bias = s.out_bias ? to.hidden() : 0.0});
}

void Gqa::lower(Lowering& to) const {
    lower_inputs(to);
    share_context(to, shape_.reach, to.types().kv_bytes(entry_elements()),
                  to.stream_bytes(shape_.heads * shape_.values()));
    lower_core(to, shape_.reach);
    lower_output(to);
}

std::string Gqa::describe() const {
    const std::string sharing = shape_.kv_heads == shape_.heads ? "MHA" : shape_.kv_heads == 1.0 ? "MQA" : "GQA";
    return sharing + ", " + whole(shape_.heads) + " heads, " + whole(shape_.kv_heads) + " KV heads of " +
           whole(shape_.head_dim) + ", " + model::describe(shape_.reach);
}

Result<GqaShape> Gqa::shape_on_rank(const Deployment& deployment) const {
    GqaShape cut = shape_;
    Shares shares;
    shares.even(cut.heads, deployment.tensor, "attention heads");
    // Keys and values beyond the heads there are: every device needs those of its queries, so they are copied.
    shares.even_or_copied(cut.kv_heads, deployment.tensor, "KV heads");
    return shares.of(cut);
}

Result<BlockPtr> Gqa::on_rank(const Deployment& deployment) const {
    const auto cut = shape_on_rank(deployment);
    if (!cut) return std::unexpected(cut.error());
    return std::make_shared<Gqa>(*cut);
}

}  // namespace roofline::model
