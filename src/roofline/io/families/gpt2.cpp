// GPT-2: learned positions, biases everywhere, a plain FFN of four times the width.
#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    architecture.hidden = config.size_of_any({"n_embd", "hidden_size"});
    architecture.vocabulary = config.size("vocab_size");
    architecture.tied = config.flag("tie_word_embeddings", true);
    architecture.positions = config.size_of_any({"n_positions", "max_position_embeddings", "n_ctx"});
    architecture.longest_context = architecture.positions;
    architecture.norm = model::NormKind::layer_norm;
    model::GqaShape shape;
    shape.heads = shape.kv_heads = config.size_of_any({"n_head", "num_attention_heads"});
    shape.head_dim = architecture.hidden / shape.heads;
    check_heads(config, shape);
    shape.qkv_bias = shape.out_bias = true;
    shape.rotary = false;
    const double width =
        config.has("n_inner") ? config.size("n_inner") : config.size_or("intermediate_size", 4.0 * architecture.hidden);
    const double layers = config.size_of_any({"n_layer", "num_hidden_layers"});
    if (layers > 10'000.0) config.complain("n_layer", "is out of range, expected at most 10000");
    for (int i = 0; i < layers && !config.failed(); ++i) {
        add_layer(architecture, "full", [&] {
            return pre_norm_layer(block<model::Gqa>(shape),
                                  block<model::Dense>(model::DenseShape{.width = width, .gated = false, .bias = true}));
        });
    }
}

}  // namespace

extern const Family gpt2_family;
const Family gpt2_family{{"gpt2"}, read};

}  // namespace roofline::io
