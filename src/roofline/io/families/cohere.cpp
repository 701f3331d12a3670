// Cohere Command R: attention and FFN side by side under one LayerNorm without bias; Command R7B and A add windows.
#include <algorithm>

#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture, true);
    architecture.norm = model::NormKind::layer_norm_without_bias;
    model::GqaShape shape = read_gqa(config);
    shape.qkv_bias = shape.out_bias = config.flag("attention_bias", false);
    // Command R+ has a gain for every head and position in it: as wide as q and k themselves.
    if (config.flag("use_qk_norm", false)) shape.qk_norm = model::QkNorm::full_width;
    model::BlockPtr ffn = block<model::Dense>(model::DenseShape{.width = config.size("intermediate_size")});
    if (config.text_or("model_type", "cohere") == "cohere2_moe") {
        const auto sparse = read_sparse_layers(config, read_layer_count(config));
        if (std::find(sparse.begin(), sparse.end(), false) != sparse.end())
            config.complain("mlp_layer_types", "has dense layers among those with experts, which is not modelled");
        model::MoeShape moe = read_moe(config);
        moe.shared_width = config.count_or("num_shared_experts", 0.0) * moe.width;
        ffn = block<model::Moe>(moe);
    }
    const std::size_t layers = read_layer_count(config);
    const auto types = read_layer_types(config, layers);
    const auto window = read_window(config);
    const auto pattern = static_cast<std::size_t>(config.size_or("sliding_window_pattern", 4.0));
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool sliding = window && (types.empty() ? (i + 1) % pattern != 0 : types[i] == "sliding_attention");
        add_layer(architecture, sliding ? "sliding" : "full", [&] {
            model::GqaShape own = shape;
            if (sliding) own.reach = model::Reach::window(*window);
            own.rotary = sliding || !window;
            return parallel_layer(block<model::Gqa>(own), ffn, NormsOfParallel::one);
        });
    }
}

}  // namespace

extern const Family cohere_family;
const Family cohere_family{{"cohere", "cohere2", "cohere2_moe"}, read};

}  // namespace roofline::io
