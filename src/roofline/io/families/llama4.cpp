// Llama 4: three of four layers attend within chunks, the fourth to everything; one expert of many and a shared one.
#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture);
    model::GqaShape shape = read_gqa(config);
    shape.qkv_bias = shape.out_bias = config.flag("attention_bias", false);
    model::MoeShape moe = read_moe(config);
    moe.width = config.size("intermediate_size");
    moe.shared_width = moe.width;
    const double chunk = config.size_or("attention_chunk_size", 8192.0);
    const auto interval = static_cast<std::size_t>(config.size_or("no_rope_layer_interval", 4.0));
    const auto step = static_cast<std::size_t>(config.size_or("interleave_moe_layer_step", 1.0));
    const auto rope = config.numbers("no_rope_layers");  // 1: rotary, 0: none
    const std::size_t layers = read_layer_count(config);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool full = rope.size() == layers ? rope[i] == 0.0 : (i + 1) % interval == 0;
        const bool experts = (i + 1) % step == 0;
        const std::string label = std::string(full ? "full" : "chunked") + (experts ? ",moe" : ",dense");
        add_layer(architecture, label, [&] {
            model::GqaShape own = shape;
            own.rotary = !full;
            if (!full) own.reach = model::Reach::chunked(chunk);
            const model::BlockPtr ffn =
                experts ? block<model::Moe>(moe)
                        : block<model::Dense>(model::DenseShape{.width = config.size("intermediate_size_mlp")});
            return pre_norm_layer(block<model::Gqa>(own), ffn);
        });
    }
}

}  // namespace

extern const Family llama4_family;
const Family llama4_family{{"llama4_text", "llama4"}, read};

}  // namespace roofline::io
