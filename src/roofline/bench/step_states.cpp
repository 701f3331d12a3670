// A layer with a state in place of attention, in a step.
#include "roofline/bench/kernels/rowwise.hpp"
#include "roofline/bench/kernels/state_space.hpp"
#include "roofline/bench/step_run.hpp"

namespace roofline::bench {

/// Tokens of every sequence, one after the other (state_space.hpp).
void mix_by_states(StepRun& run, const StateMixerShape& shape, const LayerWeights& layer, const float* x, float* y) {
    const std::int64_t values = shape.values();
    const std::int64_t channels = shape.channels();
    const StateShape states{run.work.batch, shape.heads, shape.groups, shape.key_dim, shape.value_dim, run.work.tokens};
    float* wide = room(run.rooms.wide, run.rows * shape.in.n);
    float* unmixed = room(run.rooms.low, run.rows * channels);
    float* convolved = room(run.rooms.by_head, run.rows * channels);
    // Where in a row of the first product there is what.
    const std::int64_t gates_at = shape.delta ? channels : 0;
    const std::int64_t convolved_at = shape.delta ? 0 : values;
    const std::int64_t of_heads = shape.in.n - values - channels;  // behind both
    const std::int64_t given_width = channels + of_heads;
    float* given = room(run.rooms.queries, run.rows * given_width);
    float* gated = room(run.rooms.wide_queries, run.rows * 2 * values);
    float* mixed = room(run.rooms.mixed, run.rows * values);
    run.multiply(layer.in, x, wide, run.rows);
    const auto copy = [&](const float* from, std::int64_t from_width, float* to, std::int64_t to_width,
                          std::int64_t count) {
        turn(from, to, {run.rows, 1, count, from_width, to_width}, run.threads);
    };
    copy(wide + convolved_at, shape.in.n, unmixed, channels, channels);
    convolve(unmixed, layer.taps.as<float>(), run.norm_bias.data(), layer.past.as<float>(), convolved,
             {run.work.batch, run.work.tokens, channels, shape.taps}, run.threads);
    copy(convolved, channels, given, given_width, channels);
    copy(wide + values + channels, shape.in.n, given + channels, given_width, of_heads);
    if (shape.delta)
        delta_step(given, run.gain.data(), layer.keys.as<float>(), mixed, states, run.threads);
    else
        state_space_step(given, run.gain.data(), run.norm_bias.data(), layer.keys.as<float>(), mixed, states,
                         run.threads);
    copy(mixed, values, gated, 2 * values, values);
    copy(wide + gates_at, shape.in.n, gated + values, 2 * values, values);
    gated_norm(gated, run.gain.data(), mixed, run.rows, values, shape.delta ? shape.value_dim : values, run.threads);
    run.multiply(layer.out, mixed, y, run.rows);
}

}  // namespace roofline::bench
