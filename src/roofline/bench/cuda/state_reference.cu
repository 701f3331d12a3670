// The formulas of state_reference.hpp.
#include <cmath>
#include <numeric>

#include "roofline/bench/cuda/state_reference.hpp"

namespace roofline::cuda::kernels {

namespace {

using Values = std::vector<double>;

std::size_t extent(std::int64_t size) {
    return static_cast<std::size_t>(size);
}

double silu(double x) {
    return x / (1.0 + std::exp(-x));
}

Values bf16_of(const Memory& memory) {
    const auto raw = copied(memory.at<std::uint16_t>(), memory.bytes() / 2);
    Values values;
    for (const std::uint16_t one : raw) values.push_back(decode_bf16(one));
    return values;
}

Values floats_of(const Memory& memory) {
    const auto raw = copied(memory.at<float>(), memory.bytes() / sizeof(float));
    return {raw.begin(), raw.end()};
}

Values of_length_one(const double* x, std::size_t count) {
    Values unit(x, x + count);
    const double length = std::sqrt(std::inner_product(x, x + count, x, 0.0) + 1e-6);
    for (double& value : unit) value /= length;
    return unit;
}

}  // namespace

Values convolved(const std::vector<Values>& inputs, const Values& weights, const Values& bias) {
    Values sums = bias;
    const std::size_t channels = bias.size();
    for (std::size_t tap = 0; tap < inputs.size(); ++tap) {
        for (std::size_t i = 0; i < channels; ++i) sums[i] += weights[tap * channels + i] * inputs[tap][i];
    }
    for (double& sum : sums) sum = silu(sum);
    return sums;
}

Values update_states(const StateMixerShape& shape, const double* channels, const double* of_heads, const Values& rates,
                     const Values& skips, double* states) {
    const std::size_t heads = extent(shape.heads);
    const std::size_t key_dim = extent(shape.key_dim);
    const std::size_t value_dim = extent(shape.value_dim);
    const std::size_t all_keys = extent(shape.groups) * key_dim;
    const double* values = shape.delta ? channels + 2 * all_keys : channels;
    const double* keys = shape.delta ? channels + all_keys : channels + heads * value_dim;
    const double* queries = shape.delta ? channels : keys + all_keys;
    Values results;
    for (std::size_t head = 0; head < heads; ++head) {
        const std::size_t group = head / (heads / extent(shape.groups));
        Values key(keys + group * key_dim, keys + (group + 1) * key_dim);
        Values query(queries + group * key_dim, queries + (group + 1) * key_dim);
        if (shape.delta) {
            key = of_length_one(key.data(), key_dim);
            query = of_length_one(query.data(), key_dim);
        }
        const double step = std::log1p(std::exp(of_heads[head]));
        const double decay = std::exp(-step * rates[head]);
        for (std::size_t i = 0; i < value_dim; ++i) {
            double* state = states + (head * value_dim + i) * key_dim;
            const double value = values[head * value_dim + i];
            double seen = 0.0;
            for (std::size_t k = 0; k < key_dim; ++k) {
                state[k] *= decay;
                seen += state[k] * key[k];
            }
            const double given =
                shape.delta ? (value - seen) / (1.0 + std::exp(-of_heads[heads + head])) : step * value;
            double result = shape.delta ? 0.0 : skips[head] * value;
            for (std::size_t k = 0; k < key_dim; ++k) {
                state[k] += given * key[k];
                result += state[k] * query[k];
            }
            results.push_back(result);
        }
    }
    return results;
}

Values gated_normed(Values values, const double* gates, const Values& gains) {
    const std::size_t run = gains.size();
    const bool whole = run == values.size();
    for (std::size_t i = 0; whole && i < values.size(); ++i) values[i] *= silu(gates[i]);
    for (std::size_t first = 0; first < values.size(); first += run) {
        const double* own = values.data() + first;
        const double mean = std::inner_product(own, own + run, own, 0.0) / static_cast<double>(run);
        const double factor = 1.0 / std::sqrt(mean + 1e-5);
        for (std::size_t i = 0; i < run; ++i) {
            values[first + i] *= factor * gains[i] * (whole ? 1.0 : silu(gates[first + i]));
        }
    }
    return values;
}

std::vector<Values> mixed_by_states(const StateMixerShape& shape, const StateWeights& weights, const StepShape& step,
                                    const std::vector<Values>& rows) {
    const std::size_t channels = extent(shape.channels());
    const std::size_t taps = extent(shape.taps);
    const std::size_t convolved_at = shape.delta ? 0 : extent(shape.values());
    const std::size_t gates_at = shape.delta ? channels : 0;
    const std::size_t heads_at = channels + extent(shape.values());
    const std::size_t tokens = extent(step.tokens);
    const std::size_t position = extent(step.context - step.tokens);
    const std::size_t kept = extent(shape.values() * shape.key_dim);  // numbers of a sequence
    const Values tap_weights = bf16_of(weights.taps);
    const Values bias = bf16_of(weights.bias);
    const Values rates = floats_of(weights.rates);
    const Values skips = floats_of(weights.skips);
    const Values gains = bf16_of(weights.gains);
    const Values past = bf16_of(weights.past);
    Memory first(weights.states.bytes());
    weights.renew(first, nullptr);
    Values states = floats_of(first);
    if (step.prefill) states.assign(states.size(), 0.0);
    std::vector<Values> results;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const std::size_t sequence = row / tokens;
        const std::size_t token = row % tokens;
        std::vector<Values> inputs;
        for (std::size_t oldness = taps; oldness-- > 0;) {
            if (oldness <= token) {
                const double* from = rows[row - oldness].data() + convolved_at;
                inputs.emplace_back(from, from + channels);
            } else if (oldness <= token + position) {
                const double* from = past.data() + (sequence * taps + (position + token - oldness) % taps) * channels;
                inputs.emplace_back(from, from + channels);
            } else {
                inputs.emplace_back(channels, 0.0);
            }
        }
        const Values given = convolved(inputs, tap_weights, bias);
        Values mixed = update_states(shape, given.data(), rows[row].data() + heads_at, rates, skips,
                                     states.data() + sequence * kept);
        results.push_back(gated_normed(std::move(mixed), rows[row].data() + gates_at, gains));
    }
    return results;
}

}  // namespace roofline::cuda::kernels
