#include "roofline/predict/fit.hpp"

#include <algorithm>
#include <cmath>

namespace roofline::predict {
namespace {

double final_context(const Workload& workload) {
    return std::max(workload.decode_context(), workload.prompt + workload.cached + workload.generate);
}

double step_activations(const model::Lowered& lowered, double tokens, double sequences) {
    return tokens * lowered.widest_activation + sequences * lowered.logits_bytes;
}

}  // namespace

Fit fit(const model::Lowered& lowered, const Device& device, const Workload& workload, double longest_known) {
    Fit result;
    const double context = final_context(workload);
    const double prefill_tokens = workload.batch * workload.prompt;
    const double tokens =
        std::max(workload.chunk > 0.0 ? workload.chunk + workload.batch : prefill_tokens, workload.batch);
    result.weights = Bytes(model::count_parameters(lowered).stored_bytes);
    result.kv = Bytes(workload.batch * model::cache_bytes(lowered, context));
    result.activations = Bytes(step_activations(lowered, tokens, workload.batch));
    const Figure* capacity = device.capacity(Level::memory);
    if (capacity == nullptr) return result;

    result.capacity = Bytes(capacity->value);
    result.fits = result.total() <= *result.capacity;
    const double free = capacity->value - result.weights.value;
    // What one more sequence costs: its cache, and its share of the largest step.
    const double each = model::cache_bytes(lowered, context) + result.activations.value / workload.batch;
    result.largest_batch = free <= 0.0 ? 0.0 : each <= 0.0 ? 1e9 : std::floor(free / each);

    // The context is found by bisection: windows and pools make the cache anything but linear in it.
    const auto holds = [&](double tokens_kept) {
        return workload.batch * model::cache_bytes(lowered, tokens_kept) + result.activations.value <= free;
    };
    double longest = longest_known > 0.0 ? longest_known : 1e8;
    if (!holds(longest)) {
        double low = 0.0;
        while (longest - low > 1.0) {
            const double middle = std::floor((low + longest) / 2.0);
            (holds(middle) ? low : longest) = middle;
        }
        longest = low;
    }
    result.longest_context = longest;
    return result;
}

}  // namespace roofline::predict
