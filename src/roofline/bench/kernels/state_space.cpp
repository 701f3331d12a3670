#include "roofline/bench/kernels/state_space.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
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

/// Rows of a delta net's state that are gone over together, so that keys and queries are loaded once for them.
constexpr std::int64_t rows_together = 4;

/// What `Rows` rows of a state say of a token, and what becomes of them: to = decay row query + difference (key query)
/// with difference = share (value - decay row key), and row = decay row + difference key. Both products are made with a
/// row before it changes; it changes while it is in the nearest cache. 7 FLOPs for 8 bytes.
struct DeltaToken {
    const float* key;
    const float* query;
    float of_key;  // brings the key to length 1
    float of_query;
    float both;  // key query, both of length 1
    float decay;
    float share;
};
template <std::int64_t Rows>
void take_token(float* state, const DeltaToken& token, const float* values, float* to, std::int64_t count) {
    // Vectors by name: of several sums at once GCC makes single numbers.
    constexpr std::int64_t wide = 4;
    typedef float Lanes __attribute__((vector_size(wide * sizeof(float))));
    const auto load = [](const float* from) {
        Lanes lanes;
        std::memcpy(&lanes, from, sizeof lanes);
        return lanes;
    };
    const auto sum = [](const Lanes& lanes) { return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]); };
    const std::int64_t whole = count / wide * wide;
    Lanes by_key[Rows] = {};
    Lanes by_query[Rows] = {};
    for (std::int64_t at = 0; at < whole; at += wide) {
        const Lanes key = load(token.key + at);
        const Lanes query = load(token.query + at);
        for (std::int64_t row = 0; row < Rows; ++row) {
            const Lanes own = load(state + row * count + at);
            by_key[row] += own * key;
            by_query[row] += own * query;
        }
    }
    float factors[Rows];
    for (std::int64_t row = 0; row < Rows; ++row) {
        float seen = sum(by_key[row]);
        float found = sum(by_query[row]);
        for (std::int64_t at = whole; at < count; ++at) {
            seen += state[row * count + at] * token.key[at];
            found += state[row * count + at] * token.query[at];
        }
        const float difference = token.share * (values[row] - token.decay * token.of_key * seen);
        to[row] = token.decay * token.of_query * found + difference * token.both;
        factors[row] = difference * token.of_key;
    }
    for (std::int64_t at = 0; at < whole; at += wide) {
        const Lanes key = load(token.key + at);
        for (std::int64_t row = 0; row < Rows; ++row) {
            const Lanes next = token.decay * load(state + row * count + at) + factors[row] * key;
            std::memcpy(state + row * count + at, &next, sizeof next);
        }
    }
    for (std::int64_t row = 0; row < Rows; ++row) {
        for (std::int64_t at = whole; at < count; ++at) {
            float& own = state[row * count + at];
            own = token.decay * own + factors[row] * token.key[at];
        }
    }
}

/// take(item, row): a head of a sequence, with each of its tokens in turn, so that its state stays in the cache.
template <class Take>
void each_head(const StateShape& shape, Threads& threads, const Take& take) {
    threads.ranges(shape.batch * shape.heads, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t item = first; item < last; ++item) {
            const std::int64_t row = item / shape.heads * shape.tokens;
            for (std::int64_t token = 0; token < shape.tokens; ++token) take(item, row + token);
        }
    });
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
                if (!shape.plain) silu_product(to, ones.data(), to, count);
            }
            // The oldest first: what is copied lies behind where it goes.
            for (std::int64_t i = 0; i < before; ++i)
                std::copy_n(row(shape.tokens - before + i), count, kept + i * shape.channels);
        }
    });
}

void state_space_step(const float* x, const float* rates, const float* skips, float* states, float* y,
                      const StateShape& shape, Threads& threads) {
    each_head(shape, threads, [&](std::int64_t item, std::int64_t row) {
        const std::int64_t head = item % shape.heads;
        const std::int64_t group = head / (shape.heads / shape.groups);
        const float* from = x + row * state_space_width(shape);
        const float* values = from + head * shape.value_dim;
        const float* key = from + shape.values() + group * shape.key_dim;
        const float* query = key + shape.keys();
        const float step = from[shape.values() + 2 * shape.keys() + head];
        const float decay = decay_of(step, rates[head]);
        const float factor = std::log1p(std::exp(step));
        float* state = states + item * shape.state();
        float* to = y + (row * shape.heads + head) * shape.value_dim;
        for (std::int64_t i = 0; i < shape.value_dim; ++i) {
            to[i] = update(state + i * shape.key_dim, key, query, decay, factor * values[i], shape.key_dim) +
                    skips[head] * values[i];
        }
    });
}

void delta_step(const float* x, const float* rates, float* states, float* y, const StateShape& shape,
                Threads& threads) {
    each_head(shape, threads, [&](std::int64_t item, std::int64_t row) {
        const std::int64_t head = item % shape.heads;
        const std::int64_t group = head / (shape.heads / shape.groups);
        const float* from = x + row * delta_width(shape);
        const float* query = from + group * shape.key_dim;
        const float* key = query + shape.keys();
        const float* value = from + 2 * shape.keys() + head * shape.value_dim;
        const float* steps = from + 2 * shape.keys() + shape.values();
        DeltaToken token{};
        token.key = key;
        token.query = query;
        token.of_key = 1.0F / std::sqrt(dot(key, key, shape.key_dim) + 1e-6F);
        token.of_query = 1.0F / std::sqrt(dot(query, query, shape.key_dim) + 1e-6F);
        token.both = dot(key, query, shape.key_dim) * token.of_key * token.of_query;
        token.decay = decay_of(steps[head], rates[head]);
        token.share = 1.0F / (1.0F + std::exp(-steps[shape.heads + head]));
        float* state = states + item * shape.state();
        float* to = y + (row * shape.heads + head) * shape.value_dim;
        std::int64_t i = 0;
        for (; i + rows_together <= shape.value_dim; i += rows_together)
            take_token<rows_together>(state + i * shape.key_dim, token, value + i, to + i, shape.key_dim);
        for (; i < shape.value_dim; ++i)
            take_token<1>(state + i * shape.key_dim, token, value + i, to + i, shape.key_dim);
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
