#include "roofline/io/gguf_config.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "roofline/io/family.hpp"
#include "roofline/io/gguf_conversion.hpp"

namespace roofline::io {

using nlohmann::json;
using Experts = GgufExperts;
using Kind = GgufKind;

Result<json> GgufConversion::run() {
    auto architecture = gguf_.string_at("general.architecture");
    if (!architecture) {
        return fail(fmt::format("{}: general.architecture is missing: not a model", file_));
    }
    architecture_ = *architecture;
    if (architecture_.empty() || architecture_.size() > 64 || printable(architecture_) != architecture_) {
        return fail(fmt::format("{}: general.architecture is \"{}\", expected a name such as \"llama\"", file_,
                                printable(architecture_)));
    }
    const GgufArchitecture* found = find_gguf_architecture(architecture_);
    if (found != nullptr) {
        mapping_ = *found;
    } else if (find_family(architecture_) != nullptr) {
        // Its reader expects what a config.json says, which is not what a GGUF does.
        return fail(fmt::format("{}: general.architecture is \"{}\", which is known here by its config.json only",
                                file_, architecture_));
    } else {
        mapping_ = GgufArchitecture{.architecture = architecture_, .model_type = architecture_};
        notes_.push_back(fmt::format("{}: the architecture \"{}\" is not known here; read as if it were a Llama", file_,
                                     architecture_));
    }

    write_size();
    if (mapping_.kind == Kind::mamba) {
        write_mamba();
    } else {
        write_attention();
        write_feed_forward();
    }
    write_kind();
    if (problem_) {
        return std::unexpected(std::move(*problem_));
    }
    if (tensors_.empty()) {
        for (const char* key : {"tie_word_embeddings", "attention_bias", "attention_out_bias", "use_qk_norm",
                                "gated_mlp", "mlp_bias", "use_conv_bias"}) {
            config_.erase(key);
        }
        notes_.push_back(
            fmt::format("{}: holds no tensors; biases, norms of q and k and tied embeddings are as is "
                        "usual for {}",
                        file_, mapping_.model_type));
    }
    return std::move(config_);
}

void GgufConversion::write_size() {
    config_["model_type"] = mapping_.model_type;
    if (auto name = gguf_.string_at("general.name")) {
        config_["_name_or_path"] = printable(*name);
    }
    std::uint64_t blocks = number("block_count", most_layers);
    std::uint64_t predicted = maybe("nextn_predict_layers", most_layers).value_or(0);
    if (predicted >= blocks) {
        complain(fmt::format("{} is {}, but there are {} blocks in all", full_key("nextn_predict_layers"), predicted,
                             blocks));
        predicted = 0;
    }
    layers_ = blocks - predicted;  // GGUF counts the blocks of multi-token prediction among the layers
    config_["num_hidden_layers"] = layers_;
    if (predicted > 0) {
        bool qwen = mapping_.kind == Kind::delta;
        config_[qwen ? "mtp_num_hidden_layers" : "num_nextn_predict_layers"] = predicted;
    }
    hidden_ = number("embedding_length");
    config_["hidden_size"] = hidden_;
    set_if("max_position_embeddings", maybe("context_length"));
    set_real("rms_norm_eps", "attention.layer_norm_rms_epsilon");
    set_real("layer_norm_eps", "attention.layer_norm_epsilon");
    set_real("rope_theta", "rope.freq_base");

    // The table itself is the safest witness: vocab_size may be absent, and tokens may be fewer than rows.
    std::optional<std::uint64_t> vocabulary;
    if (auto found = tensors_.find("token_embd.weight"); found != tensors_.end()) {
        const StoredTensor& table = *found->second;
        if (table.shape.size() != 2 || table.shape[1] != hidden_) {
            complain(fmt::format("token_embd.weight has {} elements, expected rows of {} ({})", table.elements, hidden_,
                                 full_key("embedding_length")));
        } else {
            vocabulary = table.shape[0];
        }
    }
    if (!vocabulary) {
        vocabulary = maybe("vocab_size");
    }
    if (!vocabulary) {
        vocabulary = gguf_.count_at("tokenizer.ggml.tokens");
    }
    if (!vocabulary || *vocabulary == 0) {
        complain(fmt::format("the vocabulary is not known: neither token_embd.weight nor {} is there",
                             full_key("vocab_size")));
    } else {
        config_["vocab_size"] = *vocabulary;
    }
    config_["tie_word_embeddings"] = !has("output.weight");
    if (has("per_layer_token_embd.weight")) {
        set_if("hidden_size_per_layer_input", maybe("embedding_length_per_layer_input"));
    }
}

void GgufConversion::write_attention() {
    heads_ = common(each_layer("attention.head_count"), "attention.head_count");
    if (heads_ == 0) {
        complain(fmt::format("{} is missing or 0, expected a number of at least 1", full_key("attention.head_count")));
        heads_ = 1;
    }
    kv_heads_each_ = each_layer("attention.head_count_kv");
    std::uint64_t kv_heads = mapping_.kind == Kind::gemma4
                                 ? heads_  // differs by the kind of layer there, and is set later
                                 : common(kv_heads_each_, "attention.head_count_kv");
    config_["num_attention_heads"] = heads_;
    config_["num_key_value_heads"] = kv_heads == 0 ? heads_ : kv_heads;

    if (mapping_.kind != Kind::latent) {
        auto key_length = maybe("attention.key_length");
        auto value_length = maybe("attention.value_length");
        if (!key_length && hidden_ % heads_ != 0) {
            complain(fmt::format("{} is {}, which {} heads cannot share evenly, and {} is missing",
                                 full_key("embedding_length"), hidden_, heads_, full_key("attention.key_length")));
        }
        std::uint64_t head = key_length.value_or(hidden_ / heads_);
        config_["head_dim"] = head;
        if (value_length && *value_length != head) {
            config_["v_head_dim"] = *value_length;
        }
        if (auto rotary = maybe("rope.dimension_count"); rotary && *rotary < head) {
            config_["partial_rotary_factor"] = static_cast<double>(*rotary) / static_cast<double>(head);
        }
    }
    write_windows();

    bool qkv_bias = any_layer("attn_q.bias") || any_layer("attn_qkv.bias");
    config_["attention_bias"] = qkv_bias;
    config_["attention_out_bias"] = any_layer("attn_output.bias");
    bool qk_norm = any_layer("attn_q_norm.weight");
    config_["use_qk_norm"] = qk_norm;
    if (qk_norm) {
        // One gain for each place in a head, or for the whole width of all heads.
        std::uint64_t gains =
            size_of("attn_q_norm.weight", 0).value_or(0) * size_of("attn_q_norm.weight", 1).value_or(1);
        config_["qk_norm_type"] = config_.value("head_dim", std::uint64_t{0}) == gains ? "per_head" : "per_layer";
    }
    if (mapping_.model_type == "stablelm") {
        config_["use_qkv_bias"] = qkv_bias;
        config_["qk_layernorm"] = qk_norm;
    }
    if (mapping_.model_type == "starcoder2") {
        config_["use_bias"] = qkv_bias;
    }
}

// sliding_window and layer_types, where the model has them.
void GgufConversion::write_windows() {
    std::uint64_t window = maybe("attention.sliding_window").value_or(mapping_.window);
    std::string pattern_key = full_key("attention.sliding_window_pattern");
    auto listed = gguf_.numbers_at(pattern_key);
    std::uint64_t period = gguf_.unsigned_at(pattern_key).value_or(mapping_.period);
    if (window == 0) {
        return;
    }
    if (mapping_.architecture == "llama" && !listed && period == 0) {
        config_["model_type"] = "mistral";
        config_["sliding_window"] = window;
        return;
    }
    if (period == 0 && !listed) {
        notes_.push_back(fmt::format("{}: {} is {}, but {} models attend to everything; it is not applied", file_,
                                     full_key("attention.sliding_window"), window, mapping_.model_type));
        return;
    }
    if (listed && listed->size() < layers_) {
        complain(fmt::format("{} has {} elements, expected one for each of {} layers", pattern_key, listed->size(),
                             layers_));
        return;
    }
    if (architecture_ == "olmo2") {
        config_["model_type"] = "olmo3";
    }
    bool chunked = mapping_.kind == Kind::llama4;
    config_[chunked ? "attention_chunk_size" : "sliding_window"] = window;
    if (period == 1 && !listed) {
        return;
    }
    json types = json::array();
    for (std::uint64_t i = 0; i < layers_; ++i) {
        bool local = listed ? (*listed)[static_cast<std::size_t>(i)] != 0.0 : i % period != period - 1;
        types.push_back(!local ? "full_attention" : chunked ? "chunked_attention" : "sliding_attention");
    }
    config_["layer_types"] = std::move(types);
}

void GgufConversion::write_feed_forward() {
    widths_ = each_layer("feed_forward_length");
    std::uint64_t width = 0;
    if (mapping_.kind != Kind::gemma4) {
        width = common(widths_, "feed_forward_length");
    } else if (!widths_.empty()) {
        width = *std::min_element(widths_.begin(), widths_.end());
    }
    experts_ = maybe("expert_count").value_or(0);
    Experts naming = mapping_.experts;
    if (experts_ > 0 && naming == Experts::none) {
        naming = Experts::local;
        if (mapping_.architecture == "llama") {
            config_["model_type"] = "mixtral";
        } else {
            notes_.push_back(
                fmt::format("{}: {} experts in a model type ({}) that is not known to have any; read "
                            "as Mixtral's",
                            file_, experts_, mapping_.model_type));
        }
    }
    bool sparse = experts_ > 0;
    std::uint64_t expert_width =
        maybe("expert_feed_forward_length").value_or(size_of("ffn_up_exps.weight", 1).value_or(width));
    if (width == 0 && !sparse) {
        width = size_of("ffn_up.weight", 1).value_or(0);
    }
    if (width == 0 && expert_width == 0) {
        complain(fmt::format("{} is missing or 0, expected a number of at least 1", full_key("feed_forward_length")));
    }

    bool fused = architecture_ == "phi3" || architecture_ == "glm4" || architecture_ == "chatglm";
    config_["gated_mlp"] = fused || any_layer("ffn_gate.weight") || any_layer("ffn_gate_exps.weight") ||
                           any_layer("ffn_gate_up_exps.weight") || any_layer("ffn_gate.0.weight");
    config_["mlp_bias"] = any_layer("ffn_up.bias") || any_layer("ffn_up_exps.bias");
    if (width > 0) {
        config_["intermediate_size"] = width;
    }
    if (!sparse) {
        return;
    }

    config_["num_experts_per_tok"] = number("expert_used_count");
    std::uint64_t dense_layers = maybe("leading_dense_block_count").value_or(0);
    auto shared_width = maybe("expert_shared_feed_forward_length");
    if (!shared_width || *shared_width == 0) {
        shared_width = size_of("ffn_up_shexp.weight", 1);
    }
    std::uint64_t shared = maybe("expert_shared_count").value_or(shared_width.value_or(0) > 0 ? 1 : 0);
    switch (naming) {
        case Experts::none:
            break;
        case Experts::local:
            config_["num_local_experts"] = experts_;
            config_["intermediate_size"] = expert_width;
            if (mapping_.architecture.starts_with("granite")) {
                set_if("shared_intermediate_size", shared_width);
            }
            break;
        case Experts::counted: {
            config_["num_experts"] = experts_;
            config_["moe_intermediate_size"] = expert_width;
            set_if("shared_expert_intermediate_size", shared_width);
            config_["decoder_sparse_step"] = 1;
            json dense = json::array();
            for (std::uint64_t i = 0; i < layers_; ++i) {
                // Jamba and Gemma 4 say it in other words; elsewhere a dense FFN marks the layer.
                if (mapping_.kind == Kind::plain && has(fmt::format("blk.{}.ffn_up.weight", i))) {
                    dense.push_back(i);
                }
            }
            config_["mlp_only_layers"] = std::move(dense);
            break;
        }
        case Experts::routed:
            config_["n_routed_experts"] = experts_;
            config_["moe_intermediate_size"] = expert_width;
            config_["n_shared_experts"] = shared;
            if (mapping_.kind != Kind::nemotron) {
                config_["first_k_dense_replace"] = dense_layers;
                config_["moe_layer_freq"] = 1;
            }
            set_if("n_group", maybe("expert_group_count"));
            set_if("topk_group", maybe("expert_group_used_count"));
            break;
    }
}

Result<json> config_from_gguf(const Gguf& gguf, std::string_view file, std::vector<std::string>& notes) {
    return GgufConversion(gguf, file, notes).run();
}

}  // namespace roofline::io
