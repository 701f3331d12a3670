// A layer that mixes tokens channel by channel in place of attention, in a step.
#include "roofline/bench/kernels/rowwise.hpp"
#include "roofline/bench/kernels/selective_scan.hpp"
#include "roofline/bench/kernels/state_space.hpp"
#include "roofline/bench/step_run.hpp"

namespace roofline::bench {
namespace {

void convolve_channels(StepRun& run, const ChannelMixerShape& shape, const LayerWeights& layer, const float* from,
                       float* to, bool plain) {
    convolve(from, layer.taps.as<float>(), run.norm_bias.data(), layer.past.as<float>(), to,
             {run.work.batch, run.work.tokens, shape.channels, shape.taps, plain}, run.threads);
}

/// What goes into the states of a row: [values][steps][gates][keys][queries] (selective_scan.hpp).
const float* selected(StepRun& run, const ChannelMixerShape& shape, const LayerWeights& layer, const float* wide) {
    const std::int64_t channels = shape.channels;
    const std::int64_t made = shape.select.n;
    const std::int64_t rank = shape.step.k;
    const std::int64_t width = 3 * channels + 2 * shape.key_dim;
    const auto copy = [&](const float* from, std::int64_t from_width, float* to, std::int64_t to_width,
                          std::int64_t count) {
        turn(from, to, {run.rows, 1, count, from_width, to_width}, run.threads);
    };
    float* values = room(run.rooms.low, run.rows * channels);
    float* convolved = room(run.rooms.by_head, run.rows * channels);
    copy(wide, shape.in.n, values, channels, channels);
    convolve_channels(run, shape, layer, values, convolved, false);
    float* narrow = room(run.rooms.entries, run.rows * made);
    run.multiply(layer.select, convolved, narrow, run.rows);
    if (shape.norms) {
        norm_runs(narrow, run.rows, made, 1, rank, run.threads);
        norm_runs(narrow + rank, run.rows, made, 2, shape.key_dim, run.threads);
    }
    float* of_steps = room(run.rooms.wide_queries, run.rows * rank);
    float* steps = values;  // these have been convolved
    copy(narrow, made, of_steps, rank, rank);
    run.multiply(layer.step, of_steps, steps, run.rows);
    float* given = room(run.rooms.queries, run.rows * width);
    copy(convolved, channels, given, width, channels);
    copy(steps, channels, given + channels, width, channels);
    copy(wide + channels, shape.in.n, given + 2 * channels, width, channels);
    copy(narrow + rank, made, given + 3 * channels, width, 2 * shape.key_dim);
    return given;
}

}  // namespace

void mix_by_channels(StepRun& run, const ChannelMixerShape& shape, const LayerWeights& layer, const float* x,
                     float* y) {
    const std::int64_t channels = shape.channels;
    float* wide = room(run.rooms.wide, run.rows * shape.in.n);
    float* mixed = room(run.rooms.mixed, run.rows * channels);
    run.multiply(layer.in, x, wide, run.rows);
    if (shape.key_dim > 0) {
        selective_scan(selected(run, shape, layer, wide), layer.rates.as<float>(), run.norm_bias.data(),
                       layer.keys.as<float>(), mixed, {run.work.batch, channels, shape.key_dim, run.work.tokens},
                       run.threads);
    } else {
        // A gate, the gate behind the convolution, and values.
        float* values = room(run.rooms.low, run.rows * channels);
        float* convolved = room(run.rooms.by_head, run.rows * channels);
        const auto part = [&](std::int64_t which) { return RowsApart{wide + which * channels, shape.in.n}; };
        multiply_rows(part(0), part(2), values, run.rows, channels, run.threads);
        convolve_channels(run, shape, layer, values, convolved, true);
        multiply_rows({convolved, channels}, part(1), mixed, run.rows, channels, run.threads);
    }
    run.multiply(layer.out, mixed, y, run.rows);
}

}  // namespace roofline::bench
