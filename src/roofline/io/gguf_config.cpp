#include "roofline/io/gguf_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "roofline/io/gguf_architectures.hpp"

namespace roofline::io {

namespace {

using nlohmann::json;
using Experts = GgufExperts;
using Kind = GgufKind;

// Beyond these a number is a mistake or an attack; layer lists are built from the first.
constexpr std::uint64_t most_layers = 4096;
constexpr std::uint64_t largest_size = std::uint64_t{1} << 31;

// One conversion. Reads through `number`, `list` and `has`, which remember the first key that is missing, so that the
// steps below stay free of error handling; nothing is returned once `problem_` is set.
class Conversion {
  public:
    Conversion(const Gguf& gguf, std::string_view file, std::vector<std::string>& notes)
        : gguf_(gguf), file_(file), notes_(notes) {
        for (const StoredTensor& tensor : gguf.tensors) {
            tensors_.emplace(tensor.name, &tensor);
        }
    }

    Result<json> run() {
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
        } else {
            mapping_ = GgufArchitecture{.architecture = architecture_, .model_type = architecture_};
            notes_.push_back(fmt::format("{}: the architecture \"{}\" is not known here; read as if it were a Llama",
                                         file_, architecture_));
        }

        write_size();
        if (mapping_.kind == Kind::mamba) {
            write_mamba();
        } else {
            write_attention();
            write_feed_forward();
        }
        switch (mapping_.kind) {
            case Kind::latent:
                write_latent();
                break;
            case Kind::delta:
                write_delta();
                break;
            case Kind::nemotron:
                write_nemotron();
                break;
            case Kind::jamba:
                write_jamba();
                break;
            case Kind::granite_hybrid:
                write_granite_hybrid();
                break;
            case Kind::llama4:
                write_llama4();
                break;
            case Kind::gemma4:
                write_gemma4();
                break;
            case Kind::falcon:
                write_falcon();
                break;
            case Kind::gpt2:
                write_gpt2();
                break;
            case Kind::mamba:
            case Kind::plain:
                break;
        }
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

  private:
    std::string full_key(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }

    void complain(std::string text) {
        if (!problem_) {
            problem_ = Problem{fmt::format("{}: {}", file_, text)};
        }
    }

    std::optional<std::uint64_t> maybe(std::string_view key, std::uint64_t most = largest_size) {
        std::string full = full_key(key);
        auto value = gguf_.unsigned_at(full);
        if (value && *value > most) {
            complain(fmt::format("{} is {}, expected at most {}", full, *value, most));
            return std::nullopt;
        }
        return value;
    }

    std::uint64_t number(std::string_view key, std::uint64_t most = largest_size) {
        auto value = maybe(key, most);
        if (!value || *value == 0) {
            complain(fmt::format("{} is {}, expected a number of at least 1", full_key(key), value ? "0" : "missing"));
            return 1;
        }
        return *value;
    }

    // A number for each layer: the same for all, or from an array. Empty where the key is absent.
    std::vector<std::uint64_t> each_layer(std::string_view key) {
        std::string full = full_key(key);
        if (auto values = gguf_.numbers_at(full)) {
            if (values->size() < layers_) {
                complain(fmt::format("{} has {} elements, expected one for each of {} layers", full, values->size(),
                                     layers_));
                return {};
            }
            std::vector<std::uint64_t> result;
            for (double value : values->first(static_cast<std::size_t>(layers_))) {
                if (!(value >= 0 && value <= static_cast<double>(largest_size))) {
                    complain(fmt::format("{} holds {}, expected numbers from 0 to {}", full, value, largest_size));
                    return {};
                }
                result.push_back(static_cast<std::uint64_t>(value));
            }
            return result;
        }
        if (auto value = maybe(key)) {
            return std::vector<std::uint64_t>(static_cast<std::size_t>(layers_), *value);
        }
        return {};
    }

    // One number for the layers that have any; zeros mark layers without. Where they differ the mean keeps the sum.
    std::uint64_t common(const std::vector<std::uint64_t>& values, std::string_view key) {
        std::uint64_t sum = 0;
        std::uint64_t count = 0;
        std::uint64_t largest = 0;
        std::uint64_t smallest = largest_size;
        for (std::uint64_t value : values) {
            if (value != 0) {
                sum += value;
                ++count;
                largest = std::max(largest, value);
                smallest = std::min(smallest, value);
            }
        }
        if (count == 0) {
            return 0;
        }
        if (largest != smallest) {
            notes_.push_back(fmt::format("{}: {} differs between layers ({} to {}); the mean stands for all", file_,
                                         full_key(key), smallest, largest));
        }
        return (sum + count / 2) / count;
    }

    bool has(const std::string& name) const { return tensors_.contains(name); }

    // Whether any layer has such a tensor ("attn_q.bias").
    bool any_layer(std::string_view what) const {
        for (std::uint64_t i = 0; i < layers_; ++i) {
            if (has(fmt::format("blk.{}.{}", i, what))) {
                return true;
            }
        }
        return false;
    }

    // The size of a dimension of the first layer's tensor of that name, counted from the fastest-running one.
    std::optional<std::uint64_t> size_of(std::string_view what, std::size_t dimension) const {
        for (std::uint64_t i = 0; i < layers_; ++i) {
            auto found = tensors_.find(fmt::format("blk.{}.{}", i, what));
            if (found != tensors_.end()) {
                const auto& shape = found->second->shape;
                return dimension < shape.size() ? std::optional(shape[shape.size() - 1 - dimension]) : std::nullopt;
            }
        }
        return std::nullopt;
    }

    void set_if(const char* to, std::optional<std::uint64_t> value) {
        if (value) {
            config_[to] = *value;
        }
    }

    void set_real(const char* to, std::string_view key) {
        if (auto value = gguf_.number_at(full_key(key)); value && std::isfinite(*value)) {
            config_[to] = *value;
        }
    }

    void write_size() {
        config_["model_type"] = mapping_.model_type;
        if (auto name = gguf_.string_at("general.name")) {
            config_["_name_or_path"] = printable(*name);
        }
        std::uint64_t blocks = number("block_count", most_layers);
        std::uint64_t predicted = maybe("nextn_predict_layers", most_layers).value_or(0);
        if (predicted >= blocks) {
            complain(fmt::format("{} is {}, but there are {} blocks in all", full_key("nextn_predict_layers"),
                                 predicted, blocks));
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
                complain(fmt::format("token_embd.weight has {} elements, expected rows of {} ({})", table.elements,
                                     hidden_, full_key("embedding_length")));
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
    }

    void write_attention() {
        heads_ = common(each_layer("attention.head_count"), "attention.head_count");
        if (heads_ == 0) {
            complain(
                fmt::format("{} is missing or 0, expected a number of at least 1", full_key("attention.head_count")));
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
    void write_windows() {
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

    void write_feed_forward() {
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
            complain(
                fmt::format("{} is missing or 0, expected a number of at least 1", full_key("feed_forward_length")));
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

    // Multi-head latent attention. Files from before 2025-04 state the full heads as key_length and value_length; later
    // ones state the latent there (one shared head) and the full heads as *_mla.
    void write_latent() {
        std::uint64_t rank = number("attention.kv_lora_rank");
        std::uint64_t rotary = number("rope.dimension_count");
        auto key = maybe("attention.key_length_mla");
        auto value = maybe("attention.value_length_mla");
        std::uint64_t key_length = key ? *key : number("attention.key_length");
        std::uint64_t value_length = value ? *value : number("attention.value_length");
        if (key_length <= rotary) {
            complain(fmt::format("the key length of a head is {}, expected more than the {} of {}", key_length, rotary,
                                 full_key("rope.dimension_count")));
            return;
        }
        config_["num_key_value_heads"] = heads_;
        config_["kv_lora_rank"] = rank;
        config_["qk_rope_head_dim"] = rotary;
        config_["qk_nope_head_dim"] = key_length - rotary;
        config_["v_head_dim"] = value_length;
        auto q_rank = maybe("attention.q_lora_rank");
        if (q_rank && *q_rank > 0) {
            config_["q_lora_rank"] = *q_rank;
        } else {
            config_["q_lora_rank"] = nullptr;
        }
        set_if("index_n_heads", maybe("attention.indexer.head_count"));
        set_if("index_head_dim", maybe("attention.indexer.key_length"));
        set_if("index_topk", maybe("attention.indexer.top_k"));
        if (architecture_ == "deepseek2" && !any_layer("exp_probs_b.bias") && !any_layer("exp_probs_b")) {
            config_["model_type"] = "deepseek_v2";  // the correction bias came with V3
        }
    }

    // Gated delta nets of Qwen, one full attention layer in every `full_attention_interval`.
    void write_delta() {
        std::uint64_t value_heads = number("ssm.time_step_rank");
        std::uint64_t inner = number("ssm.inner_size");
        if (inner % value_heads != 0) {
            complain(fmt::format("{} is {}, which {} heads cannot share evenly", full_key("ssm.inner_size"), inner,
                                 value_heads));
        }
        config_["linear_conv_kernel_dim"] = number("ssm.conv_kernel");
        config_["linear_key_head_dim"] = number("ssm.state_size");
        config_["linear_num_key_heads"] = number("ssm.group_count");
        config_["linear_num_value_heads"] = value_heads;
        config_["linear_value_head_dim"] = inner / value_heads;
        config_["attn_output_gate"] = true;
        std::uint64_t interval = maybe("full_attention_interval").value_or(4);
        auto recurrent = gguf_.numbers_at(full_key("attention.recurrent_layers"));
        if (interval == 0 || (recurrent && recurrent->size() < layers_)) {
            complain(
                fmt::format("{} does not say what each of {} layers is", full_key("full_attention_interval"), layers_));
            return;
        }
        config_["full_attention_interval"] = interval;
        json types = json::array();
        for (std::uint64_t i = 0; i < layers_; ++i) {
            bool linear = recurrent ? (*recurrent)[static_cast<std::size_t>(i)] != 0.0 : (i + 1) % interval != 0;
            types.push_back(linear ? "linear_attention" : "full_attention");
        }
        config_["layer_types"] = std::move(types);
    }

    // A layer is one thing only: attention ("*"), feed-forward ("-"), experts ("E") or Mamba ("M").
    void write_nemotron() {
        std::string pattern;
        for (std::size_t i = 0; i < layers_; ++i) {
            bool attention = i < kv_heads_each_.size() && kv_heads_each_[i] > 0;
            bool forward = i < widths_.size() && widths_[i] > 0;
            bool sparse = has(fmt::format("blk.{}.ffn_gate_inp.weight", i));
            pattern += attention ? '*' : sparse ? 'E' : forward ? (experts_ > 0 ? 'E' : '-') : 'M';
        }
        config_["hybrid_override_pattern"] = pattern;
        std::uint64_t heads = number("ssm.time_step_rank");
        config_["mamba_num_heads"] = heads;
        config_["mamba_head_dim"] = number("ssm.inner_size") / heads;
        config_["n_groups"] = number("ssm.group_count");
        config_["ssm_state_size"] = number("ssm.state_size");
        config_["conv_kernel"] = number("ssm.conv_kernel");
        config_["use_conv_bias"] = any_layer("ssm_conv1d.bias");
        config_["mlp_hidden_act"] = "relu2";
        if (experts_ > 0) {
            set_if("moe_shared_expert_intermediate_size", maybe("expert_shared_feed_forward_length"));
            set_if("moe_latent_size", maybe("moe_latent_size"));
            if (config_.contains("num_nextn_predict_layers")) {
                config_["mtp_hybrid_override_pattern"] = "*E";
            }
        }
    }

    void write_mamba() {
        std::uint64_t inner = number("ssm.inner_size");
        config_["conv_kernel"] = number("ssm.conv_kernel");
        config_["state_size"] = number("ssm.state_size");
        config_["intermediate_size"] = inner;
        config_["expand"] = static_cast<double>(inner) / static_cast<double>(hidden_);
        config_["use_conv_bias"] = any_layer("ssm_conv1d.bias");
        config_["use_bias"] = any_layer("ssm_in.bias");
        std::uint64_t rank = number("ssm.time_step_rank");
        if (architecture_ == "mamba2") {
            config_["num_heads"] = rank;
            config_["head_dim"] = inner / rank;
            config_["n_groups"] = number("ssm.group_count");
        } else {
            config_["time_step_rank"] = rank;
        }
    }

    // Hugging Face states Jamba's layers by period and offset.
    void write_periodic(const char* period_key, const char* offset_key, const std::vector<bool>& marked) {
        auto first = std::find(marked.begin(), marked.end(), true);
        if (first == marked.end()) {
            return;
        }
        auto second = std::find(first + 1, marked.end(), true);
        auto offset = static_cast<std::size_t>(first - marked.begin());
        std::size_t period = second == marked.end() ? marked.size() : static_cast<std::size_t>(second - first);
        for (std::size_t i = 0; i < marked.size(); ++i) {
            if (marked[i] != (i % period == offset % period)) {
                notes_.push_back(fmt::format("{}: layers do not follow {} {}; layer {} is read wrongly", file_,
                                             period_key, period, i));
                break;
            }
        }
        config_[period_key] = period;
        config_[offset_key] = offset % period;
    }

    void write_jamba() {
        std::vector<bool> attention;
        std::vector<bool> sparse;
        for (std::size_t i = 0; i < layers_; ++i) {
            attention.push_back(i < kv_heads_each_.size() && kv_heads_each_[i] > 0);
            sparse.push_back(has(fmt::format("blk.{}.ffn_gate_inp.weight", i)));
        }
        write_periodic("attn_layer_period", "attn_layer_offset", attention);
        write_periodic("expert_layer_period", "expert_layer_offset", sparse);
        config_["mamba_d_conv"] = number("ssm.conv_kernel");
        config_["mamba_d_state"] = number("ssm.state_size");
        config_["mamba_dt_rank"] = number("ssm.time_step_rank");
        config_["mamba_expand"] = static_cast<double>(number("ssm.inner_size")) / static_cast<double>(hidden_);
    }

    void write_granite_hybrid() {
        json types = json::array();
        for (std::size_t i = 0; i < layers_; ++i) {
            types.push_back(i < kv_heads_each_.size() && kv_heads_each_[i] > 0 ? "attention" : "mamba");
        }
        config_["layer_types"] = std::move(types);
        std::uint64_t heads = number("ssm.time_step_rank");
        std::uint64_t inner = number("ssm.inner_size");
        config_["mamba_n_heads"] = heads;
        config_["mamba_d_head"] = inner / heads;
        config_["mamba_d_state"] = number("ssm.state_size");
        config_["mamba_n_groups"] = number("ssm.group_count");
        config_["mamba_d_conv"] = number("ssm.conv_kernel");
        config_["mamba_expand"] = static_cast<double>(inner) / static_cast<double>(hidden_);
        if (experts_ == 0) {
            // The dense members of the family have the shared expert alone.
            config_["num_local_experts"] = 0;
            if (!widths_.empty()) {
                config_["shared_intermediate_size"] = config_["intermediate_size"];
            }
        }
    }

    void write_llama4() {
        // intermediate_size is an expert's there (and the shared one's), intermediate_size_mlp that of dense layers.
        set_if("intermediate_size_mlp", maybe("feed_forward_length"));
        config_["interleave_moe_layer_step"] = maybe("interleave_moe_layer_step").value_or(1);
    }

    void write_gemma4() {
        auto full = maybe("attention.key_length");
        auto local = maybe("attention.key_length_swa");
        if (local) {
            config_["head_dim"] = *local;
            set_if("global_head_dim", full);
        }
        std::optional<std::uint64_t> local_heads;
        std::optional<std::uint64_t> full_heads;
        bool shares_values = false;
        auto types = config_.find("layer_types");
        for (std::size_t i = 0; types != config_.end() && i < types->size() && i < kv_heads_each_.size(); ++i) {
            bool is_full = (*types)[i] == "full_attention";
            (is_full ? full_heads : local_heads) = kv_heads_each_[i];
            shares_values = shares_values || (is_full && has(fmt::format("blk.{}.attn_k.weight", i)) &&
                                              !has(fmt::format("blk.{}.attn_v.weight", i)));
        }
        config_["num_key_value_heads"] = local_heads.value_or(full_heads.value_or(heads_));
        set_if("num_global_key_value_heads", full_heads);
        config_["attention_k_eq_v"] = shares_values;
        set_if("hidden_size_per_layer_input", maybe("embedding_length_per_layer_input"));
        set_if("num_kv_shared_layers", maybe("attention.shared_kv_layers"));
        config_["use_double_wide_mlp"] =
            !widths_.empty() && *std::max_element(widths_.begin(), widths_.end()) > widths_.front();
        config_["enable_moe_block"] = experts_ > 0;
        if (experts_ > 0) {
            config_["top_k_experts"] = config_["num_experts_per_tok"];
            config_.erase("mlp_only_layers");  // each layer has a dense FFN beside its experts
            config_.erase("decoder_sparse_step");
        }
    }

    void write_falcon() {
        std::uint64_t kv_heads = common(kv_heads_each_, "attention.head_count_kv");
        config_["num_kv_heads"] = kv_heads == 0 ? heads_ : kv_heads;
        config_["multi_query"] = kv_heads == 1;
        config_["new_decoder_architecture"] = any_layer("attn_norm_2.weight");
        config_["parallel_attn"] = true;
        config_["bias"] = any_layer("attn_qkv.bias");
        config_["alibi"] = false;
        if (config_.contains("intermediate_size")) {
            config_["ffn_hidden_size"] = config_["intermediate_size"];
        }
    }

    void write_gpt2() {
        config_["n_layer"] = layers_;
        config_["n_embd"] = hidden_;
        config_["n_head"] = heads_;
        if (config_.contains("intermediate_size")) {
            config_["n_inner"] = config_["intermediate_size"];
        }
        std::optional<std::uint64_t> positions = maybe("context_length");
        if (auto found = tensors_.find("position_embd.weight");
            found != tensors_.end() && found->second->shape.size() == 2) {
            positions = found->second->shape[0];
        }
        set_if("n_positions", positions);
    }

    const Gguf& gguf_;
    std::string_view file_;
    std::vector<std::string>& notes_;
    std::unordered_map<std::string, const StoredTensor*> tensors_;

    std::string_view architecture_;
    GgufArchitecture mapping_;
    std::uint64_t layers_ = 0;
    std::uint64_t hidden_ = 1;
    std::uint64_t heads_ = 1;
    std::uint64_t experts_ = 0;
    std::vector<std::uint64_t> kv_heads_each_;
    std::vector<std::uint64_t> widths_;

    json config_ = json::object();
    std::optional<Problem> problem_;
};

}  // namespace

Result<nlohmann::json> config_from_gguf(const Gguf& gguf, std::string_view file, std::vector<std::string>& notes) {
    return Conversion(gguf, file, notes).run();
}

}  // namespace roofline::io
