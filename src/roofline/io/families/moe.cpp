// Llama-like attention with experts instead of a dense FFN: Mixtral, Qwen MoE, MiniMax M2, and relatives.
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

using model::NormKind;
using model::QkNorm;

enum class Gate { none, full, per_head };
enum class Sinks { none, sliding, all };

/// What a model type has where its config does not say otherwise.
struct Habits {
    std::string_view type;
    bool tied = false;
    NormKind norm = NormKind::rms;
    Norms norms = Norms::before;
    bool qkv_bias = false;
    bool out_bias_alike = true;  // the output has a bias where q, k and v have
    QkNorm qk_norm = QkNorm::none;
    bool shared_gate = false;
    bool routing_bias = false;  // a correction for every expert beside the router
    bool slides = true;         // a sliding_window is in use unless use_sliding_window says otherwise
    Gate gate = Gate::none;     // of what attention gives
    Sinks sinks = Sinks::none;
};

constexpr auto habits = std::to_array<Habits>({
    {.type = "mixtral"},
    {.type = "qwen2_moe", .qkv_bias = true, .out_bias_alike = false, .shared_gate = true, .slides = false},
    {.type = "qwen3_moe", .qk_norm = QkNorm::per_head, .slides = false},
    {.type = "qwen3_vl_moe_text", .qk_norm = QkNorm::per_head, .slides = false},
    {.type = "qwen3_omni_moe_text", .qk_norm = QkNorm::per_head, .slides = false},
    {.type = "minimax_m2", .qk_norm = QkNorm::full_width},
    {.type = "olmoe", .qk_norm = QkNorm::full_width},
    {.type = "flex_olmo", .norms = Norms::after, .qk_norm = QkNorm::full_width},
    {.type = "glm4_moe", .out_bias_alike = false, .routing_bias = true},
    {.type = "glm4v_moe_text", .out_bias_alike = false, .routing_bias = true},
    {.type = "dots1", .qk_norm = QkNorm::per_head, .routing_bias = true},
    {.type = "phimoe", .norm = NormKind::layer_norm},
    {.type = "granitemoe"},
    {.type = "granitemoeshared"},
    {.type = "granitemoe_swa", .sinks = Sinks::all},
    {.type = "ernie4_5_moe", .tied = true, .routing_bias = true},
    {.type = "deepseek"},
    {.type = "bailing_moe"},
    {.type = "aria_text"},
    {.type = "exaone_moe", .qk_norm = QkNorm::per_head, .routing_bias = true},
    {.type = "solar_open", .routing_bias = true},
    {.type = "hy_v3", .qk_norm = QkNorm::per_head, .routing_bias = true},
    {.type = "mellum", .qk_norm = QkNorm::per_head},
    {.type = "afmoe", .norms = Norms::both, .qk_norm = QkNorm::per_head, .routing_bias = true, .gate = Gate::full},
    {.type = "laguna", .qk_norm = QkNorm::per_head, .routing_bias = true, .gate = Gate::per_head},
    {.type = "mimo_v2_flash", .routing_bias = true, .sinks = Sinks::sliding},
});

/// Shared experts under the names families give them: a width, or a number of experts as wide as the others.
double shared_width(Fields& config, double width) {
    for (const char* key : {"n_shared_experts", "moe_num_shared_experts", "num_shared_experts"}) {
        if (config.has(key)) return config.count_or(key, 0.0) * width;
    }
    return config.count_or("shared_expert_intermediate_size", config.count_or("shared_intermediate_size", 0.0));
}

bool has_experts(Fields& config, std::size_t layer, std::size_t layers, const std::vector<double>& dense_layers) {
    const auto at = static_cast<double>(layer);
    if (std::find(dense_layers.begin(), dense_layers.end(), at) != dense_layers.end()) return false;
    if (at < config.count_or("first_k_dense_replace", config.count_or("num_dense_layers", 0.0))) return false;
    if (std::fmod(at + 1.0, config.size_or("decoder_sparse_step", 1.0)) != 0.0) return false;
    if (config.has("moe_layer_interval")) {  // Ernie
        const double last = config.number_or("moe_layer_end_index", -1.0);
        const double end = last < 0.0 ? static_cast<double>(layers) - 1.0 : last;
        return at >= config.count_or("moe_layer_start_index", 0.0) && at <= end &&
               std::fmod(at + 1.0, config.size("moe_layer_interval")) == 0.0;
    }
    return true;
}

model::GqaShape read_attention(Fields& config, const Habits& own) {
    model::GqaShape shape = read_gqa(config);
    shape.value_dim = config.size_or("v_head_dim", 0.0);
    const bool bias = config.flag("attention_bias", config.flag("use_bias", own.qkv_bias));
    shape.qkv_bias = config.flag("qkv_bias", config.flag("use_qkv_bias", bias));
    shape.out_bias = config.flag("attention_out_bias", bias && own.out_bias_alike);
    if (config.flag("use_qk_norm", own.qk_norm != QkNorm::none)) {
        const bool full = config.text_or("qk_norm_type", "per_head") == "per_layer";
        shape.qk_norm = own.qk_norm != QkNorm::none ? own.qk_norm : full ? QkNorm::full_width : QkNorm::per_head;
    }
    shape.gate = own.gate == Gate::full;
    shape.head_gate = own.gate == Gate::per_head && config.flag("gating", true);
    return shape;
}

void read(Fields& config, model::Architecture& architecture) {
    const std::string type = config.text_or("model_type", "mixtral");
    const auto found =
        std::find_if(habits.begin(), habits.end(), [&](const Habits& each) { return each.type == type; });
    const Habits& own = found == habits.end() ? habits.front() : *found;
    read_trunk(config, architecture, own.tied);
    architecture.norm = own.norm;
    architecture.head_bias = config.flag("lm_head_bias", false);
    const model::GqaShape shape = read_attention(config, own);
    const std::size_t layers = read_layer_count(config);
    const auto types = read_layer_types(config, layers);
    const bool listed = std::find(types.begin(), types.end(), "sliding_attention") != types.end();
    const auto window = read_window(config, own.slides || listed);
    if (own.sinks == Sinks::sliding && types.empty())
        config.complain("layer_types", "is missing: it says which layers have a window and sinks");
    const auto heads = config.numbers("num_attention_heads_per_layer");
    if (std::any_of(heads.begin(), heads.end(), [&](double each) { return each != shape.heads; }))
        config.complain("num_attention_heads_per_layer", "differs between layers, which is not modelled");

    model::MoeShape moe = read_moe(config);
    moe.shared_width = shared_width(config, moe.width);
    moe.shared_gate = moe.shared_width > 0.0 && own.shared_gate;
    if (config.flag("use_routing_bias", own.routing_bias)) moe.router_parameters = moe.experts;

    const auto dense_layers = config.numbers("mlp_only_layers");
    const auto sparse_layers = read_sparse_layers(config, layers);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool sparse = sparse_layers.empty() ? has_experts(config, i, layers, dense_layers) : sparse_layers[i];
        const bool sliding = window && (types.empty() || types[i] == "sliding_attention");
        const std::string ffn = sparse ? "moe" : "dense";
        add_layer(architecture, listed ? (sliding ? "sliding," : "full,") + ffn : ffn, [&] {
            model::GqaShape attention = shape;
            if (sliding) attention.reach = model::Reach::window(*window);
            // Not written by transformers 5, where it is 8 (as in the one published model of the type).
            if (sliding && type == "mimo_v2_flash") attention.kv_heads = config.size_or("swa_num_key_value_heads", 8.0);
            attention.sinks = own.sinks == Sinks::all || (sliding && own.sinks == Sinks::sliding);
            return serial_layer(block<model::Gqa>(attention),
                                sparse
                                    ? block<model::Moe>(moe)
                                    : block<model::Dense>(model::DenseShape{.width = config.size("intermediate_size")}),
                                own.norms);
        });
    }
}

std::vector<std::string_view> types() {
    std::vector<std::string_view> all;
    for (const Habits& each : habits) all.push_back(each.type);
    return all;
}

}  // namespace

extern const Family moe_family;
const Family moe_family{types(), read};

}  // namespace roofline::io
