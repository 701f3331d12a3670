// GPT-NeoX and Pythia: attention and FFN side by side, each under a LayerNorm of its own, biases on everything but the
// head.
#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture);
    architecture.norm = model::NormKind::layer_norm;
    model::GqaShape shape = read_gqa(config);
    shape.kv_heads = shape.heads;
    shape.qkv_bias = shape.out_bias = config.flag("attention_bias", true);
    const bool parallel = config.flag("use_parallel_residual", true);
    const model::DenseShape ffn{.width = config.size("intermediate_size"), .gated = false, .bias = true};
    add_layers_alike(config, architecture, [&] {
        const model::BlockPtr attention = block<model::Gqa>(shape);
        const model::BlockPtr dense = block<model::Dense>(ffn);
        return parallel ? parallel_layer(attention, dense, NormsOfParallel::each) : pre_norm_layer(attention, dense);
    });
}

}  // namespace

extern const Family gpt_neox_family;
const Family gpt_neox_family{{"gpt_neox"}, read};

}  // namespace roofline::io
