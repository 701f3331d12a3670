#include "roofline/predict/fit.hpp"

#include <algorithm>
#include <cmath>

#include "roofline/predict/host_share.hpp"
#include "roofline/predict/longest.hpp"

namespace roofline::predict {
namespace {

double final_context(const Workload& workload) {
    return std::max(workload.decode_context(), workload.prompt + workload.cached + workload.generate);
}

/// Activations of the largest step: what grows with every sequence, and what does not.
struct StepActivations {
    double each = 0.0;
    double fixed = 0.0;
};

StepActivations activations_of(const model::Lowered& lowered, const Workload& workload) {
    const bool chunked = workload.chunk > 0.0;
    const double tokens = chunked ? workload.chunk : workload.prompt;
    const double widest =
        tokens * lowered.widest_activation + tokens * (tokens + workload.cached) * lowered.score_bytes;
    if (chunked) return {lowered.widest_activation + lowered.logits_bytes, widest};
    return {widest + lowered.logits_bytes, 0.0};
}

}  // namespace

Bytes Fit::shortfall() const {
    if (engine) return engine->shortfall;
    return capacity && total() > *capacity ? total() - *capacity : Bytes(0.0);
}

Fit fit(const model::Lowered& lowered, const Device& device, const Workload& workload, double longest_known,
        const std::optional<MemoryOptions>& options) {
    Fit result;
    const double context = final_context(workload);
    const StepActivations activations = activations_of(lowered, workload);
    result.weights = Bytes(model::count_parameters(lowered).stored_bytes - weight_bytes_on_host(lowered));
    const double here = 1.0 - lowered.host_kv;
    result.kv = Bytes(workload.batch * model::cache_bytes(lowered, context) * here);
    result.draft_weights = Bytes(lowered.draft_weights);
    result.draft_kv = Bytes(workload.batch * model::draft_cache_bytes(lowered, context) * here);
    result.activations = Bytes(workload.batch * activations.each + activations.fixed);
    const Figure* capacity = device.capacity(Level::memory);
    if (capacity == nullptr) return result;

    result.capacity = Bytes(capacity->value);
    result.fits = result.total() <= *result.capacity;
    const double free = capacity->value - result.weights.value;
    // What one more sequence costs: its cache, and its share of the largest step.
    const double each = model::cache_bytes(lowered, context) * here + activations.each;
    const double room = free - activations.fixed;
    if (room <= 0.0) {
        result.largest_batch = 0.0;
    } else if (each > 0.0) {
        result.largest_batch = std::floor(room / each);
    }

    const auto holds = [&](double tokens_kept) {
        return workload.batch * model::cache_bytes(lowered, tokens_kept) * here + result.activations.value <= free;
    };
    result.longest_context = longest_that(holds, longest_known > 0.0 ? longest_known : unlimited);

    if (options && options->rules.layout != EngineRules::Layout::ideal) {
        result.engine = engine_memory(lowered, device, workload, longest_known, *options);
        result.fits = result.engine->fits;
        result.largest_batch = result.engine->largest_batch;
        result.longest_context = result.engine->longest_context;
    }
    return result;
}

}  // namespace roofline::predict
