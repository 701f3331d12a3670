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
    shape.qkv_bias = shape.out_bias = config.flag("attention_bias", true);
    const bool parallel = config.flag("use_parallel_residual", true);
    const double width = config.size("intermediate_size");
    const std::size_t layers = read_layer_count(config);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        add_layer(architecture, "full", [&] {
            model::LayerKind kind =
                pre_norm_layer(block<model::Gqa>(shape),
                               block<model::Dense>(model::DenseShape{.width = width, .gated = false, .bias = true}));
            kind.parallel = parallel;
            return kind;
        });
    }
}

}  // namespace

extern const Family gpt_neox_family;
const Family gpt_neox_family{{"gpt_neox"}, read};

}  // namespace roofline::io
