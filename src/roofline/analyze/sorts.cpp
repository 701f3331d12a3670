// What kernels and operators do, told by their names: those of PyTorch, its compiler, vLLM, SGLang, ONNX Runtime and
// the libraries they call.
#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "roofline/analyze/structure.hpp"

namespace roofline::analyze {
namespace {

using Sort = Piece::Sort;

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

bool holds_any(const std::string& text, std::initializer_list<const char*> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const char* part) { return text.find(part) != std::string::npos; });
}

/// Part of a backward pass: but where the operator itself stands before its backward
/// ("native_layer_norm_native_layer_norm_ backward"), a forward pass may keep what both need.
bool is_backward(const std::string& name) {
    constexpr std::string_view word = "_backward";
    for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
        bool both = false;
        for (std::size_t length = 3; 2 * length + 1 <= at && !both; ++length)
            both = name[at - length - 1] == '_' &&
                   name.compare(at - length, length, name, at - 2 * length - 1, length) == 0;
        if (!both) return true;
    }
    return false;
}

/// Kernels that torch.compile made carry the operators they fuse in their names, also those whose inputs they only
/// prepare: what they do shows in the last ones.
Piece::Sort sort_of_compiled(const std::string& name) {
    if (name.starts_with("triton_tem")) {
        if (holds_any(name, {"bmm"})) return Sort::batched;
        return holds_any(name, {"mm"}) ? Sort::product : Sort::attention;
    }
    if (is_backward(name)) return Sort::backward;
    if (holds_any(name, {"embedding"}) && name.ends_with("_0")) return Sort::embedding;
    if (holds_any(name, {"softmax"}) && !holds_any(name, {"log_softmax"})) return Sort::softmax;
    return holds_any(name, {"rsqrt", "native_layer_norm"}) ? Sort::norm : Sort::other;
}

/// Convolutions over a few tokens, scans, delta rules: by the names that libraries give them.
bool mixes_tokens(const std::string& name) {
    return holds_any(name,
                     {"conv_depthwise", "causal_conv1d", "selective_scan", "chunk_scan", "chunk_state", "state_passing",
                      "ssd_", "delta_rule", "wkv", "rg_lru", "mamba_mixer", "short_conv", "selective_state_update"});
}

}  // namespace

Piece::Sort sort_of_kernel(std::string_view kernel) {
    const std::string name = lower(kernel);
    if (name.starts_with("triton_")) return sort_of_compiled(name);
    if (holds_any(name, {"simt_sgemm"})) return Sort::batched;  // positions are turned in fp32, weights never are
    if (holds_any(name, {"nccl", "all_reduce", "allreduce", "reduce_scatter", "all_gather", "allgather",
                         "cross_device_reduce"}))
        return Sort::collective;
    if (holds_any(name, {"reshape_and_cache", "concat_and_cache"})) return Sort::concatenate;
    if (holds_any(name, {"rotary"})) return Sort::other;
    if (mixes_tokens(name)) return Sort::mixer;
    if (holds_any(name, {"topk", "radixsort", "bitonic", "gathertopk"})) return Sort::choose;
    if (holds_any(name, {"splitkreduce", "lean_reduction", "flash_fwd_splitkv_combine", "merge_attn"}))
        return Sort::tail;
    if (holds_any(name, {"fmha", "flash", "sdpa", "attention", "mha_fwd", "paged_attn", "batchprefill", "batchdecode"}))
        return Sort::attention;
    if (holds_any(name, {"softmax"})) return Sort::softmax;
    if (holds_any(name, {"grouped_gemm", "groupproblemshape", "fused_moe", "moe_gemm"})) return Sort::grouped;
    if (holds_any(name, {"gemm", "nvjet", "gemv", "marlin", "machete", "cutlass", "_mm_", "xmma", "cijk_", "matmul",
                         "wgmma"}))
        return Sort::product;
    if (holds_any(name, {"rms_norm", "rmsnorm", "layer_norm", "layernorm"})) return Sort::norm;
    if (holds_any(name, {"gather_kernel", "indexselect", "embedding"})) return Sort::embedding;
    if (holds_any(name, {"catarray"})) return Sort::concatenate;
    if (holds_any(name, {"functor_add<", "functoronself_add", "_add_"})) return Sort::add;
    if (holds_any(name, {"copy", "memcpy", "memset"})) return Sort::copy;
    return Sort::other;
}

Piece::Sort sort_of_operator(std::string_view full_name) {
    const std::string name = lower(full_name);
    if (name.starts_with("triton_")) return sort_of_compiled(name);
    if (holds_any(name, {"backward"})) return Sort::backward;
    static constexpr std::array<std::string_view, 12> products = {
        "onnx::matmul", "onnx::gemm",   "onnx::fusedmatmul",       "aten::mm",
        "aten::addmm",  "aten::linear", "aten::_scaled_mm",        "aten::_int_mm",
        "aten::mv",     "aten::addmv",  "aten::_addmm_activation", "aten::matmul"};
    if (std::find(products.begin(), products.end(), name) != products.end()) return Sort::product;
    if (holds_any(name, {"grouped_mm", "group_mm", "fused_moe", "moe_forward", "fused_experts", "moe_mm", "moe_wna16"}))
        return Sort::grouped;
    if (holds_any(name, {"reshape_and_cache", "concat_and_cache", "kv_cache_update"})) return Sort::concatenate;
    if (name == "aten::bmm" || name == "aten::baddbmm") return Sort::batched;
    if (mixes_tokens(name) || holds_any(name, {"convolution"})) return Sort::mixer;
    if (holds_any(name, {"attention", "flash_attn", "varlen_fwd", "fmha", "::fwd"})) return Sort::attention;
    if (holds_any(name, {"topk"})) return Sort::choose;
    if (holds_any(name, {"softmax"})) return Sort::softmax;
    if (holds_any(name, {"scaled_mm", "gemm", "fp4_mm", "machete_mm", "pack_mm"})) return Sort::product;
    if (holds_any(name, {"rms_norm", "layer_norm", "rmsnorm", "layernormalization"})) return Sort::norm;
    if (name == "aten::embedding" || name == "aten::index_select" || name == "aten::gather") return Sort::embedding;
    if (name == "aten::cat") return Sort::concatenate;
    if (name == "aten::add" || name == "aten::add_") return Sort::add;
    if (name == "aten::copy_" || name == "aten::clone" || name == "aten::contiguous") return Sort::copy;
    if (holds_any(name, {"c10d::", "nccl", "record_param_comms", "all_reduce", "allreduce"})) return Sort::collective;
    return Sort::other;
}

}  // namespace roofline::analyze
