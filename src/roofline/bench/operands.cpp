#include "roofline/bench/operands.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace roofline::bench {
namespace {

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

std::vector<float> random_floats(std::int64_t count, std::uint64_t seed) {
    std::vector<float> values(size(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = random_value(seed + i);
    return values;
}

}  // namespace

void Operands::poison() {
    std::fill(y.begin(), y.end(), std::numeric_limits<float>::quiet_NaN());
}

HeadWidths head_widths(const Task& task) {
    return {task.head_dim, value_width(task), task.latent};
}

SelectiveShape selective_shape(const Task& task) {
    return {task.batch, task.width, task.head_dim, task.tokens};
}

StateShape state_shape(const Task& task) {
    return {task.batch, task.query_heads, task.kv_heads, task.head_dim, task.value_dim, task.tokens};
}

namespace {

/// How many numbers go in and come out, weights and cache aside.
struct Numbers {
    std::int64_t in;
    std::int64_t out;
};
Numbers numbers_of(const Task& task) {
    const std::int64_t values = task.rows * task.width;
    const std::int64_t heads = task.rows * fused_heads(task) * task.head_dim;
    const std::int64_t queries = task.batch * task.tokens * task.query_heads;
    switch (task.kind) {
        case TaskKind::product:
            return {task.m * task.k, task.m * task.n};
        case TaskKind::absorption: {
            const std::int64_t of_heads = task.rows * task.query_heads;
            return {of_heads * (task.head_dim + task.k), of_heads * (task.k + task.value_dim)};
        }
        case TaskKind::attention:
            return {queries * task.head_dim, queries * value_width(task)};
        case TaskKind::rotary:
        case TaskKind::kv_write:
            return {heads, heads};
        case TaskKind::state_space:
            return {task.rows * state_space_width(state_shape(task)), values};
        case TaskKind::delta_rule:
            return {task.rows * delta_width(state_shape(task)), values};
        case TaskKind::selective_scan:
            return {task.rows * selective_shape(task).width(), values};
        case TaskKind::activation:
        case TaskKind::multiply:
        case TaskKind::add_two:
        case TaskKind::gated_norm:
            return {2 * values, values};
        case TaskKind::index_scores:  // a score of every entry
            return {values, task.rows * task.context};
        case TaskKind::output_gate:
            return {values + values / task.run, values};
        case TaskKind::sampling:
            return {values, task.rows};
        case TaskKind::embedding:
            return {0, values};
        case TaskKind::choice:  // out: an expert and its share, times the number of experts
            return {values, 2 * task.rows * task.chosen};
        case TaskKind::expert_sum:
            return {task.chosen * values, values};
        default:
            return {values, values};
    }
}

std::int64_t gains_of(const Task& task) {
    if (task.kind == TaskKind::selective_scan) return task.width * task.head_dim;
    if (task.sinks || keeps_state(task)) return task.query_heads;
    return task.kind == TaskKind::convolution ? task.taps * task.width : task.width;
}

struct MatrixShape {
    std::int64_t n;
    std::int64_t k;
};
std::vector<MatrixShape> shapes_of(const Task& task) {
    if (task.kind == TaskKind::product) return {size(task.experts), {task.n, task.k}};
    if (task.kind != TaskKind::absorption) return {};
    std::vector<MatrixShape> shapes(size(task.query_heads), {task.k, task.head_dim});
    shapes.resize(size(2 * task.query_heads), {task.value_dim, task.k});
    return shapes;
}

/// Random floats, written as a step would.
void fill_index_keys(Operands& operands, std::size_t copy, Threads& threads) {
    const Task& task = operands.task;
    const IndexKeys keys = operands.index_keys(copy);
    const std::vector<float> rows =
        random_floats(task.batch * task.context * task.head_dim, static_cast<std::uint64_t>(copy + 1) << 40U);
    write_index_keys({rows.data(), task.head_dim}, keys, task.batch, task.context, 0, threads);
}

/// Entries of each row that sees more, in rising order: every one as likely as another.
void choose_at_random(Operands& operands) {
    const Task& task = operands.task;
    operands.places.assign(size(task.rows * task.chosen), 0);
    for (std::int64_t row = 0; row < task.rows; ++row) {
        const std::int64_t seen = task.context - task.tokens + row % task.tokens + 1;
        std::int64_t wanted = task.chosen;
        std::int64_t* to = operands.places.data() + row * task.chosen;
        for (std::int64_t place = 0; place < seen && seen >= task.chosen; ++place) {
            const auto chance = mixed(static_cast<std::uint64_t>(row * task.context + place)) %
                                static_cast<std::uint64_t>(seen - place);
            if (static_cast<std::int64_t>(chance) < wanted) *to++ = place, --wanted;
        }
    }
}

}  // namespace

IndexKeys Operands::index_keys(std::size_t copy) const {
    return {keys[copy].as<std::int8_t>(), values[copy].as<float>(), task.head_dim, IndexKeys::room(task.context),
            IndexKeys::best_tiles()};
}

Result<Operands> make_operands(const Task& task, std::int64_t rotate_past, Threads& threads) {
    Operands operands;
    operands.task = task;
    const Numbers numbers = numbers_of(task);
    std::int64_t one = 0;     // that is there in copies
    std::int64_t keys = 0;    // or latent entries
    std::int64_t values = 0;  // where they are apart from these
    const std::vector<MatrixShape> matrices = shapes_of(task);
    for (const MatrixShape& shape : matrices)
        one += WeightMatrix::bytes(shape.n, shape.k, StoredAs{task.weights, task.others});
    if (task.kind == TaskKind::attention || task.kind == TaskKind::kv_write) {
        const std::int64_t entries = task.batch * task.kv_heads * task.context;
        keys = entries * task.head_dim * bits(task.kv) / 8;
        if (!task.latent) values = entries * value_width(task) * bits(task.kv) / 8;
    }
    if (keeps_state(task)) keys = task.batch * task.query_heads * task.head_dim * task.value_dim * 4;
    if (task.kind == TaskKind::convolution) keys = task.batch * (task.taps - 1) * task.width * 4;
    if (task.kind == TaskKind::index_scores || task.kind == TaskKind::index_write) {
        keys = task.batch * IndexKeys::room(task.context) * task.head_dim;
        values = task.batch * IndexKeys::room(task.context) * 4;  // scales
    }
    if (task.kind == TaskKind::attention || task.kind == TaskKind::index_scores || keeps_state(task))
        one = keys + values;
    // In fp32; x of a product again, narrowed and packed.
    const std::int64_t around =
        4 * (numbers.in * (matrices.empty() ? 1 : 2) + numbers.out) + (one > 0 ? 0 : keys + values);
    const std::int64_t free = free_memory();
    const std::int64_t room = std::max<std::int64_t>(0, free - around);
    std::int64_t copies = one > 0 ? std::clamp<std::int64_t>((rotate_past + one - 1) / one, 1, 512) : 1;
    if (one > 0) copies = std::min(copies, std::max<std::int64_t>(1, room / 2 / one));  // fewer is better than none
    if (one * copies + around > free / 10 * 9) {
        return std::unexpected(
            Problem{fmt::format("needs {:.1f} GB of memory, and {:.1f} GB are free",
                                static_cast<double>(one * copies + around) / 1e9, static_cast<double>(free) / 1e9),
                    true});
    }
    for (std::int64_t copy = 0; copy < copies; ++copy) {
        const auto seed = static_cast<std::uint64_t>(copy + 1) << 40U;
        for (std::size_t i = 0; i < matrices.size(); ++i) {
            const std::uint64_t own = seed + (static_cast<std::uint64_t>(i) << 52U);
            auto matrix =
                WeightMatrix::random(matrices[i].n, matrices[i].k, StoredAs{task.weights, task.others}, own, threads);
            if (!matrix) return std::unexpected(matrix.error());
            operands.weights.push_back(std::move(*matrix));
        }
        if (matrices.empty()) {
            const auto make = [&](std::vector<Memory>& side, std::int64_t bytes, std::uint64_t own) -> Result<void> {
                if (bytes == 0) return {};
                auto memory = Memory::reserve(bytes);
                if (!memory) return std::unexpected(memory.error());
                fill_random(*memory, task.kind == TaskKind::convolution ? DType::fp32 : task.kv, own, threads);
                side.push_back(std::move(*memory));
                return {};
            };
            if (auto made = make(operands.keys, keys, seed); !made) return std::unexpected(made.error());
            if (auto made = make(operands.values, values, seed + (1U << 30U)); !made)
                return std::unexpected(made.error());
        }
    }
    if (task.kind == TaskKind::embedding) {
        constexpr std::int64_t table_rows = 4096;
        auto table = Memory::reserve(table_rows * task.width * 2);
        if (!table) return std::unexpected(table.error());
        fill_random(*table, DType::bf16, 3, threads);
        operands.tables.push_back(std::move(*table));
        for (std::int64_t row = 0; row < task.rows; ++row)
            operands.tokens.push_back(static_cast<std::int32_t>(mixed(static_cast<std::uint64_t>(row)) % table_rows));
    }
    if (task.kind == TaskKind::expert_sum) {
        // In no order, as experts leave them.
        const std::int64_t count = task.rows * task.chosen;
        operands.places.resize(size(count));
        std::iota(operands.places.begin(), operands.places.end(), 0);
        for (std::int64_t i = count - 1; i > 0; --i) {
            const auto other = mixed(static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(i + 1);
            std::swap(operands.places[size(i)], operands.places[other]);
        }
        operands.shares = random_floats(count, 7U << 20U);
        for (std::int64_t row = 0; row < task.rows; ++row) {
            float* own = operands.shares.data() + row * task.chosen;
            std::transform(own, own + task.chosen, own, [](float share) { return std::exp(share); });
            const float total = std::accumulate(own, own + task.chosen, 0.0F);
            std::transform(own, own + task.chosen, own, [&](float share) { return share / total; });
        }
    }
    if (task.kind == TaskKind::index_scores) {
        for (std::size_t copy = 0; copy < operands.keys.size(); ++copy) fill_index_keys(operands, copy, threads);
    }
    if (task.kind == TaskKind::attention && task.chosen > 0) choose_at_random(operands);
    operands.x = random_floats(numbers.in, 1U << 20U);
    operands.gain = random_floats(gains_of(task), 5U << 20U);
    if (keeps_state(task)) {
        for (float& rate : operands.gain) rate *= rate;  // states decay
    }
    if (task.kind == TaskKind::layer_norm || task.kind == TaskKind::convolution || keeps_state(task))
        operands.bias = random_floats(task.width, 7U << 20U);
    operands.y.resize(size(numbers.out));
    operands.poison();
    return operands;
}

}  // namespace roofline::bench
