// gpt-oss: biases everywhere, attention sinks, every other layer with a short window.
#include "roofline/io/family.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture);
    model::GqaShape shape = read_gqa(config);
    shape.qkv_bias = shape.out_bias = config.flag("attention_bias", true);
    shape.sinks = true;
    model::MoeShape moe = read_moe(config);
    moe.bias = true;
    const double window = config.size_or("sliding_window", 128.0);
    const std::size_t layers = read_layer_count(config);
    const auto types = read_layer_types(config, layers);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool sliding = types.empty() ? i % 2 == 0 : types[i] == "sliding_attention";
        add_layer(architecture, sliding ? "sliding" : "full", [&] {
            model::GqaShape own = shape;
            if (sliding) own.reach = model::Reach::window(window);
            return pre_norm_layer(block<model::Gqa>(own), block<model::Moe>(moe));
        });
    }
}

}  // namespace

extern const Family gpt_oss_family;
const Family gpt_oss_family{{"gpt_oss"}, read};

}  // namespace roofline::io
