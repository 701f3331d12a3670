#include "roofline/serving/step_table.hpp"

#include <algorithm>

namespace roofline::serving {

StepCost StepTable::at(double prompt_tokens, double looked_at, double decoding, double keys) const {
    const double place = std::max(decoding / most_decoding, 0.0) * static_cast<double>(counts - 1);
    const std::size_t below = std::min(static_cast<std::size_t>(place), counts - 2);
    const double more = keys - decoding * mean_context;
    const auto beside = [&](const ByDecoding& costs) {
        return between(costs[below], costs[below + 1], place - static_cast<double>(below));
    };
    const auto row = [&](std::size_t i) {
        const Row& of = rows[i];
        StepCost cost = beside(of.at_head);
        if (of.far > of.near) cost = between(cost, beside(of.at_end), (looked_at - of.near) / (of.far - of.near));
        return StepCost{cost.latency + more * of.per_key.latency, cost.interval + more * of.per_key.interval,
                        cost.flops + more * of.per_key.flops, cost.memory_bytes + more * of.per_key.memory_bytes};
    };
    // No prompt at all is a case of its own: engines run such steps differently.
    if (prompt_tokens <= 0.0 || rows.size() < 2) return row(0);
    const auto fewer = [](const Row& of, double tokens) { return of.tokens < tokens; };
    const auto above = std::lower_bound(rows.begin() + 1, rows.end(), prompt_tokens, fewer);
    const auto upper = static_cast<std::size_t>(std::min(above, rows.end() - 1) - rows.begin());
    if (upper == 1) return row(1);
    const double share = (prompt_tokens - rows[upper - 1].tokens) / (rows[upper].tokens - rows[upper - 1].tokens);
    return between(row(upper - 1), row(upper), share);
}

}  // namespace roofline::serving
