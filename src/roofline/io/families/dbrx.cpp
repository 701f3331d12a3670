// DBRX: its own field names, LayerNorm without bias, 4 of 16 experts.
#include "roofline/io/family.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    architecture.hidden = config.size("d_model");
    architecture.vocabulary = config.size("vocab_size");
    architecture.tied = config.flag("tie_word_embeddings", false);
    architecture.longest_context = config.size_or("max_seq_len", 0.0);
    architecture.norm = model::NormKind::layer_norm_without_bias;
    Fields attention = config.child("attn_config");
    Fields experts = config.child("ffn_config");
    model::GqaShape shape;
    shape.heads = config.size("n_heads");
    shape.kv_heads = attention.size_or("kv_n_heads", shape.heads);
    shape.head_dim = architecture.hidden / shape.heads;
    check_heads(config, shape);
    const model::MoeShape moe{.experts = experts.size("moe_num_experts"),
                              .chosen = experts.size("moe_top_k"),
                              .width = experts.size("ffn_hidden_size")};
    if (moe.chosen > moe.experts) experts.complain("moe_top_k", "is more than there are experts");
    const double layers = config.size("n_layers");
    if (layers > 10'000.0) config.complain("n_layers", "is out of range, expected at most 10000");
    for (int i = 0; i < layers && !config.failed(); ++i) {
        add_layer(architecture, "moe",
                  [&] { return pre_norm_layer(block<model::Gqa>(shape), block<model::Moe>(moe)); });
    }
}

}  // namespace

extern const Family dbrx_family;
const Family dbrx_family{{"dbrx"}, read};

}  // namespace roofline::io
