// Routed experts: the feed-forward network of one rank, as two products over the experts that are touched. `tokens`
// counts those of all ranks; `moe_tp` splits the width of every expert, `moe_ep` shares out the experts.
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/assess/expert_load.hpp"
#include "roofline/assess/measured.hpp"
#include "roofline/predict/kernel_type.hpp"

namespace roofline::assess {
namespace {

/// What a row's dtype means: how weights and activations lie in memory, and what the engine multiplies in.
struct NumberType {
    std::string_view label;
    std::string_view weights;
    std::string_view activations;
    DType engine;
    std::string_view fit_type;
};

constexpr auto number_types = std::to_array<NumberType>({
    {"bf16", "bf16", "bf16", DType::bf16, "bf16"},
    {"fp8", "fp8", "fp8", DType::fp8, "fp8"},
    {"fp8_block", "fp8_block", "fp8", DType::fp8, "fp8_block"},
    {"int4_wo", "int4_g32", "bf16", DType::bf16, "int4"},
    {"w4a16_mxfp4", "mxfp4", "bf16", DType::bf16, "mxfp4/bf16"},
    {"w4a8_mxfp4_mxfp8", "mxfp4", "mxfp8", DType::fp8, "mxfp4/fp8"},
    {"nvfp4", "nvfp4", "nvfp4", DType::fp4, "nvfp4"},
});

constexpr double most_experts = 4096.0;  // several times what any model has: keeps a typing error from costing minutes
constexpr double most_tokens = 1e9;

// The benchmarks run the same weights again and again: those that fit are partly still in the cache. This share of them
// does not come from memory when they are small beside it; none when they fill it.
constexpr double warm = 0.7;

double bytes_per_element(std::string_view format) {
    return bits_per_element(*find_format(format)) / 8.0;
}

/// Kernels that behave alike, by the name in the table.
std::string_view family_of(std::string_view kernel, const Device& device) {
    if (kernel.contains("xpu")) return "xpu";
    if (kernel.contains("marlin")) return "marlin";
    if (kernel.contains("flashinfer_trtllm") || kernel.contains("trtllm_mx")) return "gen";
    // TensorRT-LLM's one name stands for three kernels, by generation.
    if (kernel == "moe_torch_flow") {
        return device.generation == "ampere" ? "cutlass" : device.generation == "hopper" ? "triton" : "gen";
    }
    if (kernel.contains("triton") || kernel == "vllm_fused_moe") return "triton";
    return "cutlass";
}

struct Sizes {
    double tokens, hidden, inter, chosen, experts, moe_tp, moe_ep;
};

std::string problem_of(const Sizes& s) {
    const auto all = {s.tokens, s.hidden, s.inter, s.chosen, s.experts, s.moe_tp, s.moe_ep};
    if (std::ranges::count(all, 0.0) > 0) return "a size is missing, or is no whole number up to a billion";

    if (s.experts > most_experts || s.tokens > most_tokens) return "more experts or tokens than can be meant";
    if (s.chosen > s.experts) return "a token goes through more experts than there are";
    // Also where there are fewer experts than ranks.
    if (std::fmod(s.experts, s.moe_ep) != 0.0) return "the experts cannot be shared evenly by moe_ep ranks";
    return {};
}

/// Nothing where the table's word for the distribution is not known.
std::optional<ExpertLoad> load_of(std::string_view distribution, const Routing& routing) {
    if (distribution == "balanced") return balanced_load(routing);
    constexpr std::string_view power_law = "power_law_";
    if (!distribution.starts_with(power_law)) return std::nullopt;
    const auto exponent = parse_number(distribution.substr(power_law.size()));
    if (!exponent || *exponent < 0.0 || *exponent > 10.0) return std::nullopt;
    return power_law_load(routing, *exponent);
}

std::string read(const RowContext& row, Measurement& into) {
    const Sizes sizes{row.size("tokens"),  row.size("hidden"), row.size("inter"), row.size("topk"),
                      row.size("experts"), row.size("moe_tp"), row.size("moe_ep")};
    if (std::string problem = problem_of(sizes); !problem.empty()) return problem;
    const auto [tokens, hidden, inter, chosen, experts, moe_tp, moe_ep] = sizes;
    const auto type = std::ranges::find(number_types, into.type, &NumberType::label);
    if (type == number_types.end()) return "unknown number type";

    const std::string name = lower_case(row.text("kernel"));
    const std::string_view family = family_of(name, row.device);
    // SGLang's raw kernels know only their own experts, and its timings are those of slots that belong elsewhere being
    // sent to the first of them.
    const bool triton_piles = name == "sglang_fused_moe_triton" && (into.type == "bf16" || into.type == "fp8_block");
    const bool marlin_piles = name == "sglang_marlin_moe" && row.device.generation == "ampere";
    const bool piles = moe_ep > 1.0 && (triton_piles || marlin_piles);
    const auto load = load_of(row.text("distribution"), {.tokens = static_cast<std::int64_t>(tokens),
                                                         .experts = static_cast<std::int64_t>(experts),
                                                         .chosen = static_cast<std::int64_t>(chosen),
                                                         .ranks = static_cast<std::int64_t>(moe_ep),
                                                         .whole_tokens = piles});
    if (!load) return "unknown distribution of tokens over experts";
    const double seen = piles ? load->tokens : tokens;
    // These two make room for every slot, also of experts elsewhere.
    const bool all_slots = (family == "triton" || family == "marlin") && !piles;
    const double slots = all_slots ? tokens * chosen : load->rows;

    // The tables do not say so, but the networks of two models have no gate: Nemotron 3's, with squared ReLU.
    const bool plain = chosen == 22.0 || (hidden == 2688.0 && inter == 1856.0);
    const bool gated = !plain || name == "vllm_fused_moe";
    const double width = inter / moe_tp;
    const double up_cols = gated ? 2.0 * width : width;

    predict::Kernel common;
    common.pattern = Pattern::experts;
    common.tokens = tokens;
    common.copies = load->experts;
    common.rows = load->rows / load->experts;
    common.experts_total = experts;
    common.experts_chosen = chosen;
    // Rows per expert by which the engine chooses its tile: CUTLASS and Marlin go by what arrives, the others by the
    // slots they are given.
    const bool by_arrival = family == "cutlass" || family == "marlin";
    common.queries = by_arrival ? common.rows : seen * chosen / (experts / moe_ep);

    const double weight_width = bytes_per_element(type->weights);
    const double weights = load->experts * (up_cols * hidden + hidden * width) * weight_width;
    const Figure* cache = row.device.capacity(Level::cache);
    const double fits = cache != nullptr && cache->value > 0.0 ? std::max(0.0, 1.0 - weights / cache->value) : 0.0;
    const auto product = [&](double cols, double inner) {
        predict::Kernel kernel = common;
        kernel.cols = cols;
        kernel.inner = inner;
        kernel.flops = 2.0 * load->rows * cols * inner;
        kernel.weight_bytes = load->experts * cols * inner * weight_width * (1.0 - warm * fits);
        return kernel;
    };
    // Activations enter and leave as bf16; they are gathered per slot, narrowed on the way, and summed per token.
    predict::Kernel gate_up = product(up_cols, hidden);
    gate_up.input_bytes = 2.0 * seen * hidden + load->rows * hidden * bytes_per_element(type->activations);
    gate_up.output_bytes = 2.0 * slots * up_cols;
    predict::Kernel down = product(hidden, width);
    down.input_bytes = 2.0 * slots * width;
    down.output_bytes = 2.0 * slots * hidden + 2.0 * seen * hidden;

    into.calls = {call_of(row.device, "expert_product", type->engine, gate_up),
                  call_of(row.device, "expert_product", type->engine, down)};
    into.stack = lower_case(row.text("framework")) + "/" + std::string(family);
    into.fit_type = predict::type_on(row.device, type->fit_type, type->engine);
    into.family = whole(hidden) + "x" + whole(inter) + "x" + whole(experts);
    into.label = whole(tokens) + " tokens, " + whole(hidden) + " x " + whole(inter) + ", " + whole(chosen) + " of " +
                 whole(experts) + " experts, tp " + whole(moe_tp) + ", ep " + whole(moe_ep) + ", " +
                 std::string(row.text("distribution"));
    return {};
}

}  // namespace

extern const RowReader moe_rows;
const RowReader moe_rows{
    {"moe_ffn"}, {"tokens", "hidden", "inter", "topk", "experts", "moe_tp", "moe_ep", "distribution", "flag"}, read};

}  // namespace roofline::assess
