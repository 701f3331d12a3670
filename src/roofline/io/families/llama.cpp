// Llama and everything shaped like it: one kind of attention (perhaps with a window on some layers) and a gated FFN.
// Also the reader of last resort for a model type nobody knows that has the same fields.
#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    const std::string type = config.text_or("model_type", "llama");
    read_trunk(config, architecture, type == "smollm3");
    model::GqaShape shape = read_gqa(config);
    const bool qwen2_like = type == "qwen2" || type == "mimo";
    shape.qkv_bias = config.flag("qkv_bias", config.flag("attention_bias", qwen2_like));
    shape.out_bias = config.flag("attention_out_bias", shape.qkv_bias && !qwen2_like);
    const bool norm_by_default = type == "qwen3" || type == "qwen3_vl_text" || type == "olmo2" || type == "olmo3";
    if (config.flag("use_qk_norm", config.flag("qk_norm", norm_by_default))) {
        shape.qk_norm = type == "olmo2" || type == "olmo3" ? model::QkNorm::full_width : model::QkNorm::per_head;
    }
    const model::DenseShape ffn{.width = config.size("intermediate_size"),
                                .gated = config.flag("gated_mlp", true),
                                .bias = config.flag("mlp_bias", false)};

    const std::size_t layers = read_layer_count(config);
    const auto types = read_layer_types(config, layers);
    const auto window = read_window(config);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool sliding = window && (types.empty() || types[i] == "sliding_attention");
        add_layer(architecture, sliding ? "sliding" : "full", [&] {
            model::GqaShape own = shape;
            if (sliding) own.reach = model::Reach::window(*window);
            model::LayerKind kind = pre_norm_layer(block<model::Gqa>(own), block<model::Dense>(ffn));
            if (type == "olmo2" || type == "olmo3") {  // norms after the blocks instead of before
                kind.norm_before_mixer = kind.norm_before_ffn = false;
                kind.norm_after_mixer = kind.norm_after_ffn = true;
            }
            return kind;
        });
    }
}

}  // namespace

extern const Family llama_family;
const Family llama_family{
    {"llama", "mistral", "mistral3", "ministral", "qwen2", "qwen3", "qwen3_vl_text", "mimo", "granite", "olmo2",
     "olmo3", "phi3", "smollm3", "internlm2", "internlm3", "yi", "exaone4", "seed_oss", "baichuan"},
    read};

}  // namespace roofline::io
