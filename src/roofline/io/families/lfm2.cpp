// LFM2: short convolutions with an attention layer now and then; the larger ones have experts after two dense layers.
#include <algorithm>
#include <cmath>

#include "roofline/io/family.hpp"
#include "roofline/model/attention/short_convolution.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

/// The width of the FFN is said before the rule that makes it two thirds and a multiple of something.
double dense_width(Fields& config) {
    double width = config.size_of_any({"intermediate_size", "block_ff_dim"});
    if (!config.flag("block_auto_adjust_ff_dim", true)) return width;
    width = std::floor(2.0 * width / 3.0);
    if (config.has("block_ffn_dim_multiplier")) width = std::floor(config.positive("block_ffn_dim_multiplier") * width);
    const double multiple = config.size_or("block_multiple_of", 256.0);
    return multiple * std::ceil(width / multiple);
}

void read(Fields& config, model::Architecture& architecture) {
    const bool has_experts = config.text_or("model_type", "lfm2") == "lfm2_moe";
    read_trunk(config, architecture, config.flag("tie_embedding", true));
    model::GqaShape attention = read_gqa(config);
    attention.qk_norm = model::QkNorm::per_head;
    const model::ShortConvolutionShape convolution{.channels = architecture.hidden,
                                                   .width = config.size_or("conv_L_cache", 3.0),
                                                   .bias = config.flag("conv_bias", false)};
    const model::DenseShape dense{.width = has_experts ? config.size("intermediate_size") : dense_width(config)};
    model::MoeShape moe;
    double first_dense = 0.0;
    if (has_experts) {
        moe = read_moe(config);
        if (config.flag("use_expert_bias", true)) moe.router_parameters = moe.experts;
        first_dense = config.count_or("num_dense_layers", 2.0);
    }
    const std::size_t layers = read_layer_count(config);
    const auto types = read_layer_types(config, layers);
    const auto full = config.numbers("full_attn_idxs");
    if (types.empty() && full.empty()) config.complain("layer_types", "is missing");
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool attends = types.empty() ? std::find(full.begin(), full.end(), static_cast<double>(i)) != full.end()
                                           : types[i] == "full_attention";
        const bool sparse = has_experts && static_cast<double>(i) >= first_dense;
        add_layer(architecture, std::string(attends ? "attention" : "convolution") + (sparse ? ",moe" : ""), [&] {
            return pre_norm_layer(attends ? block<model::Gqa>(attention) : block<model::ShortConvolution>(convolution),
                                  sparse ? block<model::Moe>(moe) : block<model::Dense>(dense));
        });
    }
}

}  // namespace

extern const Family lfm2_family;
const Family lfm2_family{{"lfm2", "lfm2_moe"}, read};

}  // namespace roofline::io
