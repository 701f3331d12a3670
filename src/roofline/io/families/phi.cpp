// Phi-1 and Phi-2: attention and FFN side by side under one LayerNorm, biases everywhere, the head's too.
#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture);
    architecture.norm = model::NormKind::layer_norm;
    architecture.head_bias = true;
    model::GqaShape shape = read_gqa(config);
    shape.qkv_bias = shape.out_bias = true;
    if (config.flag("qk_layernorm", false)) shape.qk_norm = model::QkNorm::per_head_with_bias;
    const model::DenseShape ffn{.width = config.size("intermediate_size"), .gated = false, .bias = true};
    add_layers_alike(config, architecture, [&] {
        return parallel_layer(block<model::Gqa>(shape), block<model::Dense>(ffn), NormsOfParallel::one);
    });
}

}  // namespace

extern const Family phi_family;
const Family phi_family{{"phi"}, read};

}  // namespace roofline::io
