#include "roofline/decide/compute_bound.hpp"

#include <cmath>

namespace roofline::decide {

Result<ComputeBoundBatch> compute_bound_batch(const Candidate& candidate) {
    constexpr double largest_tried = 1 << 20;
    const auto scenario = predict::realise(candidate.setup);
    if (!scenario) return std::unexpected(scenario.error());
    const predict::Replica replica(*scenario);
    std::vector<predict::OperatorTime> times(replica.whole().size());
    const double context = scenario->workload.decode_context();
    const double replicas = scenario->deployment.replicas;
    const auto computes = [&](double batch) {
        const auto step = model::decode_step(std::ceil(batch / replicas), context);
        const predict::StageTime stage = replica.evaluate(step, times, predict::Pace::steady);
        return stage.compute_seconds >= stage.memory_seconds;
    };
    ComputeBoundBatch result;
    result.largest = predict::fit_deployment(*scenario).largest_batch;
    if (!computes(largest_tried)) return result;
    double high = 1.0;
    while (high < largest_tried && !computes(high)) high *= 2.0;
    double low = std::floor(high / 2.0);
    while (high - low > 1.0) {
        const double middle = std::floor((low + high) / 2.0);
        (computes(middle) ? high : low) = middle;
    }
    result.batch = high;
    return result;
}

}  // namespace roofline::decide
