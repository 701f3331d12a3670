// What a weight is for. One role per operator that owns weights, so that quantisation rules, GGUF tensors and
// safetensors tensors can all be brought to the operator that reads them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace roofline::model {

enum class Role {
    embedding,       // token embedding table
    position,        // learned position table
    head,            // output projection to the vocabulary
    norm,            // every normalisation gain and bias
    attention_qkv,   // q, k, v (separate or fused), their biases, an output gate fused into q
    attention_out,   // o
    latent_q_down,   // MLA: hidden -> q rank
    latent_q_up,     // MLA: q rank -> heads
    latent_kv_down,  // MLA: hidden -> kv rank and rotary key
    latent_kv_up,    // MLA: kv rank -> keys and values of the heads
    indexer,         // sparse attention: everything that scores keys
    compressor,      // compressed attention: everything that pools keys and values
    ffn_gate_up,     // gate and up of a dense FFN (or its only input matrix)
    ffn_down,
    expert_gate_up,  // routed experts
    expert_down,
    shared_gate_up,  // shared experts
    shared_down,
    router,       // gate that picks experts, its bias
    moe_latent,   // projections around experts that work in a narrower space
    mixer_in,     // state-space and linear attention: input projections
    mixer_state,  // convolution, decay, step sizes, small vectors
    mixer_out,
    other,  // hyper-connections, scalars, and what has no better place
};

inline constexpr std::size_t role_count = static_cast<std::size_t>(Role::other) + 1;

inline constexpr std::array<std::string_view, role_count> role_names = {
    "embedding",     "position",    "head",           "norm",         "attention_qkv",  "attention_out",
    "latent_q_down", "latent_q_up", "latent_kv_down", "latent_kv_up", "indexer",        "compressor",
    "ffn_gate_up",   "ffn_down",    "expert_gate_up", "expert_down",  "shared_gate_up", "shared_down",
    "router",        "moe_latent",  "mixer_in",       "mixer_state",  "mixer_out",      "other"};

constexpr std::string_view name(Role role) {
    return role_names[static_cast<std::size_t>(role)];
}

}  // namespace roofline::model
