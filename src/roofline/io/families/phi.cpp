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
    const double width = config.size("intermediate_size");
    const std::size_t layers = read_layer_count(config);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        add_layer(architecture, "full", [&] {
            model::LayerKind kind =
                pre_norm_layer(block<model::Gqa>(shape),
                               block<model::Dense>(model::DenseShape{.width = width, .gated = false, .bias = true}));
            kind.parallel = true;
            kind.norm_before_ffn = false;
            return kind;
        });
    }
}

}  // namespace

extern const Family phi_family;
const Family phi_family{{"phi"}, read};

}  // namespace roofline::io
