// OPT: learned positions (two more rows than positions), biases everywhere, a plain FFN.
#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture, true);
    architecture.positions = config.size("max_position_embeddings") + 2.0;
    architecture.norm = model::NormKind::layer_norm;
    architecture.embedding_width = config.size_or("word_embed_proj_dim", architecture.hidden);
    model::GqaShape shape = read_gqa(config);
    shape.kv_heads = shape.heads;
    const bool bias = config.flag("enable_bias", true);
    shape.qkv_bias = shape.out_bias = bias;
    shape.rotary = false;
    const bool before = config.flag("do_layer_norm_before", true);
    architecture.final_norm = before && !config.flag("_remove_final_layer_norm", false);
    const double width = config.size("ffn_dim");
    const std::size_t layers = read_layer_count(config);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        add_layer(architecture, "full", [&] {
            model::LayerKind kind =
                pre_norm_layer(block<model::Gqa>(shape),
                               block<model::Dense>(model::DenseShape{.width = width, .gated = false, .bias = bias}));
            kind.norm_before_mixer = kind.norm_before_ffn = before;
            kind.norm_after_mixer = kind.norm_after_ffn = !before;
            return kind;
        });
    }
}

}  // namespace

extern const Family opt_family;
const Family opt_family{{"opt"}, read};

}  // namespace roofline::io
