// What llama.cpp calls an architecture, and what Hugging Face calls the same model: a table, without the conversion.
#pragma once

#include <string_view>

namespace roofline::io {

// Which names a model type has for its experts.
enum class GgufExperts {
    none,
    local,    // mixtral: num_local_experts, num_experts_per_tok; intermediate_size is the width of an expert
    counted,  // qwen: num_experts, moe_intermediate_size, shared_expert_intermediate_size
    routed,   // deepseek: n_routed_experts, n_shared_experts, moe_intermediate_size, first_k_dense_replace
};

// What further keys a model type needs.
enum class GgufKind {
    plain,
    latent,
    delta,
    nemotron,
    mamba,
    jamba,
    granite_hybrid,
    llama4,
    gemma4,
    falcon,
    gpt2,
    lfm2,
    falcon_h1
};

struct GgufArchitecture {
    std::string_view architecture;  // general.architecture
    std::string_view model_type;
    GgufExperts experts = GgufExperts::none;
    GgufKind kind = GgufKind::plain;
    // Every period-th layer attends to everything, the others to a window, where the file does not say which.
    // 0: no window is applied; 1: every layer has it.
    unsigned period = 0;
    unsigned window = 0;  // where the file has none
};

// Null for an architecture that is not in the table.
const GgufArchitecture* find_gguf_architecture(std::string_view name);

}  // namespace roofline::io
