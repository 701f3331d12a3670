#include "roofline/bench/kernels/selective_scan.hpp"

#include <algorithm>

#include "roofline/bench/kernels/best_of.hpp"
#include "roofline/bench/kernels/exponential.hpp"

namespace roofline::bench {
namespace {

constexpr std::int64_t abreast = SelectiveShape::abreast;

/// Some groups of channels that lie behind each other, of one sequence, with all its tokens.
struct Part {
    const float* x = nullptr;  // the first token's row,
    std::int64_t first = 0;    // and the first channel in it
    std::int64_t groups = 0;
    std::int64_t tokens = 0;
    std::int64_t channels = 0;  // of a whole row
    std::int64_t key_dim = 0;
    const float* rates = nullptr;
    const float* skips = nullptr;
    float* states = nullptr;
    float* y = nullptr;
};

/// Of each number of a state 8 bytes are read and written and a rate is read, for 9 FLOPs as they are counted: the
/// exponential, of some 14 instructions, is one of them.
inline __attribute__((always_inline)) void scan_part(const Part& part) {
    const std::int64_t width = 3 * part.channels + 2 * part.key_dim;
    for (std::int64_t token = 0; token < part.tokens; ++token) {
        const float* row = part.x + token * width;
        const float* keys = row + 3 * part.channels;
        const float* queries = keys + part.key_dim;
        for (std::int64_t group = 0; group < part.groups; ++group) {
            const std::int64_t first = part.first + group * abreast;
            const float* values = row + first;
            const float* gates = values + 2 * part.channels;
            const float* rates = part.rates + group * part.key_dim * abreast;
            float* state = part.states + group * part.key_dim * abreast;
            float* to = part.y + token * part.channels + first;
            float steps[abreast];
            float given[abreast];
            float sums[abreast];
            for (std::int64_t i = 0; i < abreast; ++i) {
                steps[i] = softened(values[part.channels + i]);
                given[i] = steps[i] * values[i];
                sums[i] = part.skips[first + i] * values[i];
            }
            for (std::int64_t key = 0; key < part.key_dim; ++key) {
                const float with = keys[key];
                for (std::int64_t i = 0; i < abreast; ++i) {
                    const float decay = exponential_of_minus(steps[i] * rates[key * abreast + i]);
                    state[key * abreast + i] = decay * state[key * abreast + i] + given[i] * with;
                }
            }
            // Apart, and four at a time: `sums` is memory, and each addition to it waits for the one before.
            std::int64_t key = 0;
            for (; key + 4 <= part.key_dim; key += 4) {
                const float* next = state + key * abreast;
                const float* with = queries + key;
                for (std::int64_t i = 0; i < abreast; ++i)
                    sums[i] += next[i] * with[0] + next[abreast + i] * with[1] +
                               (next[2 * abreast + i] * with[2] + next[3 * abreast + i] * with[3]);
            }
            for (; key < part.key_dim; ++key) {
                for (std::int64_t i = 0; i < abreast; ++i) sums[i] += state[key * abreast + i] * queries[key];
            }
            for (std::int64_t i = 0; i < abreast; ++i)
                to[i] = sums[i] * gates[i] / (1.0F + exponential_of_minus(gates[i]));
        }
    }
}

}  // namespace

void selective_scan(const float* x, const float* rates, const float* skips, float* states, float* y,
                    const SelectiveShape& shape, Threads& threads) {
    static const auto best = best_of<scan_part, const Part&>();
    // So many groups that states of 16 numbers stay in the nearest cache while tokens go by.
    constexpr std::int64_t together = 8;
    const std::int64_t groups = shape.channels / abreast;
    const std::int64_t parts = (groups + together - 1) / together;
    threads.ranges(shape.batch * parts, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t item = first; item < last; ++item) {
            const std::int64_t sequence = item / parts;
            const std::int64_t group = item % parts * together;
            const std::int64_t at = group * shape.key_dim * abreast;
            best({.x = x + sequence * shape.tokens * shape.width(),
                  .first = group * abreast,
                  .groups = std::min(together, groups - group),
                  .tokens = shape.tokens,
                  .channels = shape.channels,
                  .key_dim = shape.key_dim,
                  .rates = rates + at,
                  .skips = skips,
                  .states = states + sequence * shape.channels * shape.key_dim + at,
                  .y = y + sequence * shape.tokens * shape.channels});
        }
    });
}

}  // namespace roofline::bench
