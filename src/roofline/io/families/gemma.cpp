// Gemma 2, 3 and 4: norms before and after each block, windows on most layers, embeddings tied; Gemma 4 adds experts
// beside the dense FFN and full layers with wider heads whose values are their keys.
#include <algorithm>
#include <cstdlib>

#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

bool is_sliding(const std::vector<std::string>& types, std::size_t layer, double pattern) {
    if (!types.empty()) return types[layer] == "sliding_attention";
    return static_cast<std::size_t>(layer + 1) % static_cast<std::size_t>(pattern) != 0;
}

/// transformers 5 writes what its full layers have of their own layer by layer: { "05": { "head_dim": 512 }, ... }.
struct FullLayers {
    double head_dim = 0.0;
    double kv_heads = 0.0;
};

FullLayers read_full_layers(Fields& config, const model::GqaShape& shape) {
    FullLayers result{shape.head_dim, shape.kv_heads};
    if (!config.has("per_layer_config")) return result;
    const auto types = config.texts("layer_types");
    std::size_t full = 0;
    Fields layers = config.child("per_layer_config");
    for (const std::string& name : layers.keys()) {
        Fields own = layers.child(name);
        result = {own.size_or("head_dim", shape.head_dim), own.size_or("num_key_value_heads", shape.kv_heads)};
        for (const std::string& key : own.keys()) {
            if (key != "head_dim" && key != "num_key_value_heads")
                own.complain(key, "is set for one layer, expected only head_dim and num_key_value_heads");
        }
        const auto number = static_cast<std::size_t>(std::strtoul(name.c_str(), nullptr, 10));
        if (number >= types.size() || types[number] != "full_attention")
            layers.complain(name, "is not a full layer by layer_types, which is not modelled");
        ++full;
    }
    if (full != static_cast<std::size_t>(std::count(types.begin(), types.end(), "full_attention")))
        config.complain("per_layer_config", "does not name every full layer, which is not modelled");
    return result;
}

void read(Fields& config, model::Architecture& architecture) {
    const std::string type = config.text_or("model_type", "gemma2");
    const bool gemma4 = type == "gemma4_text" || type == "gemma4_unified_text";
    read_trunk(config, architecture, true);
    model::GqaShape shape = read_gqa(config);
    shape.qkv_bias = shape.out_bias = config.flag("attention_bias", false);
    const bool two_norms = type == "gemma" || type == "vaultgemma";
    if (type != "gemma2" && !two_norms) shape.qk_norm = model::QkNorm::per_head;

    model::GqaShape full = shape;
    if (gemma4) {
        const FullLayers full_layers = read_full_layers(config, shape);
        full.head_dim = config.size_or("global_head_dim", full_layers.head_dim);
        full.kv_heads = config.size_or("num_global_key_value_heads", full_layers.kv_heads);
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
    const double pattern =
        config.size_or("sliding_window_pattern", type == "gemma2" || type == "vaultgemma" ? 2.0 : 6.0);
    const auto window = read_window(config);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool sliding = window && type != "gemma" && is_sliding(types, i, pattern);
        add_layer(architecture, sliding ? "sliding" : "full", [&] {
            model::GqaShape own = sliding ? shape : full;
            if (sliding) own.reach = model::Reach::window(*window);
            model::LayerKind kind = pre_norm_layer(block<model::Gqa>(own), ffn);
            kind.norm_after_mixer = kind.norm_after_ffn = !two_norms;
            return kind;
        });
    }
}

}  // namespace

extern const Family gemma_family;
const Family gemma_family{
    {"gemma", "gemma2", "gemma3_text", "gemma3", "gemma4_text", "gemma4_unified_text", "vaultgemma"}, read};

}  // namespace roofline::io
