// Falcon: attention and FFN side by side, few KV heads, LayerNorm with bias.
#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture, true);
    architecture.norm = model::NormKind::layer_norm;
    const bool newer = config.flag("new_decoder_architecture", config.has("n_head_kv"));
    const bool parallel = newer || config.flag("parallel_attn", true);
    model::GqaShape shape;  // the first configs (RefinedWeb) have n_head, n_head_kv, n_layer
    shape.heads = config.size_of_any({"num_attention_heads", "n_head"});
    shape.head_dim = architecture.hidden / shape.heads;
    if (newer) {
        shape.kv_heads = config.size_of_any({"num_kv_heads", "num_key_value_heads", "n_head_kv"});
    } else {
        shape.kv_heads = config.flag("multi_query", true) ? 1.0 : shape.heads;
    }
    shape.qkv_bias = shape.out_bias = config.flag("bias", false);
    check_heads(config, shape);
    shape.rotary = !config.flag("alibi", false);
    const double width =
        config.size_or("ffn_hidden_size", config.size_or("intermediate_size", 4.0 * architecture.hidden));
    const model::DenseShape ffn{.width = width, .gated = false, .bias = shape.qkv_bias};
    const std::size_t layers = read_layer_count(config, config.has("n_layer") ? "n_layer" : "num_hidden_layers");
    const auto layer = [&] {
        const model::BlockPtr attention = block<model::Gqa>(shape);
        const model::BlockPtr dense = block<model::Dense>(ffn);
        if (!parallel) return pre_norm_layer(attention, dense);
        const bool two = newer && config.size_or("num_ln_in_parallel_attn", 2.0) == 2.0;  // one in Falcon 2
        return parallel_layer(attention, dense, two ? NormsOfParallel::each : NormsOfParallel::one);
    };
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) add_layer(architecture, "full", layer);
}

}  // namespace

extern const Family falcon_family;
const Family falcon_family{{"falcon", "RefinedWeb", "RefinedWebModel"}, read};

}  // namespace roofline::io
