// The FFN of a step, dense or of experts.
#include <cmath>

#include "roofline/bench/kernels/rowwise.hpp"
#include "roofline/bench/step_run.hpp"

namespace roofline::bench {
namespace {

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

void activate(StepRun& run, bool gated, const float* x, float* y, std::int64_t rows, std::int64_t width) {
    if (gated)
        silu_multiply(x, y, rows, width, run.threads);
    else
        gelu(x, y, rows, width, run.threads);
}

void one_ffn(StepRun& run, bool gated, const FfnWeights& ffn, const float* x, float* y) {
    float* wide = room(run.rooms.wide, run.rows * ffn.up.n);
    float* active = room(run.rooms.active, run.rows * ffn.down.k);
    run.multiply(ffn.up, x, wide, run.rows);
    activate(run, gated, wide, active, run.rows, ffn.down.k);
    run.multiply(ffn.down, active, y, run.rows);
}

void add_shared(StepRun& run, const FfnShape& shape, const LayerWeights& layer, const float* x, float* y) {
    float* shared = room(run.rooms.given, run.rows * run.shape.hidden);
    one_ffn(run, shape.gated, layer.shared, x, shared);
    if (shape.shared_gate) {
        float* gates = room(run.rooms.scores, run.rows);
        run.multiply(layer.shared_gate, x, gates, run.rows);
        for (std::int64_t row = 0; row < run.rows; ++row) {
            const float open = 1.0F / (1.0F + std::exp(-gates[row]));
            for (std::int64_t i = 0; i < run.shape.hidden; ++i) shared[row * run.shape.hidden + i] *= open;
        }
    }
    add(y, shared, run.rows, run.shape.hidden, run.threads);
}

void mix_experts(StepRun& run, const FfnShape& shape, const LayerWeights& layer, const float* x, float* y) {
    const std::int64_t hidden = run.shape.hidden;
    const std::int64_t slots = run.rows * shape.chosen;
    float* scores = room(run.rooms.scores, run.rows * shape.experts);
    run.multiply(layer.router, x, scores, run.rows);
    route(scores, run.rows, shape.experts, shape.chosen, run.routing, run.threads);
    float* taken = room(run.rooms.taken, slots * hidden);
    scatter_rows(x, run.routing, taken, hidden, run.threads);
    const auto each = [&](const float* from, float* to, Linear FfnWeights::* which) {
        for (std::int64_t expert = 0; expert < shape.experts; ++expert) {
            const std::int64_t first = run.routing.begins[size(expert)];
            const std::int64_t count = run.routing.begins[size(expert + 1)] - first;
            const Linear& linear = layer.ffns[size(expert)].*which;
            if (count > 0) run.call(linear, to + first * linear.n, count);
        }
        run.multiply_called(from);
    };
    float* wide = room(run.rooms.wide, slots * shape.up.n);
    float* active = room(run.rooms.active, slots * shape.down.k);
    float* given = room(run.rooms.given, slots * hidden);
    each(taken, wide, &FfnWeights::up);
    activate(run, shape.gated, wide, active, slots, shape.down.k);
    each(active, given, &FfnWeights::down);
    combine_rows(given, run.routing, y, hidden, run.threads);
    if (shape.shared_up) add_shared(run, shape, layer, x, y);
}

}  // namespace

void feed_forward(StepRun& run, const FfnShape& shape, const LayerWeights& layer, const float* x, float* y) {
    if (shape.experts > 0)
        mix_experts(run, shape, layer, x, y);
    else
        one_ffn(run, shape.gated, layer.ffns[0], x, y);
}

}  // namespace roofline::bench
