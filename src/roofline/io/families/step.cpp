// Step 3.5 and 3.7 Flash: windows on three of four layers (with more query heads there), a gate per head, experts after
// a few dense layers.
#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture);
    model::GqaShape full = read_gqa(config);
    full.qk_norm = model::QkNorm::per_head;
    full.head_gate = config.flag("use_head_wise_attn_gate", true);
    model::GqaShape sliding = full;
    sliding.reach = model::Reach::window(config.size("sliding_window"));
    if (config.has("attention_other_setting")) {
        Fields other = config.child("attention_other_setting");
        sliding.heads = other.size_or("num_attention_heads", full.heads);
        sliding.kv_heads = other.size_of_any({"num_attention_groups", "num_key_value_heads"});
        sliding.head_dim = other.size_or("head_dim", full.head_dim);
        check_heads(other, sliding);
    }
    model::MoeShape moe = read_moe(config);
    moe.shared_width = config.count_or("share_expert_dim", 0.0);
    if (config.flag("use_moe_router_bias", false)) moe.router_parameters = moe.experts;
    const double first_dense = config.count_or("first_k_dense_replace", 0.0);
    const std::size_t layers = read_layer_count(config);
    const auto types = read_layer_types(config, layers);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool is_full = types.empty() ? i % 4 == 0 : types[i] == "full_attention";
        const bool experts = static_cast<double>(i) >= first_dense;
        add_layer(architecture, std::string(is_full ? "full" : "sliding") + (experts ? ",moe" : ",dense"), [&] {
            return pre_norm_layer(
                block<model::Gqa>(is_full ? full : sliding),
                experts ? block<model::Moe>(moe)
                        : block<model::Dense>(model::DenseShape{.width = config.size("intermediate_size")}));
        });
    }
}

}  // namespace

extern const Family step_family;
const Family step_family{{"step3p7", "step3p5"}, read};

}  // namespace roofline::io
