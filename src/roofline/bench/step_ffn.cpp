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
    if (shape.norms_apart) run.norm(shared, shared, run.rows);
    add(y, shared, run.rows, run.shape.hidden, run.threads);
}

void mix_experts(StepRun& run, const FfnShape& shape, const LayerWeights& layer, const float* x, float* y) {
    const std::int64_t width = shape.up.k;
    const std::int64_t slots = run.rows * shape.chosen;
    const float* seen = x;
    if (shape.norms_apart) {
        float* normed = room(run.rooms.low, run.rows * width);
        run.norm(x, normed, run.rows);
        seen = normed;
    }
    float* scores = room(run.rooms.scores, run.rows * shape.experts);
    run.multiply(layer.router, seen, scores, run.rows);
    route(scores, run.rows, shape.experts, shape.chosen, run.routing, run.threads);
    if (shape.latent_down) {
        float* narrow = room(run.rooms.low, run.rows * width);
        run.multiply(layer.latent_down, seen, narrow, run.rows);
        seen = narrow;
    }
    float* taken = room(run.rooms.taken, slots * width);
    scatter_rows(seen, run.routing, taken, width, run.threads);
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
    float* given = room(run.rooms.given, slots * width);
    each(taken, wide, &FfnWeights::up);
    activate(run, shape.gated, wide, active, slots, shape.down.k);
    each(active, given, &FfnWeights::down);
    float* sum = shape.latent_up ? room(run.rooms.mixed, run.rows * width) : y;
    combine_rows(given, run.routing, sum, width, run.threads);
    if (shape.latent_up) run.multiply(layer.latent_up, sum, y, run.rows);
    if (shape.norms_apart) run.norm(y, y, run.rows);
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
