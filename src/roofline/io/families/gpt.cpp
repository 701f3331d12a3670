// The older decoders: LayerNorm, a plain FFN, and field names of their own (n_embd, n_head, n_layer). GPT-2,
// GPT-BigCode (StarCoder), GPT-Neo, GPT-J, CodeGen, BLOOM, MPT.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

enum class Positions { learnt, rotary, slopes };  // slopes: ALiBi, nothing stored

struct Habits {
    std::string_view type;
    Positions positions = Positions::learnt;
    bool tied = true;
    bool qkv_bias = true;
    bool out_bias = true;
    bool ffn_bias = true;
    bool parallel = false;  // attention and FFN side by side under one norm
    bool head_bias = false;
    bool embedding_norm = false;
    bool norm_bias = true;
    bool one_key = false;  // all heads share one key and value unless multi_query says otherwise
};

constexpr Habits gptj{.type = "gptj",
                      .positions = Positions::rotary,
                      .tied = false,
                      .qkv_bias = false,
                      .out_bias = false,
                      .parallel = true,
                      .head_bias = true};

constexpr Habits as(std::string_view type, Habits like) {
    like.type = type;
    return like;
}

constexpr auto habits = std::to_array<Habits>({
    {.type = "gpt2"},
    {.type = "gpt-sw3"},
    {.type = "gpt_bigcode", .one_key = true},
    {.type = "gpt_neo", .qkv_bias = false},
    gptj,
    as("codegen", gptj),
    {.type = "bloom", .positions = Positions::slopes, .embedding_norm = true},
    {.type = "mpt",
     .positions = Positions::slopes,
     .qkv_bias = false,
     .out_bias = false,
     .ffn_bias = false,
     .norm_bias = false},
});

/// GPT-Neo: [[["global", "local"], 12]] or one word per layer.
std::vector<bool> local_layers(Fields& config, std::size_t layers) {
    std::vector<bool> local;
    for (const std::string& word :
         config.has("attention_layers") ? config.texts("attention_layers") : std::vector<std::string>{})
        local.push_back(word == "local");
    if (local.size() == layers) return local;
    local.clear();
    const Json* groups = config.find("attention_types");
    if (groups != nullptr && groups->is_array()) {
        for (const Json& group : *groups) {
            if (!group.is_array() || group.size() != 2 || !group[0].is_array() || !group[1].is_number_unsigned()) break;
            for (std::size_t i = 0; i < group[1].get<std::size_t>() && local.size() < layers; ++i) {
                for (const Json& word : group[0]) local.push_back(word.is_string() && word == "local");
            }
        }
        if (local.size() != layers) {
            config.complain("attention_types", fmt::format("describes {} layers, expected {}", local.size(), layers));
        }
    }
    local.resize(layers, false);
    return local;
}

void read(Fields& config, model::Architecture& architecture) {
    const std::string type = config.text_or("model_type", "gpt2");
    const auto found =
        std::find_if(habits.begin(), habits.end(), [&](const Habits& each) { return each.type == type; });
    const Habits& own = found == habits.end() ? habits.front() : *found;
    architecture.hidden = config.size_of_any({"n_embd", "hidden_size", "n_embed", "d_model"});
    architecture.vocabulary = config.size("vocab_size");
    architecture.tied = config.flag("tie_word_embeddings", own.tied);
    architecture.longest_context = config.has("n_positions") || own.positions == Positions::learnt
                                       ? config.size_of_any({"n_positions", "max_position_embeddings", "n_ctx"})
                                       : config.size_or("max_seq_len", config.size_or("seq_length", 0.0));
    if (own.positions == Positions::learnt) architecture.positions = architecture.longest_context;
    architecture.norm = own.norm_bias ? model::NormKind::layer_norm : model::NormKind::layer_norm_without_bias;
    architecture.embedding_norm = own.embedding_norm;
    architecture.head_bias = own.head_bias;

    model::GqaShape shape;
    shape.heads = config.size_of_any({"n_head", "num_attention_heads", "num_heads", "n_heads"});
    shape.kv_heads = config.flag("multi_query", own.one_key) ? 1.0 : shape.heads;
    if (config.has("attn_config")) {
        Fields attention = config.child("attn_config");
        shape.kv_heads = attention.size_or("kv_n_heads", shape.kv_heads);
        if (attention.flag("qk_ln", false)) shape.qk_norm = model::QkNorm::full_width;
    }
    shape.head_dim = architecture.hidden / shape.heads;
    check_heads(config, shape);
    const bool bias = type == "mpt" && !config.flag("no_bias", true);
    shape.qkv_bias = own.qkv_bias || bias;
    shape.out_bias = own.out_bias || bias;
    shape.rotary = own.positions == Positions::rotary;
    // n_inner may be there and null, which means four times the width whatever intermediate_size says.
    const bool said = config.json().contains("n_inner") || type == "bloom";
    const double width = config.has("n_inner") ? config.size("n_inner")
                         : type == "mpt"       ? config.size_or("expansion_ratio", 4.0) * architecture.hidden
                         : said                ? 4.0 * architecture.hidden
                                               : config.size_or("intermediate_size", 4.0 * architecture.hidden);
    const model::DenseShape ffn{.width = width, .gated = false, .bias = own.ffn_bias || bias};

    const double layers = config.size_of_any({"n_layer", "num_hidden_layers", "num_layers", "n_layers"});
    if (layers > 10'000.0) {
        config.complain("n_layer", "is out of range, expected at most 10000");
        return;
    }
    const auto local = local_layers(config, static_cast<std::size_t>(layers));
    for (std::size_t i = 0; i < local.size() && !config.failed(); ++i) {
        const bool windowed = local[i];
        add_layer(architecture, windowed ? "local" : "full", [&] {
            model::GqaShape attention = shape;
            if (windowed) attention.reach = model::Reach::window(config.size_or("window_size", 256.0));
            const model::BlockPtr mixer = block<model::Gqa>(attention);
            const model::BlockPtr dense = block<model::Dense>(ffn);
            return own.parallel ? parallel_layer(mixer, dense, NormsOfParallel::one) : pre_norm_layer(mixer, dense);
        });
    }
}

std::vector<std::string_view> types() {
    std::vector<std::string_view> all;
    for (const Habits& each : habits) all.push_back(each.type);
    return all;
}

}  // namespace

extern const Family gpt_family;
const Family gpt_family{types(), read};

}  // namespace roofline::io
