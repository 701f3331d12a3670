// Latent attention as DeepSeek V3 has it: the kernel alone, and the whole module with its projections.
#include "roofline/assess/measured.hpp"

namespace roofline::assess {
namespace {

constexpr double latent = 576.0;  // cached per token: 512 and a rotary key of 64
constexpr double value = 512.0;
constexpr double hidden = 7168.0;

/// TensorRT-LLM's one name stands for three kernels, by generation.
std::string family_of(const RowContext& row, const std::string& framework) {
    const std::string kernel = lower_case(row.text("kernel"));
    if (framework != "trtllm") return kernel;
    const std::string& generation = row.device.generation;
    return generation == "hopper" ? "hopper" : generation == "blackwell" ? "gen" : "fmha";
}

std::string read(const RowContext& row, Measurement& into) {
    const double batch = row.size("batch");
    const double queries = row.size("q_len");
    const double keys = row.size("kv_len");
    const double heads = row.size("heads");
    if (batch * queries * keys * heads == 0.0) return "a size is missing, or is no whole number up to a billion";
    const std::string framework = lower_case(row.text("framework"));
    const std::string family = family_of(row, framework);
    const std::string kernel_name = lower_case(row.text("kernel"));
    const bool fp8_cache = row.text("kv_dtype") == "fp8";
    const double cache_bytes = fp8_cache ? 1.0 : 2.0;
    const double pairs = queries == 1.0 ? keys : queries * keys - queries * (queries - 1.0) / 2.0;

    predict::Kernel kernel;
    kernel.pattern = Pattern::latent;
    kernel.sequences = batch;
    kernel.queries = queries;
    kernel.keys = keys;
    kernel.heads = heads;
    DType type = DType::bf16;
    std::string_view class_name;
    if (into.kind == "mla_decode") {
        class_name = "mla_decode";
        kernel.flops = 2.0 * batch * heads * pairs * (latent + value);
        kernel.weight_bytes = batch * keys * latent * cache_bytes;
        kernel.input_bytes = batch * heads * latent * 2.0;
        kernel.output_bytes = batch * heads * value * 2.0;
        kernel.kv_heads = 1.0;
        kernel.key_dim = latent;
        kernel.value_dim = value;
        type = fp8_cache && row.device.generation != "ampere" ? DType::fp8 : DType::bf16;
        into.stack = framework + "/" + family;
        into.fit_type = "bf16";
        if (framework == "sglang" && family == "flash_attention" && fp8_cache) into.fit_type = "bf16/fp8";
    } else if (into.kind == "mla_prefill") {
        class_name = "mla_prefill";
        // SGLang's general kernels work on the latent itself; all others on keys and values expanded from it.
        const bool absorbed = framework == "sglang" && (kernel_name == "flash_attention" || kernel_name == "triton");
        const double key_dim = absorbed ? latent : 192.0;
        const double value_dim = absorbed ? value : 128.0;
        const double kv_heads = framework == "sglang" ? 1.0 : heads;
        kernel.flops = 2.0 * batch * heads * pairs * (key_dim + value_dim);
        kernel.input_bytes = 2.0 * batch * queries * (heads * key_dim + kv_heads * (absorbed ? latent : 320.0));
        kernel.output_bytes = 2.0 * batch * queries * heads * value_dim;
        kernel.kv_heads = kv_heads;
        kernel.key_dim = key_dim;
        kernel.value_dim = value_dim;
        const bool eight_bits =
            fp8_cache && ((framework == "trtllm" && family != "fmha") || kernel_name == "trtllm_mla");
        type = eight_bits ? DType::fp8 : DType::bf16;
        into.stack = framework + "/" + family;
        into.fit_type = fp8_cache && family != "fmha" ? "bf16/fp8" : "bf16";
    } else {
        class_name = "mla_module";
        const bool decode = into.kind == "mla_module_decode";
        // vLLM sends short prompts through its decode kernels.
        const bool latent_path = decode || kernel_name == "flashinfer_mla" || kernel_name == "flashmla" ||
                                 kernel_name == "flash_attn_mla" || kernel_name == "triton_mla";
        const std::size_t gemm = into.type.find("gemm:");
        const std::string weights = gemm == std::string::npos ? "bf16" : into.type.substr(gemm + 5);
        const double width = weights == "bf16" ? 2.0 : weights == "nvfp4" ? 0.5625 : 1.0;
        const double elements =
            hidden * 2112.0 + 1536.0 * 192.0 * heads + 512.0 * 256.0 * heads + 128.0 * hidden * heads;
        const double tokens = batch * queries;
        kernel.flops = 2.0 * batch * heads * pairs * (latent_path ? latent + value : 320.0);
        if (into.type.starts_with("fp8/")) kernel.flops /= 2.0;
        kernel.weight_bytes = elements * width;
        kernel.input_bytes = latent_path ? batch * keys * latent * cache_bytes : 2.0 * tokens * heads * 320.0;
        kernel.output_bytes = 2.0 * tokens * (2.0 * hidden + 2112.0 + 1536.0 + 640.0 * heads);
        kernel.rows = tokens;
        kernel.inner = hidden;
        kernel.cols = elements / hidden;
        kernel.kv_heads = latent_path ? 1.0 : heads;
        into.fit_type = decode ? "decode" : "prefill";
        into.stack = decode ? framework + "/" + family : framework;
    }
    into.calls = {call_of(row.device, class_name, type, kernel)};
    into.family = whole(heads);
    into.label = "batch " + whole(batch) + ", " + whole(queries) + " queries, " + whole(keys) + " keys, " +
                 whole(heads) + " heads, " + std::string(row.text("kv_dtype")) + " cache";
    return {};
}

}  // namespace

extern const RowReader mla_rows;
const RowReader mla_rows{{"mla_decode", "mla_prefill", "mla_module_decode", "mla_module_prefill"},
                         {"kv_dtype", "batch", "q_len", "kv_len", "heads"},
                         read};

}  // namespace roofline::assess
