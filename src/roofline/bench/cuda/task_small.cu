// The small operators. Their activations stay where the operator before left them, in the L2 if they fit: one buffer.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <optional>
#include <random>

#include "roofline/bench/cuda/elementwise.cuh"
#include "roofline/bench/cuda/reference.hpp"
#include "roofline/bench/cuda/routing.cuh"
#include "roofline/bench/cuda/state_reference.hpp"
#include "roofline/bench/cuda/tasks.cuh"

namespace roofline::cuda::kernels {

namespace {

using Values = std::vector<double>;

Values decoded(const std::vector<std::uint16_t>& raw) {
    Values values(raw.size());
    std::transform(raw.begin(), raw.end(), values.begin(), decode_bf16);
    return values;
}

/// Row `row` of a bf16 matrix on the device.
Values row_of(const Memory& memory, int row, int width) {
    return decoded(copied(memory.at<std::uint16_t>() + static_cast<std::size_t>(row) * static_cast<std::size_t>(width),
                          static_cast<std::size_t>(width)));
}

Values normed(const Values& x, const Values& weight) {
    double squares = 0.0;
    for (const double value : x) squares += value * value;
    const double factor = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
    Values y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * factor * weight[i];
    return y;
}

Values layer_normed(const Values& x, const Values& weight, const Values& bias) {
    const auto count = static_cast<double>(x.size());
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / count;
    double squares = 0.0;
    for (const double value : x) squares += (value - mean) * (value - mean);
    const double factor = 1.0 / std::sqrt(squares / count + 1e-5);
    Values y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = (x[i] - mean) * factor * weight[i] + bias[i];
    return y;
}

/// How far shares are from float64; 1e30 where another expert was chosen, where places and panels do not hold each row
/// of an expert once, or where a row is not at its place.
double choice_error(const Routing& routing, const Memory& scores) {
    constexpr double wrong = 1e30;
    const std::size_t count = product_of({routing.rows, routing.chosen});
    const auto choices = copied<int>(routing.choices, count);
    const auto shares = copied<float>(routing.shares, count);
    const auto places = copied<int>(routing.places, count);
    const auto rows_at = copied<int>(routing.rows_at, count);
    Difference difference;
    std::vector<int> begins(static_cast<std::size_t>(routing.experts) + 1, 0);
    for (int row = 0; row < routing.rows; ++row) {
        const Values own = row_of(scores, row, routing.experts);
        std::vector<int> order(own.size());
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, std::greater<>(), [&](int i) { return own[static_cast<std::size_t>(i)]; });
        double total = 0.0;
        for (int i = 0; i < routing.chosen; ++i) {
            total += std::exp(own[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])]);
        }
        for (int i = 0; i < routing.chosen; ++i) {
            const auto at = static_cast<std::size_t>(row * routing.chosen + i);
            const int expert = order[static_cast<std::size_t>(i)];
            if (choices[at] != expert) return wrong;
            difference.add(static_cast<double>(shares[at]), std::exp(own[static_cast<std::size_t>(expert)]) / total);
            ++begins[static_cast<std::size_t>(expert) + 1];
        }
    }
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<bool> taken(count, false);
    for (std::size_t at = 0; at < count; ++at) {
        const auto expert = static_cast<std::size_t>(choices[at]);
        const auto place = static_cast<std::size_t>(places[at]);
        if (places[at] < begins[expert] || places[at] >= begins[expert + 1] || taken[place]) return wrong;
        taken[place] = true;
        if (rows_at[place] != static_cast<int>(at) / routing.chosen) return wrong;
    }
    const auto expected = panels_of(begins, routing.panel_rows);
    if (copied<int>(routing.panel_count, 1).front() != static_cast<int>(expected.size())) return wrong;
    const auto panels = copied<Panel>(routing.panels, expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (panels[i].expert != expected[i].expert || panels[i].first != expected[i].first ||
            panels[i].rows != expected[i].rows) {
            return wrong;
        }
    }
    return difference.relative();
}

/// Keys of a cache in e4m3: each the nearest there is, so within a sixteenth of itself or half of the smallest; as a
/// share of what is allowed for bf16.
double fp8_cache_error(const SmallTask& task, const Memory& cache, const Memory& x, int width) {
    const auto keys = static_cast<std::size_t>(task.kv_heads * task.head_dim);
    double worst = 0.0;
    for (const int row : sample(task.rows, 4)) {
        const Values all = row_of(x, row, width);
        const auto found = copied(cache.at<std::uint8_t>() + static_cast<std::size_t>(row) * keys, keys);
        for (std::size_t i = 0; i < keys; ++i) {
            const double given = all[static_cast<std::size_t>(task.heads * task.head_dim) + i];
            const double allowed = std::max(std::abs(given) / 16.0, std::ldexp(1.0, -10));
            worst = std::max(worst, std::abs(decode_e4m3(found[i]) - given) / allowed);
        }
    }
    return worst <= 1.0 ? 0.0 : worst;
}

/// A run, and one row of what it should leave in `output`, from what its inputs were before it; or how far off it is.
struct Operator {
    Run run;
    std::function<Values(int)> expected;
    std::function<double()> error;
    const Memory* output = nullptr;
    int output_width = 0;
    double flops = 0.0;
    double bytes = 0.0;
};

}  // namespace

void accept(const Outcome& outcome) {
    if (!(outcome.error <= outcome.tolerance)) {
        throw Failure{"wrong answer: differs from float64 by " + std::to_string(outcome.error) + ", allowed is " +
                      std::to_string(outcome.tolerance) + " (" + outcome.variant + ")"};
    }
}

std::size_t choose(Outcome& outcome, bool check_all, const std::function<double(std::size_t)>& error_of) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < outcome.tried.size(); ++i) {
        if (outcome.tried[i].time > 0.0) order.push_back(i);
    }
    if (order.empty()) throw Failure{"no variant ran"};
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return outcome.tried[a].time < outcome.tried[b].time; });
    std::optional<std::size_t> right;
    for (const std::size_t i : order) {
        if (right && !check_all) break;
        const double error = error_of(i);
        outcome.tried[i].error = error;
        if (!right && error <= outcome.tolerance) right = i;
    }
    const std::size_t chosen = right.value_or(order.front());
    outcome.variant = outcome.tried[chosen].name;
    outcome.error = *outcome.tried[chosen].error;
    accept(outcome);
    return chosen;
}

Outcome run(const Clock& clock, const SmallTask& task, const std::string& backend, double seconds) {
    if (backend != "own") throw Failure{backend + " has no " + task.kind};
    const bool by_heads = task.kind == "rotary" || task.kind == "kv_write";
    const int cached_heads = (task.latent ? 1 : 2) * task.kv_heads;
    const int all_heads = task.heads + cached_heads;
    const bool has_gates = task.kind == "activation" || task.kind == "gated_norm" || task.kind == "output_gate";
    const int width = by_heads ? all_heads * task.head_dim : has_gates ? 2 * task.width : task.width;
    if (task.rows < 1 || width < 1) throw Failure{task.kind + " needs rows and a width"};
    if (width % 8 != 0) throw Failure{task.kind + ": the width must be a multiple of 8, not " + std::to_string(width)};
    if (by_heads && task.head_dim % 16 != 0) throw Failure{task.kind + ": heads must have a multiple of 16 values"};
    const double rows = task.rows;
    const bool of_experts = task.kind == "choice" || task.kind == "expert_sum";
    if (of_experts && task.chosen < 1) throw Failure{task.kind + " needs to know how many experts a row has"};
    const auto values = product_of({task.rows, width, task.kind == "expert_sum" ? task.chosen : 1});
    constexpr int vocabulary = 32768;  // rows of the table that an embedding reads
    constexpr std::uint32_t x_seed = 21;
    const Launch launch{clock.stream(), true};
    const Memory x(values * 2);
    const Memory other(values * 2);
    const Memory to(values * 2);
    const Memory weight(static_cast<std::size_t>(width) * 2);
    const auto refill = [&] {  // what a run changes in place must be fresh before the run that is checked
        fill_random(x.at(), values, Format::bf16, 2.0f, x_seed, clock.stream());
        fill_random(other.at(), values, Format::bf16, 2.0f, 22, clock.stream());
        clock.finish();
    };
    fill_random(weight.at(), static_cast<std::size_t>(width), Format::bf16, 1.0f, 23, clock.stream());
    refill();

    Operator op;
    op.output = &to;
    op.output_width = width;
    Memory table;
    Memory which;
    Memory angles;
    Memory shares;
    std::optional<RoutingMemory> routing;
    if (task.kind == "norm") {
        op.run = [&](int) { norm(to.at(), x.at(), weight.at(), task.rows, width, launch); };
        op.expected = [&](int row) { return normed(row_of(x, row, width), row_of(weight, 0, width)); };
        op.flops = 4.0 * rows * width;
        op.bytes = 4.0 * rows * width + 2.0 * width;
    } else if (task.kind == "layer_norm") {
        op.run = [&](int) { layer_norm(to.at(), x.at(), weight.at(), other.at(), task.rows, width, launch); };
        op.expected = [&](int row) {
            return layer_normed(row_of(x, row, width), row_of(weight, 0, width), row_of(other, 0, width));
        };
        op.flops = 7.0 * rows * width;
        op.bytes = 4.0 * rows * width + 4.0 * width;
    } else if (task.kind == "plain_activation") {
        op.run = [&](int) { gelu(to.at(), x.at(), task.rows, width, launch); };
        op.expected = [&](int row) {
            Values y = row_of(x, row, width);
            for (double& value : y) {
                value *=
                    0.5 *
                    (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (value + 0.044715 * value * value * value)));
            }
            return y;
        };
        op.flops = 8.0 * rows * width;
        op.bytes = 4.0 * rows * width;
    } else if (task.kind == "sampling") {
        which = Memory(static_cast<std::size_t>(task.rows) * sizeof(int));
        shares = Memory(static_cast<std::size_t>(task.rows) * 64 * 8);
        op.run = [&](int) {
            largest(which.at<int>(), x.at(), task.rows, width, shares.at<unsigned long long>(), launch);
        };
        op.error = [&] {
            const auto found = copied(which.at<int>(), static_cast<std::size_t>(task.rows));
            for (int row = 0; row < task.rows; ++row) {
                const Values own = row_of(x, row, width);
                const auto best = std::max_element(own.begin(), own.end()) - own.begin();
                if (found[static_cast<std::size_t>(row)] != static_cast<int>(best)) return 1e30;
            }
            return 0.0;
        };
        op.bytes = 2.0 * rows * width + 4.0 * rows;
    } else if (task.kind == "add_norm") {
        op.run = [&](int) { add_norm(to.at(), x.at(), Addend{other.at()}, {weight.at()}, task.rows, width, launch); };
        std::vector<Values> before;
        const auto checked = sample(task.rows, 4);
        for (const int row : checked) before.push_back(row_of(x, row, width));
        op.expected = [&, before, checked](int row) {
            Values sum =
                before[static_cast<std::size_t>(std::find(checked.begin(), checked.end(), row) - checked.begin())];
            const Values added = row_of(other, row, width);
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += added[i];
            return normed(sum, row_of(weight, 0, width));
        };
        op.flops = 5.0 * rows * width;
        op.bytes = 8.0 * rows * width + 2.0 * width;
    } else if (task.kind == "activation") {
        op.run = [&](int) { silu_product(to.at(), x.at(), task.rows, task.width, launch); };
        op.output_width = task.width;
        op.expected = [&](int row) {
            const Values both = row_of(x, row, width);
            Values y(static_cast<std::size_t>(task.width));
            for (std::size_t i = 0; i < y.size(); ++i) y[i] = both[i] / (1.0 + std::exp(-both[i])) * both[y.size() + i];
            return y;
        };
        op.flops = 5.0 * rows * task.width;
        op.bytes = 6.0 * rows * task.width;
    } else if (task.kind == "output_gate") {
        op.run = [&](int) {
            open_gates(to.at(), x.at(), width, x.at(static_cast<std::size_t>(task.width) * 2), width, task.rows,
                       task.width, launch);
        };
        op.output_width = task.width;
        op.expected = [&](int row) {
            Values y = row_of(x, row, width);
            for (std::size_t i = 0; i < y.size() / 2; ++i) y[i] /= 1.0 + std::exp(-y[y.size() / 2 + i]);
            y.resize(y.size() / 2);
            return y;
        };
        op.flops = 4.0 * rows * task.width;
        op.bytes = 6.0 * rows * task.width;
    } else if (task.kind == "gated_norm") {
        if (task.run < 1) throw Failure{"gated_norm needs to know how many values are normed together"};
        op.run = [&](int) {
            gated_norm({to.at(), x.at(), width, x.at(static_cast<std::size_t>(task.width) * 2), width, weight.at(),
                        task.rows, task.width, task.run},
                       launch);
        };
        op.output_width = task.width;
        op.expected = [&](int row) {
            Values y = row_of(x, row, width);
            const Values gates(y.begin() + task.width, y.end());
            y.resize(gates.size());
            return gated_normed(std::move(y), gates.data(), row_of(weight, 0, task.run));
        };
        op.flops = 8.0 * rows * task.width;
        op.bytes = 6.0 * rows * task.width + 2.0 * task.run;
    } else if (task.kind == "add") {
        op.run = [&](int) { add(to.at(), x.at(), other.at(), task.rows, width, launch); };
        op.expected = [&](int row) {
            Values sum = row_of(x, row, width);
            const Values second = row_of(other, row, width);
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += second[i];
            return sum;
        };
        op.flops = rows * width;
        op.bytes = 6.0 * rows * width;
    } else if (task.kind == "add_two") {
        table = Memory(values * 2);
        fill_random(table.at(), values, Format::bf16, 2.0f, 24, clock.stream());
        op.run = [&](int) { add_two(to.at(), x.at(), other.at(), table.at(), task.rows, width, launch); };
        op.expected = [&](int row) {
            Values sum = row_of(x, row, width);
            const Values second = row_of(other, row, width);
            const Values third = row_of(table, row, width);
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += second[i] + third[i];
            return sum;
        };
        op.flops = 2.0 * rows * width;
        op.bytes = 8.0 * rows * width;
    } else if (task.kind == "embedding") {
        table = Memory(static_cast<std::size_t>(vocabulary) * static_cast<std::size_t>(width) * 2);
        which = Memory(static_cast<std::size_t>(task.rows) * sizeof(int));
        fill_random(table.at(), static_cast<std::size_t>(vocabulary) * static_cast<std::size_t>(width), Format::bf16,
                    1.0f, 24, clock.stream());
        std::vector<int> numbers(static_cast<std::size_t>(task.rows));
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] = static_cast<int>((i * 2654435761u + 12345u) % static_cast<unsigned>(vocabulary));
        }
        must(cudaMemcpy(which.at(), numbers.data(), numbers.size() * sizeof(int), cudaMemcpyHostToDevice), "copy");
        op.run = [&](int) { embed(to.at(), table.at(), which.at<int>(), task.rows, width, launch); };
        op.expected = [&, numbers](int row) { return row_of(table, numbers[static_cast<std::size_t>(row)], width); };
        op.bytes = 4.0 * rows * width + 4.0 * rows;
    } else if (task.kind == "rotary") {
        const auto pairs = static_cast<std::size_t>(task.head_dim / 2);
        constexpr int first = 7;  // position 0 would not turn at all
        angles = Memory(static_cast<std::size_t>(first + task.rows) * pairs * sizeof(float2));
        std::vector<float2> turns(static_cast<std::size_t>(first + task.rows) * pairs);
        for (std::size_t i = 0; i < turns.size(); ++i) {
            const double angle = static_cast<double>(i / pairs) *
                                 std::pow(500000.0, -static_cast<double>(i % pairs) / static_cast<double>(pairs));
            turns[i] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
        }
        must(cudaMemcpy(angles.at(), turns.data(), turns.size() * sizeof(float2), cudaMemcpyHostToDevice), "copy");
        op.run = [&](int) {
            // Where there are no values, all that lies in a row is turned.
            rotate(x.at(), angles.at<float2>(), task.rows, task.rows, first, task.latent ? all_heads : task.heads,
                   task.latent ? 0 : task.kv_heads, task.head_dim, launch);
        };
        op.output = &x;
        std::vector<Values> before;
        const auto checked = sample(task.rows, 4);
        for (const int row : checked) before.push_back(row_of(x, row, width));
        op.expected = [&, turns, before, checked, pairs](int row) {
            Values y =
                before[static_cast<std::size_t>(std::find(checked.begin(), checked.end(), row) - checked.begin())];
            for (int head = 0; head < task.heads + task.kv_heads; ++head) {
                for (std::size_t i = 0; i < pairs; ++i) {
                    double& low = y[static_cast<std::size_t>(head * task.head_dim) + i];
                    double& high = y[static_cast<std::size_t>(head * task.head_dim) + pairs + i];
                    const float2 turn = turns[static_cast<std::size_t>(first + row) * pairs + i];
                    const double turned = low * static_cast<double>(turn.x) - high * static_cast<double>(turn.y);
                    high = high * static_cast<double>(turn.x) + low * static_cast<double>(turn.y);
                    low = turned;
                }
            }
            return y;
        };
        const double turned = rows * (task.heads + task.kv_heads) * task.head_dim;
        op.flops = 3.0 * turned;
        op.bytes = 4.0 * turned + 4.0 * rows * task.head_dim;
    } else if (task.kind == "kv_write") {
        if (task.cache != Format::bf16 && task.cache != Format::fp8) throw Failure{"a cache is bf16 or fp8"};
        // Every row a sequence of its own with room for one token: the cache is then the keys, and after them the
        // values.
        auto* values_at =
            task.latent ? nullptr : to.at(static_cast<std::size_t>(task.rows * task.kv_heads * task.head_dim) * 2);
        op.run = [&, values_at](int) {
            write_cache(to.at(), values_at, x.at(), task.rows, 1, 0, task.heads, task.kv_heads, task.head_dim, 1,
                        task.cache, launch);
        };
        if (task.cache == Format::bf16) {
            op.output_width = task.kv_heads * task.head_dim;
            op.expected = [&](int row) {
                const Values all = row_of(x, row, width);
                const auto from = all.begin() + task.heads * task.head_dim;
                return Values(from, from + task.kv_heads * task.head_dim);
            };
        } else {
            op.error = [&] { return fp8_cache_error(task, to, x, width); };
        }
        op.bytes = rows * cached_heads * task.head_dim * (2.0 + bits(task.cache) / 8.0);
    } else if (task.kind == "choice") {
        routing.emplace(task.rows, width, task.chosen, 1, clock.stream());
        op.run = [&](int) { route(routing->of(0, 8), x.at(), launch); };
        op.error = [&] { return choice_error(routing->of(0, 8), x); };
        op.flops = 4.0 * rows * task.chosen;
        op.bytes = rows * (2.0 * width + 16.0 * task.chosen);
    } else if (task.kind == "expert_sum") {
        // Results in no order, as experts leave them.
        const int count = task.rows * task.chosen;
        std::vector<int> places(static_cast<std::size_t>(count));
        std::vector<float> weights(places.size(), 1.0f / static_cast<float>(task.chosen));
        std::iota(places.begin(), places.end(), 0);
        std::ranges::shuffle(places, std::mt19937(25));
        which = Memory(places.size() * sizeof(int));
        shares = Memory(weights.size() * sizeof(float));
        for (std::size_t i = 0; i < weights.size(); i += 2) weights[i] *= 0.5f;
        must(cudaMemcpy(which.at(), places.data(), which.bytes(), cudaMemcpyHostToDevice), "copy");
        must(cudaMemcpy(shares.at(), weights.data(), shares.bytes(), cudaMemcpyHostToDevice), "copy");
        op.run = [&](int) {
            sum_rows(to.at(), {x.at(), which.at<int>(), shares.at<float>(), task.chosen}, task.rows, width, launch);
        };
        op.expected = [&, places, weights](int row) {
            Values sum(static_cast<std::size_t>(width), 0.0);
            for (int i = row * task.chosen; i < (row + 1) * task.chosen; ++i) {
                const Values part = row_of(x, places[static_cast<std::size_t>(i)], width);
                const auto share = static_cast<double>(weights[static_cast<std::size_t>(i)]);
                for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += share * part[j];
            }
            return sum;
        };
        op.flops = 2.0 * rows * task.chosen * width;
        op.bytes = 2.0 * rows * (task.chosen + 1.0) * width;
    } else {
        throw Failure{"no operator of kind " + task.kind};
    }

    Outcome outcome;
    outcome.flops = op.flops;
    outcome.bytes = op.bytes;
    outcome.tolerance = 4e-3;
    outcome.variant = "16 bytes a thread";
    if (op.output != &x) must(cudaMemsetAsync(op.output->at(), 0xFF, op.output->bytes(), clock.stream()), "poison");
    op.run(0);
    clock.finish();
    if (op.error) {
        outcome.error = op.error();
    } else {
        Difference difference;
        for (const int row : sample(task.rows, 4)) {
            const Values expected = op.expected(row);
            const Values found = row_of(*op.output, row, op.output_width);
            for (std::size_t i = 0; i < expected.size(); ++i) difference.add(found[i], expected[i]);
        }
        outcome.error = difference.relative();
    }
    accept(outcome);
    refill();
    outcome.timing = clock.captured(op.run, 1, seconds);
    return outcome;
}

}  // namespace roofline::cuda::kernels
