#include "roofline/io/unknown_type.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "roofline/io/tensors.hpp"

namespace roofline::io {
namespace {

// What the readers of Llama, Mixtral and DeepSeek look at.
constexpr auto read_fields = std::to_array<std::string_view>({
    "model_type",
    "hidden_size",
    "vocab_size",
    "tie_word_embeddings",
    "max_position_embeddings",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "hidden_act",
    "attention_bias",
    "attention_out_bias",
    "qkv_bias",
    "mlp_bias",
    "use_qk_norm",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "layer_types",
    "num_experts",
    "num_local_experts",
    "n_routed_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "n_shared_experts",
    "num_shared_experts",
    "first_k_dense_replace",
    "decoder_sparse_step",
    "mlp_only_layers",
    "mlp_layer_types",
    "moe_layer_freq",
    "kv_lora_rank",
    "q_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "qk_head_dim",
    "v_head_dim",
    "topk_method",
    "scoring_func",
    "quantization",
    "quantization_config",
    "hf_quant_config",
    "torch_dtype",
    "dtype",
    "expert_dtype",
    "num_nextn_predict_layers",
    "gated_mlp",
    "qk_norm_type",
});

// What is about text, training, sampling or the values of numbers, never about how many of them there are.
constexpr auto harmless = std::to_array<std::string_view>({
    "architectures",
    "auto_map",
    "use_cache",
    "pretraining_tp",
    "norm_topk_prob",
    "n_group",
    "topk_group",
    "return_dict",
    "torchscript",
    "tokenizer_class",
    "id2label",
    "label2id",
    "problem_type",
    "prefix",
    "is_decoder",
    "max_length",
    "min_length",
    "do_sample",
    "top_k",
    "top_p",
    "chunk_size_feed_forward",
    "task_specific_params",
    "finetuning_task",
    "max_sequence_length",
    "seq_length",
    "model_max_length",
    "gradient_checkpointing",
    "unsloth_fixed",
    "hidden_activation",
});
constexpr auto harmless_words = std::to_array<std::string_view>({
    "token_id", "token_index", "dropout", "pdrop",   "initializer", "init_std", "coef",   "rope",      "rotary",
    "eps",      "logit",       "softcap", "scaling", "multiplier",  "version",  "_loss",  "jitter",    "temperature",
    "output_",  "_name",       "_impl",   "penalty", "beam",        "fp32",     "_attn_", "no_repeat", "clip",
});

bool says_nothing(const Json& value) {
    if (value.is_null()) return true;
    if (value.is_boolean()) return !value.get<bool>();
    if (value.is_number()) return value.get<double>() == 0.0;
    return value.empty() || (value.is_string() && value.get_ref<const std::string&>().empty());
}

bool changes_nothing(const std::string& key) {
    const auto listed = [&](const auto& list) { return std::find(list.begin(), list.end(), key) != list.end(); };
    return listed(read_fields) || listed(harmless) ||
           std::any_of(harmless_words.begin(), harmless_words.end(),
                       [&](std::string_view word) { return key.find(word) != std::string::npos; });
}

}  // namespace

void refuse_unread_fields(Fields& config, std::string_view model_type) {
    const std::string type = model_type.empty()
                                 ? "the config names no model_type"
                                 : fmt::format("model_type \"{}\" is not known here", printable(model_type));
    for (const std::string& key : config.keys()) {
        const Json* value = config.find(key);
        if (value == nullptr || says_nothing(*value) || changes_nothing(key)) continue;
        config.complain(key, fmt::format("is set: {}, and what this field changes cannot be told", type));
        return;
    }
    // A gate is what a Llama's FFN has and what its fields do not say: the activation must be one that gates.
    for (const char* key : {"hidden_act", "hidden_activation"}) {
        const std::string activation = config.text_or(key, "silu");
        if (activation != "silu" && activation != "swish" && activation != "swiglu")
            config.complain(key, fmt::format("is \"{}\": {}, and whether its FFN has a gate cannot be told",
                                             printable(activation), type));
    }
}

}  // namespace roofline::io
