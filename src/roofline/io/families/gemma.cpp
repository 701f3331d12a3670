// Gemma 2, 3 and 4: norms before and after each block, windows on most layers, embeddings tied; Gemma 4 adds experts
// beside the dense FFN and full layers with wider heads whose values are their keys.
#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

bool is_sliding(const std::vector<std::string>& types, std::size_t layer, double pattern) {
    if (!types.empty()) return types[layer] == "sliding_attention";
    return static_cast<std::size_t>(layer + 1) % static_cast<std::size_t>(pattern) != 0;
}

void read(Fields& config, model::Architecture& architecture) {
    const std::string type = config.text_or("model_type", "gemma2");
    const bool gemma4 = type == "gemma4_text";
    read_trunk(config, architecture, true);
    model::GqaShape shape = read_gqa(config);
    shape.qkv_bias = shape.out_bias = config.flag("attention_bias", false);
    if (type != "gemma2" && type != "gemma") shape.qk_norm = model::QkNorm::per_head;

    model::GqaShape full = shape;
    if (gemma4) {
        full.head_dim = config.size_or("global_head_dim", shape.head_dim);
        full.kv_heads = config.size_or("num_global_key_value_heads", shape.kv_heads);
        full.value_is_key = config.flag("attention_k_eq_v", false);
        check_heads(config, full);
        if (config.count_or("hidden_size_per_layer_input", 0.0) > 0.0 ||
            config.count_or("num_kv_shared_layers", 0.0) > 0.0) {
            config.complain(
                "hidden_size_per_layer_input",
                "is set: per-layer embeddings and shared KV layers of Gemma 4's small models are not modelled");
        }
    }
    const model::DenseShape dense{.width = config.size("intermediate_size")};
    model::BlockPtr ffn = block<model::Dense>(dense);
    if (gemma4 && config.flag("enable_moe_block", false)) {
        model::MoeShape moe = read_moe(config);
        moe.dense_width = dense.width;
        moe.extra_norms = 3;
        moe.router_parameters = architecture.hidden + moe.experts;  // input scale and a scale per expert
        moe.extra_parameters = 1.0;                                 // the layer's scalar
        ffn = block<model::Moe>(moe);
    }
    const std::size_t layers = read_layer_count(config);
    const auto types = read_layer_types(config, layers);
    const double pattern = config.size_or("sliding_window_pattern", type == "gemma2" ? 2.0 : 6.0);
    const auto window = read_window(config);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool sliding = window && type != "gemma" && is_sliding(types, i, pattern);
        add_layer(architecture, sliding ? "sliding" : "full", [&] {
            model::GqaShape own = sliding ? shape : full;
            if (sliding) own.reach = model::Reach::window(*window);
            model::LayerKind kind = pre_norm_layer(block<model::Gqa>(own), ffn);
            kind.norm_after_mixer = kind.norm_after_ffn = type != "gemma";
            return kind;
        });
    }
}

}  // namespace

extern const Family gemma_family;
const Family gemma_family{{"gemma", "gemma2", "gemma3_text", "gemma3", "gemma4_text"}, read};

}  // namespace roofline::io
