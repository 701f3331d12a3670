#include "roofline/bench/kernels/state_space.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "roofline/bench/kernels/rowwise.hpp"

namespace roofline::bench {
namespace {

/// How fast a state decays: by a step through which no gradient is lost.
float decay_of(float step, float rate) {
    return std::exp(-std::log1p(std::exp(step)) * rate);
}

/// In 16 sums, so that none waits for itself.
float dot(const float* a, const float* b, std::int64_t count) {
    float sums[16] = {};
    std::int64_t at = 0;
    for (; at + 16 <= count; at += 16) {
        for (int i = 0; i < 16; ++i) sums[i] += a[at + i] * b[at + i];
    }
    float sum = 0.0F;
    for (const float one : sums) sum += one;
    for (; at < count; ++at) sum += a[at] * b[at];
    return sum;
}

/// state = decay state + factor key; returns the new state times query. Reads and writes 8 bytes for 5 FLOPs.
float update(float* state, const float* key, const float* query, float decay, float factor, std::int64_t count) {
    float sums[16] = {};
    std::int64_t at = 0;
    for (; at + 16 <= count; at += 16) {
        for (int i = 0; i < 16; ++i) {
            const float next = decay * state[at + i] + factor * key[at + i];
            state[at + i] = next;
            sums[i] += next * query[at + i];
        }
    }
    float sum = 0.0F;
    for (const float one : sums) sum += one;
    for (; at < count; ++at) {
        state[at] = decay * state[at] + factor * key[at];
        sum += state[at] * query[at];
    }
    return sum;
}

}  // namespace

void convolve(const float* x, const float* weights, const float* bias, float* past, float* y,
              const ConvolutionShape& shape, Threads& threads) {
    constexpr std::int64_t strip = 512;  // of channels
    static const std::vector<float> ones(strip, 1.0F);
    const std::int64_t strips = (shape.channels + strip - 1) / strip;
    const std::int64_t before = shape.taps - 1;
    threads.ranges(shape.batch * strips, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t item = first; item < last; ++item) {
            const std::int64_t sequence = item / strips;
            const std::int64_t begin = item % strips * strip;
            const std::int64_t count = std::min(strip, shape.channels - begin);
            float* kept = past + sequence * before * shape.channels + begin;
            const float* from = x + sequence * shape.tokens * shape.channels + begin;
            const auto row = [&](std::int64_t token) {  // less than 0: before this step
                return token < 0 ? kept + (before + token) * shape.channels : from + token * shape.channels;
            };
            for (std::int64_t token = 0; token < shape.tokens; ++token) {
                float* to = y + (sequence * shape.tokens + token) * shape.channels + begin;
                std::copy_n(bias + begin, count, to);
                for (std::int64_t tap = 0; tap < shape.taps; ++tap) {
                    const float* input = row(token - before + tap);
                    const float* weight = weights + tap * shape.channels + begin;
                    for (std::int64_t i = 0; i < count; ++i) to[i] += weight[i] * input[i];
                }
                silu_product(to, ones.data(), to, count);
            }
            // The oldest first: what is copied lies behind where it goes.
            for (std::int64_t i = 0; i < before; ++i)
                std::copy_n(row(shape.tokens - before + i), count, kept + i * shape.channels);
        }
    });
}

void state_space_step(const float* x, const float* rates, const float* skips, float* states, float* y,
                      const StateShape& shape, Threads& threads) {
    threads.ranges(shape.batch * shape.heads, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t item = first; item < last; ++item) {
            const std::int64_t head = item % shape.heads;
            const std::int64_t group = head / (shape.heads / shape.groups);
            const float* row = x + item / shape.heads * state_space_width(shape);
            const float* values = row + head * shape.value_dim;
            const float* key = row + shape.values() + group * shape.key_dim;
            const float* query = key + shape.keys();
            const float step = row[shape.values() + 2 * shape.keys() + head];
            const float decay = decay_of(step, rates[head]);
            const float factor = std::log1p(std::exp(step));
            float* state = states + item * shape.state();
            float* to = y + item * shape.value_dim;
            for (std::int64_t i = 0; i < shape.value_dim; ++i) {
                to[i] = update(state + i * shape.key_dim, key, query, decay, factor * values[i], shape.key_dim) +
                        skips[head] * values[i];
            }
        }
    });
}

void delta_step(const float* x, const float* rates, float* states, float* y, const StateShape& shape,
                Threads& threads) {
    threads.ranges(shape.batch * shape.heads, 1, [&](std::int64_t first, std::int64_t last) {
        std::vector<float> seen(static_cast<std::size_t>(shape.value_dim));
        for (std::int64_t item = first; item < last; ++item) {
            const std::int64_t head = item % shape.heads;
            const std::int64_t group = head / (shape.heads / shape.groups);
            const float* row = x + item / shape.heads * delta_width(shape);
            const float* query = row + group * shape.key_dim;
            const float* key = query + shape.keys();
            const float* value = row + 2 * shape.keys() + head * shape.value_dim;
            const float* steps = row + 2 * shape.keys() + shape.values();
            const float decay = decay_of(steps[head], rates[head]);
            const float share = 1.0F / (1.0F + std::exp(-steps[shape.heads + head]));
            const float of_key = 1.0F / std::sqrt(dot(key, key, shape.key_dim) + 1e-6F);
            const float of_query = 1.0F / std::sqrt(dot(query, query, shape.key_dim) + 1e-6F);
            float* state = states + item * shape.state();
            float* to = y + item * shape.value_dim;
            // What the decayed state says of the key; then the difference goes in, and the answer comes out.
            std::fill(seen.begin(), seen.end(), 0.0F);
            for (std::int64_t k = 0; k < shape.key_dim; ++k) {
                const float weight = key[k] * of_key * decay;
                const float* from = state + k * shape.value_dim;
                for (std::int64_t i = 0; i < shape.value_dim; ++i)
                    seen[static_cast<std::size_t>(i)] += weight * from[i];
            }
            for (std::int64_t i = 0; i < shape.value_dim; ++i) {
                float& difference = seen[static_cast<std::size_t>(i)];
                difference = share * (value[i] - difference);
                to[i] = 0.0F;
            }
            for (std::int64_t k = 0; k < shape.key_dim; ++k) {
                const float in = key[k] * of_key;
                const float out = query[k] * of_query;
                float* own = state + k * shape.value_dim;
                for (std::int64_t i = 0; i < shape.value_dim; ++i) {
                    own[i] = decay * own[i] + in * seen[static_cast<std::size_t>(i)];
                    to[i] += out * own[i];
                }
            }
        }
    });
}

void gated_norm(const float* x, const float* gain, float* y, std::int64_t rows, std::int64_t width, std::int64_t run,
                Threads& threads) {
    const std::int64_t runs = width / run;
    threads.ranges(rows * runs, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t item = first; item < last; ++item) {
            const float* values = x + item / runs * 2 * width + item % runs * run;
            const float* gates = values + width;
            float* to = y + item * run;
            silu_product(gates, values, to, run);
            const float* normed = runs == 1 ? to : values;
            const float scale = 1.0F / std::sqrt(dot(normed, normed, run) / static_cast<float>(run) + 1e-5F);
            for (std::int64_t i = 0; i < run; ++i) to[i] *= scale * gain[i];
        }
    });
}

}  // namespace roofline::bench
