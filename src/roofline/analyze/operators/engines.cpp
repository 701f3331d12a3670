// Operators that serving engines bring along (vLLM's _C and vllm, SGLang's sgl_kernel, FlashInfer): norms, activations,
// rotary positions, quantising, writing the cache, routing. Most are given where to write, so that every tensor they
// touch is among their arguments; what they hold but do not read whole (caches, tables) is named here.
#include <algorithm>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

/// Numbers of the largest tensor.
double largest(const Call& call) {
    double most = 0.0;
    for (const Argument& argument : call.signature().arguments) {
        for (const Tensor& tensor : argument.tensors)
            most = std::max(most, tensor.dims.empty() ? 0.0 : elements(tensor));
    }
    return most;
}

/// Every tensor is read or written once.
template <Kind Of, int FlopsPerNumber>
std::optional<Effort> once(const Call& call) {
    const double most = largest(call);
    if (most == 0.0) return std::nullopt;
    return moved(Of, FlopsPerNumber * most, call.all_bytes());
}

/// (out, in): FLOPs are those of the numbers written, of which a gated activation makes one from two.
template <int FlopsPerNumber>
std::optional<Effort> activation(const Call& call) {
    const Tensor* out = call.tensor(0, 1);
    if (out == nullptr || call.tensor(1, 1) == nullptr) return std::nullopt;
    return moved(Kind::elementwise, FlopsPerNumber * elements(*out), call.all_bytes());
}

/// (x, residual, weight): both are read and written.
std::optional<Effort> added_norm(const Call& call) {
    const Tensor* x = call.tensor(0, 1);
    if (x == nullptr || call.tensor(1, 1) == nullptr) return std::nullopt;
    return moved(Kind::norm, 5.0 * elements(*x), 2.0 * call.bytes(0) + 2.0 * call.bytes(1) + call.bytes(2));
}

/// Every tensor once, the residual in argument `Residual` twice.
template <std::size_t Residual>
std::optional<Effort> quantised_norm(const Call& call) {
    const double most = largest(call);
    if (most == 0.0) return std::nullopt;
    return moved(Kind::norm, 7.0 * most, call.all_bytes() + call.bytes(Residual));
}

/// Rows of the table of sines and cosines that the positions pick.
double turning_table(const Call& call, std::size_t positions, std::size_t table) {
    const Tensor* where = call.tensor(positions);
    const Tensor* rows = call.tensor(table, 2);
    return where == nullptr || rows == nullptr ? 0.0 : elements(*where) * at(*rows, -1) * call.size(table);
}

/// (positions, query, key?, head size, table, ...): turned in place.
std::optional<Effort> rotary(const Call& call) {
    const Tensor* q = call.tensor(1, 1);
    if (q == nullptr) return std::nullopt;
    const double keys = call.tensor(2) != nullptr ? elements(*call.tensor(2)) : 0.0;
    return moved(Kind::elementwise, 3.0 * (elements(*q) + keys),
                 2.0 * (call.bytes(1) + call.bytes(2)) + call.bytes(0) + turning_table(call, 0, 4));
}

/// (q, k, q out, k out, table, positions, ...).
std::optional<Effort> rotary_aside(const Call& call) {
    const Tensor* q = call.tensor(0, 1);
    const Tensor* k = call.tensor(1, 1);
    if (q == nullptr || k == nullptr) return std::nullopt;
    return moved(
        Kind::elementwise, 3.0 * (elements(*q) + elements(*k)),
        call.bytes(0) + call.bytes(1) + call.bytes(2) + call.bytes(3) + call.bytes(5) + turning_table(call, 5, 4));
}

/// (qkv, ...): the heads of queries and keys are read, scaled, turned and written; the values are left alone.
std::optional<Effort> norm_and_rotary(const Call& call) {
    const Tensor* qkv = call.tensor(0, 2);
    if (qkv == nullptr) return std::nullopt;
    const auto q = static_cast<double>(call.integer(1, 0));
    const auto k = static_cast<double>(call.integer(2, 0));
    const auto v = static_cast<double>(call.integer(3, 0));
    const double turned = q + k > 0.0 ? (q + k) / (q + k + v) : 1.0;
    return moved(Kind::norm, 7.0 * turned * elements(*qkv), 2.0 * turned * call.bytes(0));
}

/// (key, value, key cache, value cache, ...): what is new is read, and written in the cache's type; the cache is not
/// touched otherwise.
std::optional<Effort> into_cache(const Call& call) {
    const Tensor* key = call.tensor(0, 2);
    const Tensor* value = call.tensor(1, 2);
    if (key == nullptr || value == nullptr) return std::nullopt;
    Effort effort = moved(Kind::copy, 0.0, call.bytes(0) + call.bytes(1));
    const double width = call.size(2) > 0.0 ? call.size(2) : call.size(0);
    effort.kv = (elements(*key) + elements(*value)) * width;
    return effort;
}

/// (packed [k x n/8], scales, zeros, ...): weights of four bits unpacked to sixteen.
std::optional<Effort> unpacked(const Call& call) {
    const Tensor* packed = call.tensor(0, 2);
    if (packed == nullptr) return std::nullopt;
    Effort effort = moved(Kind::copy, 0.0, elements(*packed) * 8.0 * 2.0);
    effort.weights = call.bytes(0) + call.bytes(1) + call.bytes(2);
    return effort;
}

/// (in, scale, ...) -> four bits a number and a scale of eight for sixteen of them.
std::optional<Effort> to_four_bits(const Call& call) {
    const Tensor* in = call.tensor(0, 2);
    if (in == nullptr) return std::nullopt;
    if (call.tensor(1, 2) != nullptr) return once<Kind::elementwise, 3>(call);  // it is given where to write
    return moved(Kind::elementwise, 3.0 * elements(*in), call.bytes(0) + elements(*in) * (0.5 + 1.0 / 16.0));
}

/// An engine's own all-reduce: (handle, in, out, ...) or (in, group). How many take part is not among the arguments:
/// each link carries the data at least once.
std::optional<Effort> own_all_reduce(const Call& call) {
    const std::size_t in = call.tensor(0, 1) != nullptr ? 0 : 1;
    if (call.tensor(in, 1) == nullptr) return std::nullopt;
    Effort effort;
    effort.kind = Kind::collective;
    effort.link = call.bytes(in);
    effort.activations = 2.0 * call.bytes(in);
    effort.estimated = true;
    return effort;
}

}  // namespace

void engines_operators(Formulas& table) {
    for (const char* name : {"silu_and_mul", "mul_and_silu", "silu_and_mul_with_clamp", "silu_and_mul_quant",
                             "silu_and_mul_per_block_quant", "silu_and_mul_nvfp4_quant", "fatrelu_and_mul",
                             "swigluoai_and_mul", "situ_and_mul", "masked_situ_and_mul"})
        table[name] = activation<5>;
    for (const char* name : {"gelu_and_mul", "gelu_tanh_and_mul"}) table[name] = activation<9>;
    for (const char* name : {"gelu_new", "gelu_fast", "gelu_quick"}) table[name] = activation<8>;
    table["relu_squared"] = activation<2>;

    for (const char* name : {"rmsnorm", "gemma_rmsnorm", "rms_norm_static_fp8_quant"})
        table[name] = once<Kind::norm, 4>;
    for (const char* name : {"fused_add_rms_norm", "fused_add_rmsnorm", "gemma_fused_add_rmsnorm"})
        table[name] = added_norm;
    table["fused_add_rms_norm_static_fp8_quant"] = quantised_norm<2>;
    for (const char* name : {"rms_norm_dynamic_per_token_quant", "rms_norm_per_block_quant"})
        table[name] = quantised_norm<6>;

    table["rotary_embedding"] = rotary;
    table["apply_rope_pos_ids_cos_sin_cache"] = rotary_aside;
    table["fused_qk_norm_rope"] = norm_and_rotary;

    for (const char* name : {"static_scaled_fp8_quant",
                             "dynamic_scaled_fp8_quant",
                             "dynamic_per_token_scaled_fp8_quant",
                             "static_scaled_int8_quant",
                             "dynamic_scaled_int8_quant",
                             "per_token_group_fp8_quant",
                             "per_token_group_fp8_quant_packed",
                             "per_token_group_quant_int8",
                             "sgl_per_token_group_quant_fp8",
                             "sgl_per_token_group_quant_int8",
                             "sgl_per_token_group_quant_8bit",
                             "sgl_per_tensor_quant_fp8",
                             "sgl_per_token_quant_fp8",
                             "scaled_fp4_experts_quant",
                             "sgl_per_token_group_quant_8bit_v2",
                             "per_token_group_quant_8bit_v2",
                             "per_token_group_quant",
                             "per_tensor_quant_fp8",
                             "per_token_quant_fp8",
                             "mxfp4_experts_quant",
                             "silu_and_mul_mxfp4_experts_quant",
                             "silu_and_mul_scaled_fp4_experts_quant",
                             "persistent_masked_m_silu_mul_quant"})
        table[name] = once<Kind::elementwise, 3>;
    table["scaled_fp4_quant"] = to_four_bits;
    table["awq_dequantize"] = unpacked;

    for (const char* name : {"reshape_and_cache", "reshape_and_cache_flash", "concat_and_cache_mla"})
        table[name] = into_cache;
    for (const char* name :
         {"concat_mla_q", "concat_mla_k", "convert_fp8", "permute_cols", "shuffle_rows", "moe_permute", "moe_unpermute",
          "ep_moe_pre_reorder", "ep_moe_post_reorder", "prepare_moe_input", "get_cutlass_moe_mm_data",
          "moe_permute_with_scratch", "concat_mla_absorb_q", "flashinfer_concat_mla_k", "fused_kimi_k3_mla_kv_concat",
          "fused_kimi_k3_mla_kv_concat_quant_fp8", "copy_to_gpu_no_ce"})
        table[name] = once<Kind::copy, 0>;
    for (const char* name :
         {"merge_attn_states", "merge_state", "merge_state_v2", "moe_sum", "moe_sum_reduce", "apply_shuffle_mul_sum"})
        table[name] = once<Kind::elementwise, 2>;
    for (const char* name : {"topk_softmax", "topk_sigmoid", "grouped_topk", "moe_fused_gate", "topk_softplus_sqrt",
                             "moe_topk_softmax_out", "moe_topk_sigmoid_out", "fused_topk_deepseek"})
        table[name] = once<Kind::elementwise, 5>;
    for (const char* name : {"moe_align_block_size", "batched_moe_align_block_size", "moe_lora_align_block_size",
                             "top_k_per_row_decode", "top_k_per_row_prefill", "persistent_topk", "cooperative_topk",
                             "fast_topk", "fast_topk_transform_fused", "fast_topk_transform_ragged_fused"})
        table[name] = once<Kind::elementwise, 1>;
    table["apply_repetition_penalties"] = once<Kind::elementwise, 2>;
    table["all_reduce"] = own_all_reduce;
    for (const char* name :
         {"mscclpp_allreduce", "qr_all_reduce", "outplace_all_reduce", "inplace_all_reduce", "flashinfer_allreduce"})
        table[name] = own_all_reduce;
    for (const char* name : {"gloo:all_reduce", "gloo:broadcast", "gloo:reduce", "gloo:all_gather", "gloo:gather",
                             "gloo:scatter", "gloo:reduce_scatter", "gloo:all_to_all"})
        table[name] = own_all_reduce;
}

}  // namespace roofline::analyze
