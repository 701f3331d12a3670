// Attention with heads of keys and values: prefill (causal), decode (one query a sequence), encoders (no mask).
#include <cmath>

#include "roofline/assess/measured.hpp"
#include "roofline/predict/kernel_type.hpp"

namespace roofline::assess {
namespace {

/// vLLM's own kernels for NVIDIA's older chips are FlashAttention 2 too, with keys and values in pages; Hopper has the
/// third.
bool is_flash_attention_2(const RowContext& row) {
    if (row.text("kernel") == "flash_attention_2") return true;
    return row.text("kernel") == "vllm_flash_attn" &&
           (row.device.generation == "ampere" || row.device.generation == "ada");
}

/// The class that knows how the kernel cuts contexts, where one does.
std::string_view decode_class_of(const RowContext& row) {
    if (is_flash_attention_2(row)) return "flash_decode";
    if (row.text("kernel") == "vllm_flash_attn" && row.device.vendor == "Intel") return "xe_decode";
    return "attention_decode";
}

std::string read(const RowContext& row, Measurement& into) {
    const double batch = row.size("batch");
    const double queries = row.size("q_len");
    const double keys = row.size("kv_len");
    const double heads = row.size("heads");
    const double kv_heads = row.size("kv_heads");
    const double dim = row.size("head_dim");
    if (batch * queries * keys * heads * kv_heads * dim == 0.0)
        return "a size is missing, or is no whole number up to a billion";
    if (keys < queries) return "fewer keys than queries";
    const std::string kv(row.text("kv_dtype").empty() ? std::string_view(into.type) : row.text("kv_dtype"));
    const auto type = engine_type(into.type);
    const auto kv_type = engine_type(kv);
    if (!type || !kv_type) return "unknown number type";

    const bool decode = into.kind == "attention_decode";
    const bool causal = into.kind != "attention_encoder";
    const double mean_keys = causal ? keys - (queries - 1.0) / 2.0 : keys;
    predict::Kernel kernel;
    kernel.pattern = Pattern::attention;
    kernel.flops = 4.0 * heads * dim * batch * queries * mean_keys;
    kernel.weight_bytes = 2.0 * batch * keys * kv_heads * dim * bits(*kv_type) / 8.0;
    kernel.input_bytes = batch * queries * heads * dim * bits(*type) / 8.0;
    kernel.output_bytes = 2.0 * batch * queries * heads * dim;
    kernel.sequences = batch;
    kernel.queries = queries;
    kernel.keys = keys;
    kernel.heads = heads;
    kernel.kv_heads = kv_heads;
    kernel.key_dim = kernel.value_dim = dim;
    into.calls = {call_of(row.device, decode ? decode_class_of(row) : "attention_prefill", *type, kernel)};
    into.fit_type = predict::attention_type_on(row.device, kv == into.type ? into.type : into.type + "/" + kv, *type);
    if (dim > 128.0) into.fit_type += ", wide heads";  // other kernels, which no longer keep all of a head at hand
    // PyTorch offers several kernels, and the row names one; engines have made their choice.
    const std::string framework = lower_case(row.text("framework"));
    into.stack = framework == "pytorch" ? std::string(row.text("kernel")) : framework;
    if (!causal) {
        const std::string name(row.text("kernel"));
        into.stack = "encoder/" + (name.ends_with("fa2")                            ? "fa2"
                                   : name.ends_with("fa3") || name.ends_with("_v3") ? std::string("fa3")
                                   : name.ends_with("fa4") || name.ends_with("_v4") ? std::string("fa4")
                                                                                    : framework + " " + name);
    }
    // Heads that no matrix instruction divides take another, much slower path in most kernels.
    if (std::fmod(dim, 16.0) != 0.0) into.stack += ", odd heads";
    into.family = whole(heads) + "/" + whole(kv_heads) + "x" + whole(dim);
    into.label = "batch " + whole(batch) + ", " + whole(queries) + " queries, " + whole(keys) + " keys, " +
                 whole(heads) + "/" + whole(kv_heads) + " heads of " + whole(dim);
    return {};
}

}  // namespace

extern const RowReader attention_rows;
const RowReader attention_rows{{"attention_prefill", "attention_decode", "attention_encoder"},
                               {"kv_dtype", "batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim"},
                               read};

}  // namespace roofline::assess
