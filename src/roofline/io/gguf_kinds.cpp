// What single architectures say beyond what every GGUF does: one function each.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "roofline/io/gguf_conversion.hpp"

namespace roofline::io {

using nlohmann::json;
using Kind = GgufKind;

void GgufConversion::write_kind() {
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
        case Kind::lfm2:
            write_lfm2();
            break;
        case Kind::falcon_h1:
            write_falcon_h1();
            break;
        case Kind::mamba:
        case Kind::plain:
            break;
    }
}

// Multi-head latent attention. Files from before 2025-04 state the full heads as key_length and value_length; later
// ones state the latent there (one shared head) and the full heads as *_mla.
void GgufConversion::write_latent() {
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
void GgufConversion::write_delta() {
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
void GgufConversion::write_nemotron() {
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

void GgufConversion::write_mamba() {
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
void GgufConversion::write_periodic(const char* period_key, const char* offset_key, const std::vector<bool>& marked) {
    auto first = std::find(marked.begin(), marked.end(), true);
    if (first == marked.end()) {
        return;
    }
    auto second = std::find(first + 1, marked.end(), true);
    auto offset = static_cast<std::size_t>(first - marked.begin());
    std::size_t period = second == marked.end() ? marked.size() : static_cast<std::size_t>(second - first);
    for (std::size_t i = 0; i < marked.size(); ++i) {
        if (marked[i] != (i % period == offset % period)) {
            notes_.push_back(
                fmt::format("{}: layers do not follow {} {}; layer {} is read wrongly", file_, period_key, period, i));
            break;
        }
    }
    config_[period_key] = period;
    config_[offset_key] = offset % period;
}

void GgufConversion::write_jamba() {
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

void GgufConversion::write_granite_hybrid() {
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

void GgufConversion::write_llama4() {
    // intermediate_size is an expert's there (and the shared one's), intermediate_size_mlp that of dense layers.
    set_if("intermediate_size_mlp", maybe("feed_forward_length"));
    config_["interleave_moe_layer_step"] = maybe("interleave_moe_layer_step").value_or(1);
}

void GgufConversion::write_gemma4() {
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

void GgufConversion::write_falcon() {
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

void GgufConversion::write_gpt2() {
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

// Layers without KV heads are convolutions. The width of the FFN is that of the tensors, not the one before the rule.
void GgufConversion::write_lfm2() {
    json types = json::array();
    for (std::size_t i = 0; i < layers_; ++i) {
        types.push_back(i < kv_heads_each_.size() && kv_heads_each_[i] > 0 ? "full_attention" : "conv");
    }
    config_["layer_types"] = std::move(types);
    config_["conv_L_cache"] = number("shortconv.l_cache");
    config_["block_auto_adjust_ff_dim"] = false;
}

void GgufConversion::write_falcon_h1() {
    std::uint64_t heads = number("ssm.time_step_rank");
    std::uint64_t inner = number("ssm.inner_size");
    config_["mamba_d_ssm"] = inner;
    config_["mamba_n_heads"] = heads;
    config_["mamba_d_head"] = inner / heads;
    config_["mamba_d_state"] = number("ssm.state_size");
    config_["mamba_n_groups"] = number("ssm.group_count");
    config_["mamba_d_conv"] = number("ssm.conv_kernel");
    config_["mamba_rms_norm"] = any_layer("ssm_norm.weight");
}

}  // namespace roofline::io
