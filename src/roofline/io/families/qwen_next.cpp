// Qwen3-Next and Qwen3.5: three gated delta nets to one gated full attention; dense or with experts.
#include <algorithm>

#include "roofline/io/family.hpp"
#include "roofline/model/attention/gated_delta.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture);
    model::GqaShape full = read_gqa(config);
    full.qk_norm = model::QkNorm::per_head;
    full.gate = config.flag("attn_output_gate", true);
    full.qkv_bias = full.out_bias = config.flag("attention_bias", false);
    const model::GatedDeltaShape linear{
        .key_heads = config.size("linear_num_key_heads"),
        .value_heads = config.size("linear_num_value_heads"),
        .key_dim = config.size("linear_key_head_dim"),
        .value_dim = config.size("linear_value_head_dim"),
        .convolution = config.size_or("linear_conv_kernel_dim", 4.0),
        .state_bytes_per_element = config.text_or("mamba_ssm_dtype", "float32") == "float32" ? 4.0 : 2.0};
    const bool experts = config.has("num_experts") && config.count_or("num_experts", 0.0) > 0.0;
    model::BlockPtr ffn;
    if (experts) {
        model::MoeShape moe = read_moe(config);
        moe.shared_width = config.count_or("shared_expert_intermediate_size", 0.0);
        moe.shared_gate = moe.shared_width > 0.0;
        ffn = block<model::Moe>(moe);
    } else {
        ffn = block<model::Dense>(model::DenseShape{.width = config.size("intermediate_size")});
    }
    // Checkpoints of the first of them have a module that predicts, though their configs do not say so.
    if (architecture.family == "qwen3_next") architecture.predictors = 1.0;
    const std::size_t layers = read_layer_count(config);
    const auto types = read_layer_types(config, layers);
    const auto interval = static_cast<std::size_t>(config.size_or("full_attention_interval", 4.0));
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool is_full = types.empty() ? (i + 1) % interval == 0 : types[i] == "full_attention";
        add_layer(architecture, is_full ? "full" : "linear", [&] {
            return pre_norm_layer(is_full ? block<model::Gqa>(full) : block<model::GatedDelta>(linear), ffn);
        });
    }
}

}  // namespace

extern const Family qwen_next_family;
const Family qwen_next_family{{"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_5", "qwen3_5_moe"}, read};

}  // namespace roofline::io
