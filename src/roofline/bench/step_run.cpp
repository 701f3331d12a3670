#include "roofline/bench/step_run.hpp"

#include <algorithm>

#include "roofline/bench/kernels/rowwise.hpp"

namespace roofline::bench {

StepRun::StepRun(const StackShape& model, const StepWork& most, Threads& team)
    : shape(model), largest(most), threads(team) {
    std::int64_t widest = shape.hidden;
    for (const LayerShape& layer : shape.kinds)
        widest = std::max({widest, layer.attention.q_down.n, layer.state.channels(), layer.channels.channels});
    gain.assign(static_cast<std::size_t>(widest), 1.0F);
    norm_bias.assign(static_cast<std::size_t>(widest), CpuModel::bias);
}

void StepRun::begin(const StepWork& step) {
    work = step;
    rows = step.batch * step.tokens;
}

void StepRun::call(const Linear& linear, float* y, std::int64_t count) {
    calls_.push_back({.m = count, .n = linear.n, .k = linear.k, .weights = linear.weights.view(), .y = y});
    called_.push_back(&linear);
}

void StepRun::multiply_called(const float* x) {
    activations_.prepare(x, calls_, products_, threads);
    bench::multiply(calls_, products_, threads);
    for (std::size_t i = 0; i < calls_.size(); ++i) add_bias(calls_[i].y, called_[i]->bias, calls_[i].m, threads);
    calls_.clear();
    called_.clear();
}

void StepRun::multiply(const Linear& linear, const float* x, float* y, std::int64_t count) {
    call(linear, y, count);
    multiply_called(x);
}

void StepRun::multiply_each(const std::vector<Linear>& heads, const float* x, float* y) {
    for (const Linear& linear : heads) {
        call(linear, y, rows);
        y += rows * linear.n;
    }
    multiply_called(x);
}

void StepRun::norm(const float* x, float* y, std::int64_t count) {
    if (shape.layer_norms)
        layer_norm(x, gain.data(), norm_bias.data(), y, count, shape.hidden, threads);
    else
        rms_norm(x, gain.data(), y, count, shape.hidden, threads);
}

const float* StepRun::turns(std::int64_t dim) {
    const std::array<std::int64_t, 3> wanted = {dim, work.context - work.tokens, work.tokens};
    const auto found = turns_.find(wanted);
    if (found != turns_.end()) return found->second.data();
    std::vector<float> table(static_cast<std::size_t>(work.tokens * dim));
    rotary_table(table.data(), wanted[1], work.tokens, dim);
    return turns_.emplace(wanted, std::move(table)).first->second.data();
}

}  // namespace roofline::bench
