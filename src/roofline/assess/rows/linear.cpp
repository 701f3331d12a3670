// Kernels of recurrent layers (gated delta net, Mamba-2), their convolutions, and quantising to fp8. The tables replay
// one set of buffers, so that whatever fits the cache is read from it: states and weights are therefore counted as
// activations here, which may stay on the chip.
#include <cmath>

#include "roofline/assess/measured.hpp"

namespace roofline::assess {
namespace {

constexpr double convolution = 4.0;  // taps
constexpr double chunk = 64.0;

/// Groups and state size of the Mamba-2 models that were timed: the tables give only heads and hidden width.
std::string mamba_channels(const RowContext& row, double& channels) {
    const double heads = row.size("heads");
    const double hidden = row.size("hidden");
    const bool small = heads == 16.0 && hidden == 1024.0;
    const bool known = small || (heads == 64.0 && (hidden == 2688.0 || hidden == 8192.0)) ||
                       (heads == 128.0 && hidden == 4096.0) || (heads == 256.0 && hidden == 8192.0);
    if (!known) return "groups and state size of this Mamba-2 shape are not known";
    channels = heads * row.size("head_dim") + 2.0 * (small ? 4.0 * 64.0 : 8.0 * 128.0);
    return {};
}

std::string read(const RowContext& row, Measurement& into) {
    const std::string framework = lower_case(row.text("framework"));
    const std::string_view op = into.kind;
    const bool trtllm = framework == "trtllm";
    const bool decode = op.find("_decode:") != std::string_view::npos;
    predict::Kernel kernel;
    std::string_view class_name = "elementwise";
    if (op == "static_fp8_quantize") {
        const double elements = row.size("m") * row.size("k");
        if (elements == 0.0) return "m or k is missing, or is no whole number up to a billion";
        // SGLang's is four plain kernels: divide in fp32, clamp, convert, copy.
        const bool plain = framework == "sglang";
        kernel.input_bytes = (plain ? 11.0 : 2.0) * elements;
        kernel.output_bytes = (plain ? 10.0 : 1.0) * elements;
        kernel.flops = 2.0 * elements;
        kernel.rows = row.size("m");
        into.family = whole(row.size("k"));
        into.label = whole(row.size("m")) + " x " + whole(row.size("k"));
        into.type = "fp8";
        into.fit_type = "quantise";
    } else {
        const double batch = row.size("batch");
        const double heads = row.size("heads");
        const double dim = row.size("head_dim");
        const double tokens = row.size("tokens");
        const double queries = row.size("q_len");
        const bool mamba = op.starts_with("mamba2");
        const double kv_heads = mamba ? 1.0 : row.size("kv_heads");
        if (batch * heads * dim * tokens * queries * kv_heads == 0.0)
            return "a size is missing, or is no whole number up to a billion";
        into.family = whole(heads) + "/" + whole(kv_heads) + "x" + whole(dim) + "/" + whole(row.size("hidden"));
        into.label = "batch " + whole(batch) + ", " + whole(queries) + " tokens, " + whole(heads) + "/" +
                     whole(kv_heads) + " heads of " + whole(dim);
        if (op.find("conv1d") != std::string_view::npos) {
            into.fit_type = "convolution";
            double channels = (2.0 * kv_heads + heads) * dim;
            if (mamba) {
                if (std::string problem = mamba_channels(row, channels); !problem.empty()) return problem;
            } else if (trtllm) {
                channels = kv_heads * dim;  // keys alone
            }
            const double state = 2.0 * (convolution - 1.0) * channels * batch;
            const double weights = 2.0 * channels * (convolution + (trtllm ? 1.0 : 0.0)) + (decode ? 2.0 : 1.0) * state;
            kernel.input_bytes = 2.0 * channels * tokens + weights / 2.0;
            kernel.output_bytes = 2.0 * channels * tokens + weights / 2.0;
            kernel.flops = 2.0 * convolution * channels * tokens;
            kernel.rows = !decode && trtllm ? batch * channels : tokens;
        } else {
            const double matrix = heads * dim * dim;
            const double mixed = (2.0 * kv_heads + heads) * dim;
            const double states = 2.0 * batch * matrix * (trtllm ? 2.0 : 4.0);
            kernel.input_bytes = tokens * (2.0 * mixed + (decode ? 4.0 : 8.0) * heads);
            kernel.output_bytes = 2.0 * tokens * heads * dim;
            if (decode) {
                into.fit_type = "recurrence";
                kernel.input_bytes += states / 2.0;
                kernel.output_bytes += states / 2.0;
                kernel.flops = 7.0 * matrix * tokens;
                kernel.rows = batch * heads;
            } else {
                const double full = std::floor(queries / chunk);
                const double rest = queries - full * chunk;
                const double pairs = batch * (full * chunk * (chunk + 1.0) / 2.0 + rest * (rest + 1.0) / 2.0);
                class_name = "scan";
                kernel.pattern = Pattern::scan;
                kernel.weight_bytes = trtllm ? 0.0 : states;  // TensorRT-LLM's row passes no state
                kernel.flops = 6.0 * matrix * tokens + heads * 10.0 * dim * pairs;
                kernel.sequences = batch;
                kernel.queries = queries;
                kernel.heads = heads;
                kernel.key_dim = kernel.value_dim = dim;
            }
        }
    }
    // The same kernel under both kinds of layer; each framework has its own.
    const std::size_t colon = op.find(':');
    into.stack = framework + "/" + std::string(colon == std::string_view::npos ? op : op.substr(colon + 1));
    into.calls = {call_of(row.device, class_name, DType::bf16, kernel)};
    return {};
}

}  // namespace

extern const RowReader linear_rows;
const RowReader linear_rows{{"static_fp8_quantize", "gdn_decode:", "gdn_prefill:", "mamba2_decode:", "mamba2_prefill:"},
                            {"m", "k", "batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim", "tokens", "hidden"},
                            read};

}  // namespace roofline::assess
