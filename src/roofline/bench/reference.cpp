// What kernels should have computed, in fp64, and how far off they are (operands.hpp).
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>

#include "roofline/bench/operands.hpp"

namespace roofline::bench {
namespace {

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

double kv_at(const Memory& memory, DType type, std::int64_t at) {
    return type == DType::bf16 ? static_cast<double>(from_bf16(memory.as<Bf16>()[at])) : memory.as<float>()[at];
}

/// Places spread over [0, count), the first and the last among them.
std::vector<std::int64_t> spread(std::int64_t count, std::int64_t most) {
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < std::min(count, most); ++i)
        places.push_back(count <= most ? i : i * (count - 1) / (most - 1));
    return places;
}

/// What comes out of a state, value i of a head, token by token, as state_space.hpp has it.
std::vector<double> after_space(const Operands& operands, std::int64_t sequence, std::int64_t head, std::int64_t i) {
    const StateShape shape = state_shape(operands.task);
    const std::int64_t group = head * shape.groups / shape.heads;
    const float* kept =
        operands.keys[0].as<float>() + ((sequence * shape.heads + head) * shape.value_dim + i) * shape.key_dim;
    std::vector<double> state(kept, kept + shape.key_dim);
    std::vector<double> results;
    for (std::int64_t token = 0; token < shape.tokens; ++token) {
        const float* row = operands.x.data() + (sequence * shape.tokens + token) * state_space_width(shape);
        const double value = row[head * shape.value_dim + i];
        const double step = std::log1p(std::exp(double{row[shape.values() + 2 * shape.keys() + head]}));
        const double decay = std::exp(-step * double{operands.gain[size(head)]});
        double y = double{operands.bias[size(head)]} * value;
        for (std::int64_t k = 0; k < shape.key_dim; ++k) {
            const double key = row[shape.values() + group * shape.key_dim + k];
            const double query = row[shape.values() + shape.keys() + group * shape.key_dim + k];
            state[size(k)] = decay * state[size(k)] + step * value * key;
            y += state[size(k)] * query;
        }
        results.push_back(y);
    }
    return results;
}
std::vector<double> after_scan(const Operands& operands, std::int64_t sequence, std::int64_t channel) {
    const SelectiveShape shape = selective_shape(operands.task);
    const float* kept = operands.keys[0].as<float>() + sequence * shape.channels * shape.key_dim;
    std::vector<double> state;
    for (std::int64_t k = 0; k < shape.key_dim; ++k) state.push_back(kept[shape.place(channel, k)]);
    std::vector<double> results;
    for (std::int64_t token = 0; token < shape.tokens; ++token) {
        const float* row = operands.x.data() + (sequence * shape.tokens + token) * shape.width();
        const double value = row[channel];
        const double step = std::log1p(std::exp(double{row[shape.channels + channel]}));
        const double gate = row[2 * shape.channels + channel];
        const float* keys = row + 3 * shape.channels;
        double y = double{operands.bias[size(channel)]} * value;
        for (std::int64_t k = 0; k < shape.key_dim; ++k) {
            const double rate = operands.gain[size(shape.place(channel, k))];
            state[size(k)] = std::exp(-step * rate) * state[size(k)] + step * value * double{keys[k]};
            y += state[size(k)] * double{keys[shape.key_dim + k]};
        }
        results.push_back(y * gate / (1.0 + std::exp(-gate)));
    }
    return results;
}
std::vector<double> after_delta(const Operands& operands, std::int64_t sequence, std::int64_t head, std::int64_t i) {
    const StateShape shape = state_shape(operands.task);
    const std::int64_t group = head * shape.groups / shape.heads;
    const auto unit = [&](const float* from) {
        std::vector<double> numbers(from, from + shape.key_dim);
        const double square = std::inner_product(numbers.begin(), numbers.end(), numbers.begin(), 0.0);
        for (double& number : numbers) number /= std::sqrt(square + 1e-6);
        return numbers;
    };
    const float* kept =
        operands.keys[0].as<float>() + ((sequence * shape.heads + head) * shape.value_dim + i) * shape.key_dim;
    std::vector<double> state(kept, kept + shape.key_dim);
    std::vector<double> results;
    for (std::int64_t token = 0; token < shape.tokens; ++token) {
        const float* row = operands.x.data() + (sequence * shape.tokens + token) * delta_width(shape);
        const std::vector<double> query = unit(row + group * shape.key_dim);
        const std::vector<double> key = unit(row + shape.keys() + group * shape.key_dim);
        const float* steps = row + 2 * shape.keys() + shape.values();
        const double decay = std::exp(-std::log1p(std::exp(double{steps[head]})) * double{operands.gain[size(head)]});
        const double share = 1.0 / (1.0 + std::exp(-double{steps[shape.heads + head]}));
        const double seen = decay * std::inner_product(key.begin(), key.end(), state.begin(), 0.0);
        const double difference = share * (double{row[2 * shape.keys() + head * shape.value_dim + i]} - seen);
        for (std::size_t k = 0; k < state.size(); ++k) state[k] = decay * state[k] + key[k] * difference;
        results.push_back(std::inner_product(query.begin(), query.end(), state.begin(), 0.0));
    }
    return results;
}

}  // namespace

std::vector<Sample> reference(const Operands& operands) {
    const Task& task = operands.task;
    std::vector<Sample> samples;
    const std::int64_t d = task.head_dim;
    const float* x = operands.x.data();
    switch (task.kind) {
        case TaskKind::product: {
            for (const std::int64_t i : spread(task.m, 3)) {
                std::int64_t expert = 0;
                while (first_row(task, expert + 1) <= i) ++expert;
                const WeightMatrix& weights = operands.weights[size(expert)];
                for (const std::int64_t n : spread(task.n, 48)) {
                    double sum = 0.0;
                    for (std::int64_t k = 0; k < task.k; ++k)
                        sum += weights.at(n, k) * static_cast<double>(x[i * task.k + k]);
                    samples.push_back({i * task.n + n, sum});
                }
            }
            break;
        }
        case TaskKind::absorption: {  // [head][row][width]: what goes into queries, then what comes out of results
            const std::int64_t heads = task.query_heads;
            const std::int64_t of_results = heads * task.rows;
            for (const bool out : {false, true}) {
                const std::int64_t n = out ? task.value_dim : task.k;
                const std::int64_t k = out ? task.k : d;
                const float* from = x + (out ? of_results * d : 0);
                const std::int64_t to = out ? of_results * task.k : 0;
                for (const std::int64_t head : spread(heads, 3)) {
                    const WeightMatrix& weights = operands.weights[size(head + (out ? heads : 0))];
                    for (const std::int64_t row : spread(task.rows, 3)) {
                        const std::int64_t place = head * task.rows + row;
                        for (const std::int64_t i : spread(n, 16)) {
                            double sum = 0.0;
                            for (std::int64_t j = 0; j < k; ++j)
                                sum += weights.at(i, j) * static_cast<double>(from[place * k + j]);
                            samples.push_back({to + place * n + i, sum});
                        }
                    }
                }
            }
            break;
        }
        case TaskKind::attention: {
            const std::int64_t group = task.query_heads / task.kv_heads;
            const double scale = 1.0 / std::sqrt(static_cast<double>(d));
            const HeadWidths widths = head_widths(task);
            const Memory& values = operands.values.empty() ? operands.keys[0] : operands.values[0];
            for (const std::int64_t row : spread(task.batch * task.tokens, 3)) {
                for (const std::int64_t head : spread(task.query_heads, 4)) {
                    const std::int64_t sequence = row / task.tokens;
                    const std::int64_t seen = task.context - task.tokens + row % task.tokens + 1;
                    const std::int64_t first = task.window > 0 ? std::max<std::int64_t>(0, seen - task.window) : 0;
                    const std::int64_t entry = (sequence * task.kv_heads + head / group) * task.context;
                    const float* q = x + (row * task.query_heads + head) * d;
                    std::vector<std::int64_t> places;
                    if (task.chosen > 0 && seen > task.chosen) {
                        const auto own = operands.places.begin() + row * task.chosen;
                        places.assign(own, own + task.chosen);
                    } else {
                        places.resize(size(seen - first));
                        std::iota(places.begin(), places.end(), first);
                    }
                    std::vector<double> scores;
                    double largest = -1e300;
                    for (const std::int64_t p : places) {
                        double dot = 0.0;
                        for (std::int64_t i = 0; i < d; ++i)
                            dot += static_cast<double>(q[i]) * kv_at(operands.keys[0], task.kv, (entry + p) * d + i);
                        scores.push_back(dot * scale);
                        largest = std::max(largest, scores.back());
                    }
                    double total = task.sinks ? std::exp(double{operands.gain[size(head)]} - largest) : 0.0;
                    for (double& score : scores) total += score = std::exp(score - largest);
                    for (const std::int64_t i : spread(widths.value, 8)) {
                        double sum = 0.0;
                        for (std::size_t at = 0; at < places.size(); ++at)
                            sum += scores[at] * kv_at(values, task.kv, (entry + places[at]) * widths.value_pitch() + i);
                        samples.push_back({(row * task.query_heads + head) * widths.value + i, sum / total});
                    }
                }
            }
            break;
        }
        case TaskKind::norm:
            for (const std::int64_t row : spread(task.rows, 3)) {
                double square = 0.0;
                for (std::int64_t i = 0; i < task.width; ++i) square += std::pow(double{x[row * task.width + i]}, 2.0);
                const double scale = 1.0 / std::sqrt(square / static_cast<double>(task.width) + 1e-5);
                for (const std::int64_t i : spread(task.width, 64))
                    samples.push_back({row * task.width + i, x[row * task.width + i] * scale * operands.gain[size(i)]});
            }
            break;
        case TaskKind::layer_norm:
            for (const std::int64_t row : spread(task.rows, 3)) {
                const float* own = x + row * task.width;
                const auto count = static_cast<double>(task.width);
                double mean = 0.0;
                for (std::int64_t i = 0; i < task.width; ++i) mean += double{own[i]} / count;
                double square = 0.0;
                for (std::int64_t i = 0; i < task.width; ++i) square += std::pow(double{own[i]} - mean, 2.0);
                const double scale = 1.0 / std::sqrt(square / count + 1e-5);
                for (const std::int64_t i : spread(task.width, 64)) {
                    samples.push_back({row * task.width + i, (double{own[i]} - mean) * scale * operands.gain[size(i)] +
                                                                 double{operands.bias[size(i)]}});
                }
            }
            break;
        case TaskKind::gated_norm:
            for (const std::int64_t row : spread(task.rows, 3)) {
                const float* own = x + row * 2 * task.width;
                for (const std::int64_t i : spread(task.width, 32)) {
                    const auto gated = [&](std::int64_t at) {
                        const double gate = own[task.width + at];
                        return double{own[at]} * gate / (1.0 + std::exp(-gate));
                    };
                    const bool whole = task.run == task.width;
                    double square = 0.0;
                    for (std::int64_t j = i / task.run * task.run; j < (i / task.run + 1) * task.run; ++j)
                        square += std::pow(whole ? gated(j) : double{own[j]}, 2.0);
                    const double scale = 1.0 / std::sqrt(square / static_cast<double>(task.run) + 1e-5);
                    samples.push_back(
                        {row * task.width + i, gated(i) * scale * double{operands.gain[size(i % task.run)]}});
                }
            }
            break;
        case TaskKind::convolution:
            for (const std::int64_t row : spread(task.rows, 5)) {
                const std::int64_t token = row % task.tokens;
                const std::int64_t before = task.taps - 1;
                const float* past = operands.keys[0].as<float>() + row / task.tokens * before * task.width;
                for (const std::int64_t i : spread(task.width, 32)) {
                    double sum = operands.bias[size(i)];
                    for (std::int64_t tap = 0; tap < task.taps; ++tap) {
                        const std::int64_t at = token - before + tap;
                        const double input =
                            at < 0 ? past[(before + at) * task.width + i] : x[(row - token + at) * task.width + i];
                        sum += double{operands.gain[size(tap * task.width + i)]} * input;
                    }
                    samples.push_back({row * task.width + i, task.plain ? sum : sum / (1.0 + std::exp(-sum))});
                }
            }
            break;
        case TaskKind::state_space:
        case TaskKind::delta_rule:
            for (const std::int64_t sequence : spread(task.batch, 3)) {
                for (const std::int64_t head : spread(task.query_heads, 3)) {
                    for (const std::int64_t i : spread(task.value_dim, 16)) {
                        const auto found = task.kind == TaskKind::state_space
                                               ? after_space(operands, sequence, head, i)
                                               : after_delta(operands, sequence, head, i);
                        for (const std::int64_t token : spread(task.tokens, 5)) {
                            const std::int64_t row = sequence * task.tokens + token;
                            samples.push_back(
                                {(row * task.query_heads + head) * task.value_dim + i, found[size(token)]});
                        }
                    }
                }
            }
            break;
        case TaskKind::selective_scan:
            for (const std::int64_t sequence : spread(task.batch, 3)) {
                for (const std::int64_t channel : spread(task.width, 48)) {
                    const auto found = after_scan(operands, sequence, channel);
                    for (const std::int64_t token : spread(task.tokens, 5))
                        samples.push_back(
                            {(sequence * task.tokens + token) * task.width + channel, found[size(token)]});
                }
            }
            break;
        case TaskKind::add:  // y += x, with y = x before
            for (const std::int64_t i : spread(task.rows * task.width, 256)) samples.push_back({i, 2.0 * double{x[i]}});
            break;
        case TaskKind::add_two:  // y += x and what lies behind it, with y = x before
            for (const std::int64_t i : spread(task.rows * task.width, 256))
                samples.push_back({i, 2.0 * double{x[i]} + double{x[task.rows * task.width + i]}});
            break;
        case TaskKind::plain_activation:
            for (const std::int64_t i : spread(task.rows * task.width, 256)) {
                const double value = x[i];
                const double u = std::sqrt(2.0 / std::numbers::pi) * (value + 0.044715 * value * value * value);
                samples.push_back({i, 0.5 * value * (1.0 + std::tanh(u))});
            }
            break;
        case TaskKind::multiply:
            for (const std::int64_t row : spread(task.rows, 3)) {
                for (const std::int64_t i : spread(task.width, 64)) {
                    const float* own = x + row * 2 * task.width + i;
                    samples.push_back({row * task.width + i, double{own[0]} * double{own[task.width]}});
                }
            }
            break;
        case TaskKind::index_write:  // what was written is read back
            for (const std::int64_t row : spread(task.rows, 5)) {
                for (const std::int64_t i : spread(task.width, 32))
                    samples.push_back({row * task.width + i, double{x[row * task.width + i]}});
            }
            break;
        case TaskKind::index_scores: {
            const IndexKeys keys = operands.index_keys(0);
            std::vector<float> key(size(d));
            const std::int64_t queries = task.query_heads * d;
            for (const std::int64_t row : spread(task.rows, 3)) {
                const float* shares = x + task.rows * queries + row * task.query_heads;
                const std::int64_t seen = task.context - task.tokens + row % task.tokens + 1;
                for (const std::int64_t place : spread(seen, 32)) {
                    keys.read(row / task.tokens, place, key.data());
                    double score = 0.0;
                    for (std::int64_t head = 0; head < task.query_heads; ++head) {
                        double dot = 0.0;
                        for (std::int64_t i = 0; i < d; ++i)
                            dot += double{x[row * queries + head * d + i]} * double{key[size(i)]};
                        score += double{shares[head]} * std::max(0.0, dot);
                    }
                    samples.push_back({row * task.context + place, score});
                }
            }
            break;
        }
        case TaskKind::output_gate:
            for (const std::int64_t row : spread(task.rows, 3)) {
                const float* own = x + row * (task.width + task.width / task.run);
                for (const std::int64_t i : spread(task.width, 64)) {
                    const double gate = own[task.width + i / task.run];
                    samples.push_back({row * task.width + i, double{own[i]} / (1.0 + std::exp(-gate))});
                }
            }
            break;
        case TaskKind::activation:
            for (const std::int64_t row : spread(task.rows, 3)) {
                for (const std::int64_t i : spread(task.width, 64)) {
                    const double gate = x[row * 2 * task.width + i];
                    const double up = x[row * 2 * task.width + task.width + i];
                    samples.push_back({row * task.width + i, gate / (1.0 + std::exp(-gate)) * up});
                }
            }
            break;
        case TaskKind::rotary: {
            const std::int64_t width = fused_heads(task) * d;
            for (const std::int64_t row : spread(task.rows, 3)) {
                const std::int64_t position = task.context - task.tokens + row % task.tokens;
                for (const std::int64_t head : spread(task.query_heads + task.kv_heads, 3)) {
                    for (const std::int64_t i : spread(d / 2, 8)) {
                        const double angle = static_cast<double>(position) *
                                             std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(d));
                        const std::int64_t at = row * width + head * d + i;
                        const double a = x[at];
                        const double b = x[at + d / 2];
                        samples.push_back({at, a * std::cos(angle) - b * std::sin(angle)});
                        samples.push_back({at + d / 2, b * std::cos(angle) + a * std::sin(angle)});
                    }
                }
            }
            break;
        }
        case TaskKind::kv_write: {  // what was written is read back into y, at the places of K and V in the fused rows
            const std::int64_t width = fused_heads(task) * d;
            for (const std::int64_t row : spread(task.rows, 3)) {
                for (const std::int64_t i : spread(width - task.query_heads * d, 64)) {
                    const std::int64_t at = row * width + task.query_heads * d + i;
                    samples.push_back({at, task.kv == DType::bf16 ? from_bf16(to_bf16(x[at])) : x[at]});
                }
            }
            break;
        }
        case TaskKind::embedding:
            for (const std::int64_t row : spread(task.rows, 3)) {
                for (const std::int64_t i : spread(task.width, 64)) {
                    const std::int64_t at = operands.tokens[size(row)] * task.width + i;
                    samples.push_back({row * task.width + i, from_bf16(operands.tables[0].as<Bf16>()[at])});
                }
            }
            break;
        case TaskKind::sampling:
            for (std::int64_t row = 0; row < task.rows; ++row) {
                std::int64_t best = 0;
                for (std::int64_t i = 1; i < task.width; ++i) {
                    if (x[row * task.width + i] > x[row * task.width + best]) best = i;
                }
                samples.push_back({row, static_cast<double>(best)});
            }
            break;
        case TaskKind::choice:
            for (const std::int64_t row : spread(task.rows, 16)) {
                const float* scores = x + row * task.width;
                std::vector<std::int64_t> order(size(task.width));
                std::iota(order.begin(), order.end(), 0);
                std::ranges::stable_sort(order, std::greater<>(), [&](std::int64_t i) { return scores[i]; });
                double total = 0.0;
                for (std::int64_t i = 0; i < task.chosen; ++i) total += std::exp(double{scores[order[size(i)]]});
                for (std::int64_t i = 0; i < task.chosen; ++i) {
                    const std::int64_t expert = order[size(i)];
                    const std::int64_t at = 2 * (row * task.chosen + i);
                    samples.push_back({at, static_cast<double>(expert)});
                    samples.push_back(
                        {at + 1, std::exp(double{scores[expert]}) / total * static_cast<double>(task.width)});
                }
            }
            break;
        case TaskKind::expert_sum:
            for (const std::int64_t row : spread(task.rows, 3)) {
                for (const std::int64_t i : spread(task.width, 64)) {
                    double sum = 0.0;
                    for (std::int64_t at = row * task.chosen; at < (row + 1) * task.chosen; ++at)
                        sum += double{operands.shares[size(at)]} * x[operands.places[size(at)] * task.width + i];
                    samples.push_back({row * task.width + i, sum});
                }
            }
            break;
    }
    return samples;
}

double tolerance(const Task& task) {
    switch (task.kind) {
        case TaskKind::product:
        case TaskKind::absorption:
            // Activations are rounded to the type that meets the weights: 2^-9 for bf16, some 2^-8 of the largest for
            // int8.
            return task.weights == WeightFormat::fp32 ? 1e-4 : task.weights == WeightFormat::bf16 ? 1e-2 : 3e-2;
        case TaskKind::attention:
            return task.kv == DType::bf16 ? 2e-2 : 1e-3;
        case TaskKind::index_write:  // to int8, whose last digit is 2^-7 of the largest
            return 1e-2;
        case TaskKind::index_scores:
            return 3e-2;
        default:
            return 1e-4;
    }
}

double largest_error(std::span<const Sample> samples, std::span<const float> y) {
    double square = 0.0;
    double largest = 0.0;
    for (const Sample& sample : samples) {
        const double found = y[size(sample.index)];
        if (!std::isfinite(found)) return std::numeric_limits<double>::infinity();
        square += sample.value * sample.value;
        largest = std::max(largest, std::fabs(found - sample.value));
    }
    const double typical = std::sqrt(square / static_cast<double>(std::max<std::size_t>(samples.size(), 1)));
    return typical > 0.0 ? largest / typical : largest;
}

}  // namespace roofline::bench
