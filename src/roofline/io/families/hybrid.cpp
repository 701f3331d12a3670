// Mamba-2 layers with attention among them or beside them: Bamba, Granite 4, Falcon-H1.
#include <algorithm>

#include "roofline/io/family.hpp"
#include "roofline/model/attention/mamba2.hpp"
#include "roofline/model/attention/side_by_side.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

model::Mamba2Shape read_mamba(Fields& config, double hidden) {
    const double inner =
        config.has("mamba_d_ssm") ? config.size("mamba_d_ssm") : config.size_or("mamba_expand", 2.0) * hidden;
    const double heads = config.size("mamba_n_heads");
    const Json* head = config.find("mamba_d_head");
    const bool said = head != nullptr && head->is_number();  // or "auto"
    return {.heads = heads,
            .head_dim = said ? config.size("mamba_d_head") : inner / heads,
            .groups = config.size_or("mamba_n_groups", 1.0),
            .state_size = config.size("mamba_d_state"),
            .convolution = config.size_or("mamba_d_conv", 4.0),
            .chunk = config.size_or("mamba_chunk_size", 256.0),
            .projection_bias = config.flag("mamba_proj_bias", false),
            .convolution_bias = config.flag("mamba_conv_bias", true),
            .gated_norm = config.flag("mamba_rms_norm", true)};
}

void read(Fields& config, model::Architecture& architecture) {
    const std::string type = config.text_or("model_type", "bamba");
    const bool granite = type == "granitemoehybrid";
    const bool beside = type == "falcon_h1";
    read_trunk(config, architecture);
    model::GqaShape attention = read_gqa(config);
    attention.qkv_bias = attention.out_bias = config.flag("attention_bias", false);
    const model::Mamba2Shape mamba = read_mamba(config, architecture.hidden);
    model::BlockPtr ffn;
    if (granite && config.count_or("num_local_experts", 0.0) > 0.0) {
        model::MoeShape moe = read_moe(config);
        moe.width = config.size("intermediate_size");
        moe.shared_width = config.count_or("shared_intermediate_size", 0.0);
        ffn = block<model::Moe>(moe);
    } else {
        const double width = config.size(granite ? "shared_intermediate_size" : "intermediate_size");
        ffn = block<model::Dense>(model::DenseShape{.width = width, .bias = config.flag("mlp_bias", false)});
    }
    const std::size_t layers = read_layer_count(config);
    auto types = config.texts("layer_types");
    if (types.empty()) types = config.texts("layers_block_type");
    const auto listed = config.numbers("attn_layer_indices");
    if (!beside && !types.empty() && types.size() != layers) config.complain("layer_types", "is not one per layer");
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool attends = types.empty()
                                 ? std::find(listed.begin(), listed.end(), static_cast<double>(i)) != listed.end()
                                 : types[i] == "attention" || types[i] == "full_attention";
        add_layer(architecture,
                  beside    ? "both"
                  : attends ? "attention"
                            : "mamba",
                  [&] {
                      const model::BlockPtr heads = block<model::Gqa>(attention);
                      const model::BlockPtr state = block<model::Mamba2>(mamba);
                      if (beside) return pre_norm_layer(std::make_shared<const model::SideBySide>(heads, state), ffn);
                      return pre_norm_layer(attends ? heads : state, ffn);
                  });
    }
}

}  // namespace

extern const Family hybrid_family;
const Family hybrid_family{{"bamba", "granitemoehybrid", "falcon_h1"}, read};

}  // namespace roofline::io
