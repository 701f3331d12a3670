#include "roofline/io/family.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace roofline::io {

#define ROOFLINE_ENTRY(name) extern const Family name##_family;
#include "roofline/io/families.inc"
#undef ROOFLINE_ENTRY

namespace {

constexpr double most_layers = 10'000.0;

std::span<const Family* const> families() {
#define ROOFLINE_ENTRY(name) &name##_family,
    static constexpr std::array all = {
#include "roofline/io/families.inc"
    };
#undef ROOFLINE_ENTRY
    return all;
}

}  // namespace

const Family* find_family(std::string_view model_type) {
    for (const Family* family : families()) {
        if (std::find(family->model_types.begin(), family->model_types.end(), model_type) != family->model_types.end())
            return family;
    }
    return nullptr;
}

std::vector<std::string_view> known_model_types() {
    std::vector<std::string_view> types;
    for (const Family* family : families())
        types.insert(types.end(), family->model_types.begin(), family->model_types.end());
    std::sort(types.begin(), types.end());
    return types;
}

void read_trunk(Fields& config, model::Architecture& architecture, bool tied_by_default) {
    architecture.hidden = config.size("hidden_size");
    architecture.vocabulary = config.size("vocab_size");
    architecture.tied = config.flag("tie_word_embeddings", tied_by_default);
    architecture.longest_context = config.size_or("max_position_embeddings", 0.0);
}

void check_heads(Fields& config, const model::GqaShape& shape) {
    if (std::fmod(shape.heads, shape.kv_heads) != 0.0) {
        config.complain("num_key_value_heads",
                        fmt::format("is {}, but {} heads cannot be shared evenly by {} key-value heads", shape.kv_heads,
                                    shape.heads, shape.kv_heads));
    }
    if (shape.head_dim != std::floor(shape.head_dim)) {
        config.complain("num_attention_heads",
                        fmt::format("is {}, which leaves heads of {} numbers, expected a whole number", shape.heads,
                                    shape.head_dim));
    }
}

model::GqaShape read_gqa(Fields& config) {
    model::GqaShape shape;
    shape.heads = config.size("num_attention_heads");
    shape.kv_heads = config.size_or("num_key_value_heads", shape.heads);
    if (config.has("head_dim")) {
        shape.head_dim = config.size("head_dim");
    } else {
        const double hidden = config.size("hidden_size");
        shape.head_dim = hidden / shape.heads;
        if (std::fmod(hidden, shape.heads) != 0.0) {
            config.complain(
                "num_attention_heads",
                fmt::format("is {}, which does not divide hidden_size {}; head_dim is missing", shape.heads, hidden));
            shape.head_dim = 1.0;
        }
    }
    check_heads(config, shape);
    return shape;
}

std::size_t read_layer_count(Fields& config, std::string_view key) {
    const double layers = config.size(key);
    if (layers > most_layers) {
        config.complain(key, fmt::format("is {}, expected at most {}", layers, most_layers));
        return 1;
    }
    return static_cast<std::size_t>(layers);
}

std::vector<std::string> read_layer_types(Fields& config, std::size_t layers) {
    std::vector<std::string> types = config.texts("layer_types");
    if (!types.empty() && types.size() != layers) {
        config.complain("layer_types",
                        fmt::format("has {} entries, expected one for each of {} layers", types.size(), layers));
        types.assign(layers, "full_attention");
    }
    return types;
}

std::optional<double> read_window(Fields& config, bool in_use) {
    if (!config.has("sliding_window") || !config.flag("use_sliding_window", in_use)) return std::nullopt;
    return config.size("sliding_window");
}

std::vector<bool> read_sparse_layers(Fields& config, std::size_t layers) {
    std::vector<bool> sparse;
    for (const std::string& type : config.texts("mlp_layer_types")) {
        if (type != "dense" && type != "sparse" && type != "moe" && type != "hash_moe")
            config.complain("mlp_layer_types", fmt::format("holds \"{}\", expected dense or sparse", type));
        sparse.push_back(type != "dense");
    }
    if (!sparse.empty() && sparse.size() != layers) {
        config.complain("mlp_layer_types",
                        fmt::format("has {} entries, expected one for each of {} layers", sparse.size(), layers));
        sparse.assign(layers, false);
    }
    return sparse;
}

model::MoeShape read_moe(Fields& config) {
    model::MoeShape moe;
    moe.experts = config.size_of_any({"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"});
    moe.chosen = config.size_of_any(
        {"num_experts_per_tok", "experts_per_token", "top_k_experts", "moe_top_k", "moe_topk", "moe_k"});
    moe.width = config.size_of_any({"moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size"});
    if (moe.chosen > moe.experts) {
        config.complain("num_experts_per_tok",
                        fmt::format("is {}, but there are only {} experts", moe.chosen, moe.experts));
    }
    return moe;
}

void add_layer(model::Architecture& architecture, const std::string& label,
               const std::function<model::LayerKind()>& make) {
    auto& kinds = architecture.kinds;
    auto found =
        std::find_if(kinds.begin(), kinds.end(), [&](const model::LayerKind& kind) { return kind.label == label; });
    if (found == kinds.end()) {
        kinds.push_back(make());
        kinds.back().label = label;
        found = kinds.end() - 1;
    }
    architecture.layers.push_back(static_cast<int>(found - kinds.begin()));
}

model::LayerKind pre_norm_layer(model::BlockPtr mixer, model::BlockPtr ffn) {
    model::LayerKind kind;
    kind.mixer = std::move(mixer);
    kind.ffn = std::move(ffn);
    return kind;
}

model::LayerKind serial_layer(model::BlockPtr mixer, model::BlockPtr ffn, Norms norms) {
    model::LayerKind kind = pre_norm_layer(std::move(mixer), std::move(ffn));
    kind.norm_before_mixer = kind.norm_before_ffn = norms != Norms::after;
    kind.norm_after_mixer = kind.norm_after_ffn = norms != Norms::before;
    return kind;
}

model::LayerKind parallel_layer(model::BlockPtr mixer, model::BlockPtr ffn, NormsOfParallel norms) {
    model::LayerKind kind = pre_norm_layer(std::move(mixer), std::move(ffn));
    kind.parallel = true;
    kind.norm_before_ffn = norms == NormsOfParallel::each;
    return kind;
}

void add_layers_alike(Fields& config, model::Architecture& architecture,
                      const std::function<model::LayerKind()>& make) {
    const std::size_t layers = read_layer_count(config);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) add_layer(architecture, "full", make);
}

}  // namespace roofline::io
