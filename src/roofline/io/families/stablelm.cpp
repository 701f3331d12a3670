// StableLM: a gated FFN under LayerNorms, side by side with attention in some sizes.
#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture);
    architecture.norm = model::NormKind::layer_norm;
    model::GqaShape shape = read_gqa(config);
    shape.qkv_bias = config.flag("use_qkv_bias", false);
    // A norm for each head, with gains but no biases: as wide as q and k themselves.
    if (config.flag("qk_layernorm", false)) shape.qk_norm = model::QkNorm::full_width;
    const model::DenseShape ffn{.width = config.size("intermediate_size")};
    const bool parallel = config.flag("use_parallel_residual", false);
    add_layers_alike(config, architecture, [&] {
        const model::BlockPtr attention = block<model::Gqa>(shape);
        const model::BlockPtr dense = block<model::Dense>(ffn);
        return parallel ? parallel_layer(attention, dense, NormsOfParallel::one) : pre_norm_layer(attention, dense);
    });
}

}  // namespace

extern const Family stablelm_family;
const Family stablelm_family{{"stablelm", "stablelm_epoch"}, read};

}  // namespace roofline::io
