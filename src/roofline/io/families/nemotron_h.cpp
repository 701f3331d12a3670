// Nemotron-H and Nemotron 3: every layer is one block, of four kinds: Mamba-2, attention, FFN, experts.
#include <algorithm>

#include <fmt/format.h>

#include "roofline/io/family.hpp"
#include "roofline/model/attention/mamba2.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

/// One name per layer, from the list or from the string of letters.
std::vector<std::string> block_types(Fields& config, const char* list, const char* letters) {
    if (config.has(list)) {
        auto names = config.texts(list);
        for (std::string& name : names) {  // transformers 5 has other words for two of them
            if (name == "linear_attention") name = "mamba";
            if (name == "full_attention") name = "attention";
        }
        return names;
    }
    std::vector<std::string> types;
    for (const char letter : config.text(letters)) {
        switch (letter) {
            case 'M':
                types.emplace_back("mamba");
                break;
            case '*':
                types.emplace_back("attention");
                break;
            case '-':
                types.emplace_back("mlp");
                break;
            case 'E':
                types.emplace_back("moe");
                break;
            default:
                config.complain(letters, fmt::format("holds '{}', expected only M, *, - and E", letter));
        }
    }
    return types;
}

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture);
    const auto types = block_types(config, "layers_block_type", "hybrid_override_pattern");
    if (types.empty() || types.size() > 10'000)
        config.complain("layers_block_type", "is empty or too long, expected one entry per layer");
    const double bytes = config.text_or("mamba_ssm_cache_dtype", "float32") == "float32" ? 4.0 : 2.0;

    for (std::size_t i = 0; i < types.size() && !config.failed(); ++i) {
        const std::string& type = types[i];
        add_layer(architecture, type, [&] {
            if (type == "mamba") {
                return pre_norm_layer(
                    block<model::Mamba2>(model::Mamba2Shape{.heads = config.size("mamba_num_heads"),
                                                            .head_dim = config.size("mamba_head_dim"),
                                                            .groups = config.size("n_groups"),
                                                            .state_size = config.size("ssm_state_size"),
                                                            .convolution = config.size_or("conv_kernel", 4.0),
                                                            .chunk = config.size_or("chunk_size", 128.0),
                                                            .projection_bias = config.flag("mamba_proj_bias", false),
                                                            .convolution_bias = config.flag("use_conv_bias", true),
                                                            .state_bytes_per_element = bytes}),
                    nullptr);
            }
            if (type == "attention") {
                model::GqaShape shape = read_gqa(config);
                if (config.has("attention_head_dim")) shape.head_dim = config.size("attention_head_dim");
                shape.qkv_bias = shape.out_bias = config.flag("attention_bias", false);
                shape.rotary = false;
                return pre_norm_layer(block<model::Gqa>(shape), nullptr);
            }
            if (type == "mlp") {
                return pre_norm_layer(nullptr,
                                      block<model::Dense>(model::DenseShape{.width = config.size("intermediate_size"),
                                                                            .gated = false,
                                                                            .bias = config.flag("mlp_bias", false)}));
            }
            if (type != "moe") {
                config.complain("layers_block_type",
                                fmt::format("holds \"{}\", expected mamba, attention, mlp or moe", type));
            }
            model::MoeShape moe = read_moe(config);
            moe.gated = false;
            moe.router_parameters = moe.experts;
            moe.shared_width =
                config.count_or("moe_shared_expert_intermediate_size", 0.0) * config.count_or("n_shared_experts", 1.0);
            moe.latent = config.count_or("moe_latent_size", 0.0);
            return pre_norm_layer(nullptr, block<model::Moe>(moe));
        });
    }
    if (!config.has("mtp_layers_block_type") && !config.has("mtp_hybrid_override_pattern")) return;
    const auto predicting = block_types(config, "mtp_layers_block_type", "mtp_hybrid_override_pattern");
    if (predicting.size() > 64) config.complain("mtp_layers_block_type", "is too long, expected at most 64 layers");
    for (const std::string& type : predicting) {
        if (config.failed()) return;
        const auto kind = std::find_if(architecture.kinds.begin(), architecture.kinds.end(),
                                       [&](const model::LayerKind& known) { return known.label == type; });
        if (kind == architecture.kinds.end()) {
            config.complain("mtp_layers_block_type", fmt::format("holds \"{}\", which no layer is", type));
            return;
        }
        architecture.predictor.push_back(static_cast<int>(kind - architecture.kinds.begin()));
    }
}

}  // namespace

extern const Family nemotron_h_family;
const Family nemotron_h_family{{"nemotron_h"}, read};

}  // namespace roofline::io
