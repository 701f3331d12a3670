// Jamba: Mamba layers with an attention layer in every eight, experts in every second layer.
#include <cmath>

#include "roofline/io/family.hpp"
#include "roofline/model/attention/mamba1.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture);
    model::GqaShape attention = read_gqa(config);
    attention.rotary = false;
    const Json* rank = config.find("mamba_dt_rank");
    const bool automatic = rank == nullptr || rank->is_string();
    const model::Mamba1Shape mamba{
        .inner = config.size_or("mamba_expand", 2.0) * architecture.hidden,
        .state_size = config.size_or("mamba_d_state", 16.0),
        .step_rank = automatic ? std::ceil(architecture.hidden / 16.0) : config.size("mamba_dt_rank"),
        .convolution = config.size_or("mamba_d_conv", 4.0),
        .projection_bias = config.flag("mamba_proj_bias", false),
        .convolution_bias = config.flag("mamba_conv_bias", true),
        .inner_norms = true};
    model::MoeShape moe = read_moe(config);
    moe.width = config.size("intermediate_size");
    const auto at = [&](const char* period, const char* offset, std::size_t layer, double every, double first) {
        return std::fmod(static_cast<double>(layer), config.size_or(period, every)) == config.count_or(offset, first);
    };
    const std::size_t layers = read_layer_count(config);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool attends = at("attn_layer_period", "attn_layer_offset", i, 8.0, 4.0);
        const bool experts = at("expert_layer_period", "expert_layer_offset", i, 2.0, 1.0);
        const std::string label = std::string(attends ? "attention" : "mamba") + (experts ? ",moe" : ",dense");
        add_layer(architecture, label, [&] {
            return pre_norm_layer(
                attends ? block<model::Gqa>(attention) : block<model::Mamba1>(mamba),
                experts ? block<model::Moe>(moe) : block<model::Dense>(model::DenseShape{.width = moe.width}));
        });
    }
}

}  // namespace

extern const Family jamba_family;
const Family jamba_family{{"jamba"}, read};

}  // namespace roofline::io
