// Llama and everything shaped like it: one kind of attention (perhaps with a window on some layers) and one FFN, in
// layers one after another. What tells the model types apart is a row of the table below; the fields have the same
// names. Also the reader of last resort for a model type nobody knows that has no other fields.
#include <algorithm>
#include <array>

#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

using model::NormKind;
using model::QkNorm;

/// What a model type has where its config does not say otherwise.
struct Habits {
    std::string_view type;
    bool tied = false;
    NormKind norm = NormKind::rms;
    Norms norms = Norms::before;
    bool qkv_bias = false;
    bool out_bias_alike = true;  // the output has a bias where q, k and v have
    bool bias_everywhere = false;
    QkNorm qk_norm = QkNorm::none;
    bool gated = true;
    bool ffn_bias = false;
    bool slides = true;              // a sliding_window is in use unless use_sliding_window says otherwise
    std::size_t full_every = 0;      // of layers with a window one in so many has none, where layer_types is missing
    double learnt_activation = 0.0;  // parameters of the activation in each layer
    bool inner_norms = false;        // norms in front of the output and down products
    bool sinks = false;
    bool keys_shared = true;  // num_key_value_heads counts
    std::string_view layers = "num_hidden_layers";
};

// "llama" stands for everything that has no habits of its own.
constexpr auto habits = std::to_array<Habits>({
    {.type = "llama"},
    {.type = "qwen2", .qkv_bias = true, .out_bias_alike = false, .slides = false},
    {.type = "qwen2_vl_text", .qkv_bias = true, .out_bias_alike = false, .slides = false},
    {.type = "qwen2_5_vl_text", .qkv_bias = true, .out_bias_alike = false, .slides = false},
    {.type = "qwen2_vl", .qkv_bias = true, .out_bias_alike = false, .slides = false},
    {.type = "qwen2_5_vl", .qkv_bias = true, .out_bias_alike = false, .slides = false},
    {.type = "qwen2_5_omni_text", .qkv_bias = true, .out_bias_alike = false, .slides = false},
    {.type = "mimo", .qkv_bias = true, .out_bias_alike = false},
    {.type = "qwen3", .qk_norm = QkNorm::per_head, .slides = false},
    {.type = "qwen3_vl_text", .qk_norm = QkNorm::per_head, .slides = false},
    {.type = "smollm3", .tied = true, .slides = false},
    {.type = "internlm", .qkv_bias = true},
    {.type = "olmo", .norm = NormKind::layer_norm_bare},
    {.type = "olmo2", .norms = Norms::after, .qk_norm = QkNorm::full_width},
    {.type = "olmo3", .norms = Norms::after, .qk_norm = QkNorm::full_width, .full_every = 4},
    {.type = "exaone", .layers = "num_layers"},
    {.type = "exaone4", .norms = Norms::after, .qk_norm = QkNorm::per_head, .full_every = 4},
    {.type = "glm", .out_bias_alike = false},
    {.type = "glm4", .norms = Norms::both, .out_bias_alike = false},
    {.type = "glm4v_text", .norms = Norms::both, .qkv_bias = true, .out_bias_alike = false},
    {.type = "seed_oss", .qkv_bias = true, .out_bias_alike = false},
    {.type = "hunyuan_v1_dense", .qk_norm = QkNorm::per_head},
    {.type = "ernie4_5", .tied = true},
    {.type = "apertus", .qk_norm = QkNorm::per_head, .gated = false, .learnt_activation = 2.0},
    {.type = "arcee", .gated = false},
    {.type = "nemotron", .norm = NormKind::layer_norm, .gated = false},
    {.type = "persimmon",
     .norm = NormKind::layer_norm,
     .qkv_bias = true,
     .qk_norm = QkNorm::per_head_with_bias,
     .gated = false,
     .ffn_bias = true,
     .keys_shared = false},
    {.type = "fuyu",
     .norm = NormKind::layer_norm,
     .qkv_bias = true,
     .qk_norm = QkNorm::per_head_with_bias,
     .gated = false,
     .ffn_bias = true,
     .keys_shared = false},
    {.type = "starcoder2", .tied = true, .norm = NormKind::layer_norm, .bias_everywhere = true, .gated = false},
    {.type = "nanochat", .norm = NormKind::rms_bare, .qk_norm = QkNorm::bare, .gated = false},
    {.type = "bitnet", .inner_norms = true},
    {.type = "orion", .norm = NormKind::layer_norm},
    {.type = "hyperclovax", .norms = Norms::both},
    {.type = "granite_swa", .sinks = true},
    {.type = "jais2", .norm = NormKind::layer_norm, .qkv_bias = true, .gated = false, .ffn_bias = true},
});

// Those that are a Llama in all that counts.
constexpr auto plain = std::to_array<std::string_view>({
    "mistral",
    "mistral3",
    "ministral",
    "ministral3",
    "granite",
    "phi3",
    "internlm2",
    "internlm3",
    "yi",
    "baichuan",
    "helium",
    "minicpm",
    "aquila",
    "xverse",
    "cwm",
    "emu3_text_model",
});

const Habits& habits_of(std::string_view type) {
    const auto found =
        std::find_if(habits.begin(), habits.end(), [&](const Habits& each) { return each.type == type; });
    return found == habits.end() ? habits.front() : *found;
}

model::GqaShape read_attention(Fields& config, const Habits& own, bool bias_everywhere) {
    model::GqaShape shape = read_gqa(config);
    const bool bias = config.flag("attention_bias", config.flag("bias", own.qkv_bias || bias_everywhere));
    shape.qkv_bias = config.flag("qkv_bias", bias);
    shape.out_bias = config.flag("attention_out_bias", (bias && own.out_bias_alike) || bias_everywhere);
    const bool norm = config.flag("use_qk_norm", config.flag("qk_norm", own.qk_norm != QkNorm::none));
    if (config.flag("qk_layernorm", norm)) {
        const bool full = config.text_or("qk_norm_type", "per_head") == "per_layer";
        shape.qk_norm = own.qk_norm != QkNorm::none ? own.qk_norm : full ? QkNorm::full_width : QkNorm::per_head;
    }
    shape.out_norm = own.inner_norms;
    shape.sinks = own.sinks;
    if (!own.keys_shared) shape.kv_heads = shape.heads;
    return shape;
}

bool slides(Fields& config, const Habits& own, const std::vector<std::string>& types, std::size_t layer) {
    if (!types.empty()) return types[layer] == "sliding_attention";
    if (config.has("max_window_layers")) return static_cast<double>(layer) >= config.count_or("max_window_layers", 0.0);
    return own.full_every == 0 || (layer + 1) % own.full_every != 0;
}

void read(Fields& config, model::Architecture& architecture) {
    Habits own = habits_of(config.text_or("model_type", "llama"));
    if (config.has("use_post_norm")) own.norms = config.flag("use_post_norm", true) ? Norms::both : Norms::before;
    read_trunk(config, architecture, own.tied);
    architecture.norm = own.norm;
    architecture.embedding_norm = own.norm == NormKind::rms_bare;
    const bool bias_everywhere = config.flag("use_bias", own.bias_everywhere);
    const model::GqaShape shape = read_attention(config, own, bias_everywhere);
    const model::DenseShape ffn{.width = config.size("intermediate_size"),
                                .gated = config.flag("gated_mlp", own.gated),
                                .bias = config.flag("mlp_bias", own.ffn_bias || bias_everywhere),
                                .inner_norm = own.inner_norms,
                                .learnt_activation = own.learnt_activation};

    const std::size_t layers = read_layer_count(config, config.has(own.layers) ? own.layers : "num_hidden_layers");
    const auto types = read_layer_types(config, layers);
    const bool listed = std::find(types.begin(), types.end(), "sliding_attention") != types.end();
    const auto window = read_window(config, own.slides || listed);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool sliding = window && slides(config, own, types, i);
        add_layer(architecture, sliding ? "sliding" : "full", [&] {
            model::GqaShape attention = shape;
            if (sliding) attention.reach = model::Reach::window(*window);
            return serial_layer(block<model::Gqa>(attention), block<model::Dense>(ffn), own.norms);
        });
    }
}

std::vector<std::string_view> types() {
    std::vector<std::string_view> all(plain.begin(), plain.end());
    for (const Habits& each : habits) all.push_back(each.type);
    return all;
}

}  // namespace

extern const Family llama_family;
const Family llama_family{types(), read};

}  // namespace roofline::io
