// Llama-like attention with experts instead of a dense FFN: Mixtral, Qwen MoE, MiniMax M2, and relatives.
#include <algorithm>

#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    const std::string type = config.text_or("model_type", "mixtral");
    read_trunk(config, architecture);
    model::GqaShape shape = read_gqa(config);
    const bool qwen2 = type == "qwen2_moe";
    shape.qkv_bias = config.flag("qkv_bias", config.flag("attention_bias", qwen2));
    shape.out_bias = config.flag("attention_out_bias", shape.qkv_bias && !qwen2 && type != "glm4_moe");
    const bool norm_by_default = type == "qwen3_moe" || type == "qwen3_vl_moe_text" || type == "olmoe";
    if (config.flag("use_qk_norm", norm_by_default)) {
        const bool full = type == "olmoe" || config.text_or("qk_norm_type", "per_head") == "per_layer";
        shape.qk_norm = full ? model::QkNorm::full_width : model::QkNorm::per_head;
    }
    if (const auto window = read_window(config)) shape.reach = model::Reach::window(*window);

    model::MoeShape moe = read_moe(config);
    moe.shared_width =
        config.count_or("shared_expert_intermediate_size", config.count_or("shared_intermediate_size", 0.0));
    moe.shared_gate = moe.shared_width > 0.0 && qwen2;
    if (config.has("n_shared_experts")) moe.shared_width = config.count_or("n_shared_experts", 0.0) * moe.width;
    if (config.flag("use_routing_bias", type == "glm4_moe")) moe.router_parameters = moe.experts;

    const std::size_t layers = read_layer_count(config);
    const double first_dense = config.count_or("first_k_dense_replace", 0.0);
    const double every = config.size_or("decoder_sparse_step", 1.0);
    const auto dense_layers = config.numbers("mlp_only_layers");
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const auto layer = static_cast<double>(i);
        const bool listed = std::find(dense_layers.begin(), dense_layers.end(), layer) != dense_layers.end();
        const bool sparse = !listed && layer >= first_dense &&
                            static_cast<std::size_t>(layer + 1.0) % static_cast<std::size_t>(every) == 0;
        add_layer(architecture, sparse ? "moe" : "dense", [&] {
            return pre_norm_layer(
                block<model::Gqa>(shape),
                sparse ? block<model::Moe>(moe)
                       : block<model::Dense>(model::DenseShape{.width = config.size("intermediate_size")}));
        });
    }
}

}  // namespace

extern const Family moe_family;
const Family moe_family{{"mixtral", "qwen2_moe", "qwen3_moe", "qwen3_vl_moe_text", "minimax_m2", "olmoe", "glm4_moe",
                         "phimoe", "granitemoe"},
                        read};

}  // namespace roofline::io
