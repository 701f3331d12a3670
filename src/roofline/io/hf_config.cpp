#include "roofline/io/hf_config.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "roofline/io/class_defaults.hpp"
#include "roofline/io/family.hpp"
#include "roofline/io/quantization.hpp"
#include "roofline/io/unknown_type.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::io {
namespace {

/// Vision-language models nest the language model under one of these.
const char* language_key(const Json& config) {
    for (const char* key : {"text_config", "language_config", "llm_config"}) {
        const auto found = config.find(key);
        if (found != config.end() && found->is_object()) return key;
    }
    return nullptr;
}

/// Said once for the whole model, meant for the language part too.
Json with_outer_defaults(Json language, const Json& whole) {
    // From version 5 on, transformers ties by what the whole says, whatever the part does.
    const auto version = whole.find("transformers_version");
    const bool newer =
        version != whole.end() && version->is_string() && version->get_ref<const std::string&>().starts_with("5");
    if (newer && whole.contains("tie_word_embeddings")) language["tie_word_embeddings"] = whole["tie_word_embeddings"];
    for (const char* key : {"tie_word_embeddings", "model_type", "vocab_size"}) {
        if (!language.contains(key) && whole.contains(key)) language[key] = whole[key];
    }
    return language;
}

const Family* guess_family(const Fields& config) {
    for (const char* experts : {"num_experts", "num_local_experts", "n_routed_experts"}) {
        if (config.has(experts)) return find_family(config.has("kv_lora_rank") ? "deepseek_v3" : "mixtral");
    }
    return find_family(config.has("kv_lora_rank") ? "deepseek_v3" : "llama");
}

/// The formats of the matrices the model has, most common first as they come.
std::string summarise(const model::TypePlan& plan, const model::Lowered& lowered) {
    std::array<bool, model::role_count> present{};
    for (const model::Operator& op : lowered.operators) {
        if (op.parameters > 0.0) present[static_cast<std::size_t>(op.role)] = true;
    }
    std::vector<std::string_view> seen;
    for (const model::RoleTypes& layer : plan.layers) {
        for (std::size_t role = 0; role < model::role_count; ++role) {
            if (!present[role] || !model::usually_quantised(static_cast<model::Role>(role))) continue;
            const std::string_view format = layer[role].format.name;
            if (std::find(seen.begin(), seen.end(), format) == seen.end()) seen.push_back(format);
        }
    }
    return fmt::format("{}", fmt::join(seen, " + "));
}

void add_notes(const Json& whole, const char* key, std::vector<std::string>& notes) {
    bool said = key == nullptr;
    for (const char* tower : {"vision_config", "audio_config"}) {
        const auto found = whole.find(tower);
        if (found != whole.end() && found->is_object()) {
            said = true;
            notes.push_back(fmt::format("language part only: what {} describes is not counted", tower));
        }
    }
    if (!said) notes.push_back(fmt::format("language part only: what stands beside {} is not counted", key));
}

/// Modules that predict further tokens. What kind of layers they have, a family may have said already.
void read_predictors(Fields& language, model::Architecture& architecture) {
    if (language.has("num_mtp_modules")) return;  // MiniMax: named, but in none of the published checkpoints
    for (const char* modules : {"num_nextn_predict_layers", "mtp_num_hidden_layers"}) {
        if (language.has(modules)) architecture.predictors = language.count_or(modules, 0.0);
    }
    if (architecture.predictors > 64.0) language.complain("", "describes more than 64 layers that predict tokens");
    if (architecture.predictors > 0.0)
        architecture.notes.emplace_back(
            "multi-token prediction layers count where they guess (--speculate K,ALPHA --draft-model mtp)");
}

}  // namespace

Result<HfModel> read_hf_config(const Json& config, std::string_view file) {
    if (!config.is_object()) return fail(fmt::format("{}: the file is {}, expected an object", file, describe(config)));
    const char* key = language_key(config);
    Json language = key == nullptr ? config : with_outer_defaults(config[key], config);
    const auto filled = key == nullptr ? std::vector<std::string>{} : fill_class_defaults(language);

    std::optional<Problem> problem;
    Fields fields(language, std::string(file), key == nullptr ? "" : key, problem);
    HfModel model;
    model::Architecture& architecture = model.architecture;
    const std::string type = fields.text_or("model_type", "");
    architecture.family = type;
    const Family* family = find_family(type);
    if (family == nullptr && key != nullptr && config.contains("model_type") && config["model_type"].is_string()) {
        family = find_family(config["model_type"].get<std::string>());
    }
    if (family == nullptr) {
        refuse_unread_fields(fields, type);
        family = guess_family(fields);
        architecture.notes.push_back(
            type.empty() ? "the config names no model_type: read as Llama-like"
                         : fmt::format("model_type \"{}\" is not known here: read by its Llama-like fields", type));
    }
    family->read(fields, architecture);
    if (!problem && architecture.layers.empty()) fields.complain("num_hidden_layers", "gives no layers");
    if (problem) return std::unexpected(*problem);

    if (!filled.empty()) {
        architecture.notes.push_back(fmt::format("{} leaves out {}: read as the defaults of its class \"{}\"", key,
                                                 fmt::join(filled, ", "), type));
    }
    add_notes(config, key, architecture.notes);
    read_predictors(fields, architecture);
    if (problem) return std::unexpected(*problem);
    auto types = read_types(fields, config, architecture);
    if (problem) return std::unexpected(*problem);
    if (!types) return std::unexpected(types.error());
    model.types = std::move(types->plan);
    // Lowered once here: a config with more kinds of layers than a step has features for is refused, and the summary
    // can leave out roles that the model does not have.
    const model::Lowered lowered = model::lower(architecture, model.types);
    if (lowered.features.size() > model::max_features / 2) {
        fields.complain("",
                        fmt::format("describes {} different kinds of attention reach and experts, expected at most {}",
                                    lowered.features.size(), model::max_features / 2));
    }
    if (problem) return std::unexpected(*problem);
    model.types_summary = summarise(model.types, lowered);
    architecture.dtype = model.types.stream;
    return model;
}

}  // namespace roofline::io
