#include "roofline/predict/replica.hpp"

#include <algorithm>
#include <cmath>

#include "roofline/predict/report.hpp"

namespace roofline::predict {
namespace {

/// The busiest of `parts` that share the sequences of a step. A single sequence cannot be shared.
void split(std::span<const model::Sequences> step, double parts, model::Step& into) {
    into.assign(step.begin(), step.end());
    if (parts <= 1.0) return;
    for (model::Sequences& group : into) group.count = std::ceil(group.count / parts);
}

double most_sequences(std::span<const model::Sequences> step) {
    double most = 1.0;
    for (const model::Sequences& group : step) most = std::max(most, group.count);
    return most;
}

/// Each of the five times of `a` and `b`, combined.
template <class Combine>
void combine_times(StageTime& into, const StageTime& other, const Combine& combine) {
    into.limit = combine(into.limit, other.limit);
    into.attainable = combine(into.attainable, other.attainable);
    into.expected = combine(into.expected, other.expected);
    into.expected_low = combine(into.expected_low, other.expected_low);
    into.expected_high = combine(into.expected_high, other.expected_high);
}

}  // namespace

Replica::Replica(const Scenario& scenario)
    : deployment_(scenario.deployment),
      whole_(scenario.lowered, scenario.device, scenario.execution, scenario.deployment.overlap) {
    for (const PipelineStage& stage : scenario.stages) {
        stages_.emplace_back(stage.lowered, scenario.device, scenario.execution, scenario.deployment.overlap);
        most_operators_ = std::max(most_operators_, stages_.back().size());
    }
}

double Replica::micro_batches(std::span<const model::Sequences> step) const {
    return std::min(deployment_.pipeline, std::ceil(most_sequences(step) / deployment_.groups));
}

model::Step Replica::on_device(std::span<const model::Sequences> step) const {
    model::Step part;
    split(step, deployment_.groups * micro_batches(step), part);
    return part;
}

/// Two half batches, one computing while the other communicates, each reading the weights for itself.
StageTime Replica::one_pass(std::span<const model::Sequences> part, std::span<OperatorTime> times) const {
    StageTime together = whole_.evaluate(part, times);
    if (!deployment_.two_batches || most_sequences(part) < 2.0) return together;
    model::Step half;
    split(part, 2.0, half);
    std::vector<OperatorTime> scratch(whole_.size());
    const StageTime one = whole_.evaluate(half, scratch);
    const auto beside = [](double all, double communicating, double time) {
        const double computing = all - communicating;
        return all > 0.0 ? 2.0 * time * std::max(computing, communicating) / all : 2.0 * time;
    };
    together.attainable =
        std::max(together.limit, beside(one.attainable, one.attainable_communicating, one.attainable));
    together.expected = std::max(together.attainable, beside(one.kernel_seconds, one.communicating, one.expected));
    together.expected_low =
        std::max(together.attainable, beside(one.kernel_seconds, one.communicating, one.expected_low));
    together.expected_high =
        std::max(together.expected, beside(one.kernel_seconds, one.communicating, one.expected_high));
    return together;
}

PipelineTime Replica::micro_batch(std::span<const model::Sequences> part, std::span<OperatorTime> times) const {
    PipelineTime time;
    time.pass = one_pass(part, times);
    time.interval = time.pass;
    if (stages_.empty()) return time;
    std::vector<OperatorTime> scratch(most_operators_);
    StageTime slowest;
    for (const Prepared& stage : stages_) {
        combine_times(slowest, stage.evaluate(part, scratch), [](double a, double b) { return std::max(a, b); });
    }
    // A stage is never slower than the whole, though constants of whole steps may say so.
    combine_times(time.interval, slowest, [](double whole, double stage) { return std::min(whole, stage); });
    return time;
}

StageTime Replica::evaluate(std::span<const model::Sequences> step, std::span<OperatorTime> times, Pace pace) const {
    if (stages_.empty() && deployment_.groups == 1.0) return one_pass(step, times);
    const double parts = micro_batches(step);
    const PipelineTime time = micro_batch(on_device(step), times);
    StageTime result = time.pass;
    combine_times(result, time.interval, [&](double pass, double interval) {
        // Alone: the pipeline fills and drains, and stages wait meanwhile. Steady: every stage is busy with one of the
        // micro-batches, and each comes round again when all have passed the slowest stage.
        return pace == Pace::alone ? pass + (parts - 1.0) * interval : std::max(pass, parts * interval);
    });
    return result;
}

}  // namespace roofline::predict
