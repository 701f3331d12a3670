#include "roofline/model/types.hpp"

namespace roofline::model {

bool usually_quantised(Role role) {
    switch (role) {
        case Role::attention_qkv:
        case Role::attention_out:
        case Role::latent_q_down:
        case Role::latent_q_up:
        case Role::latent_kv_down:
        case Role::latent_kv_up:
        case Role::ffn_gate_up:
        case Role::ffn_down:
        case Role::expert_gate_up:
        case Role::expert_down:
        case Role::shared_gate_up:
        case Role::shared_down:
        case Role::moe_latent:
        case Role::mixer_in:
        case Role::mixer_out:
            return true;
        default:
            return false;
    }
}

DType stream_type(DType activation) {
    return bits(activation) >= 16 ? activation : DType::bf16;
}

TypePlan uniform_plan(std::size_t layers, const Format& weights, DType activation, const Format& kv) {
    TypePlan plan;
    plan.stream = stream_type(activation);
    plan.kv = kv;
    // Engines run attention in 8 bits only when queries and cache are both 8 bits wide.
    plan.attention = bits(activation) <= 8 && bits_per_element(kv) <= 8.5 ? DType::fp8 : plan.stream;
    const bool plain = bits_per_element(weights) >= 16.0;
    RoleTypes roles;
    for (std::size_t i = 0; i < role_count; ++i) {
        const Role role = static_cast<Role>(i);
        // GGUF quantises the embedding table and the head too; other formats leave them in 16 bits.
        const bool gguf = weights.weight_only && weights.value == DType::int8;
        const bool table = role == Role::embedding || role == Role::head;
        const bool packed = plain || usually_quantised(role) || (gguf && table);
        roles[i].format = packed ? weights : plain_format(plan.stream);
        roles[i].activation = packed ? activation : plan.stream;
    }
    plan.outside = roles;
    plan.layers.assign(layers, roles);
    return plan;
}

TypePlan ggml_plan(std::size_t layers, const GgufFormats& formats, const Format& kv) {
    TypePlan plan;
    plan.stream = DType::fp16;
    plan.attention = DType::fp16;
    plan.kv = kv;
    const auto multiplied = [](const Format& format) {
        if (format.value == DType::fp4) return DType::fp4;
        return format.weight_only ? DType::int8 : DType::fp16;
    };
    RoleTypes roles;
    for (std::size_t i = 0; i < role_count; ++i) {
        const Role role = static_cast<Role>(i);
        WeightType& type = roles[i];
        if (role == Role::expert_gate_up || role == Role::expert_down)
            type.format = formats.experts;
        else if (role == Role::embedding || role == Role::head)
            type.format = formats.table;
        else if (usually_quantised(role))
            type.format = formats.matrices;
        else
            type.format = plain_format(DType::fp32);
        type.activation = type.format.value == DType::fp32 ? DType::fp32 : multiplied(type.format);
    }
    plan.outside = roles;
    plan.layers.assign(layers, roles);
    return plan;
}

GgufFormats gguf_formats(const Format& named) {
    const auto format = [](std::string_view name) { return *find_format(name); };
    if (named.name == "mxfp4") return {named, format("q8_0"), format("q8_0")};
    if (named.name == "q4_k") return {named, format("q6_k"), format("q6_k")};
    if (named.name == "q4_0") return {named, named, format("q8_0")};
    return {named, named, named};
}

}  // namespace roofline::model
