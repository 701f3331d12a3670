// Our own kernels: everything a Llama-like step needs, in fp32, bf16, int8 and int4.
#include <algorithm>

#include <fmt/format.h>

#include "roofline/bench/backend.hpp"
#include "roofline/bench/index_scores.hpp"
#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/routing.hpp"
#include "roofline/bench/kernels/rowwise.hpp"
#include "roofline/bench/kernels/selective_scan.hpp"
#include "roofline/bench/kernels/state_space.hpp"

namespace roofline::bench {
namespace {

class OwnKernel final : public Kernel {
  public:
    OwnKernel(Operands& operands, Threads& threads) : operands_(operands), threads_(threads) {
        const Task& task = operands.task;
        rows_ = {task.batch,    task.tokens, task.context - task.tokens, task.query_heads, task.kv_heads,
                 task.head_dim, task.latent};
        if (task.kind == TaskKind::rotary) {
            turns_.resize(static_cast<std::size_t>(task.tokens * task.head_dim));
            rotary_table(turns_.data(), rows_.position, task.tokens, task.head_dim);
        }
        best_.resize(static_cast<std::size_t>(task.kind == TaskKind::sampling ? task.rows : 0));
        if (task.kind == TaskKind::expert_sum) {
            routing_.chosen = task.chosen;
            routing_.places = operands.places;
            routing_.shares = operands.shares;
            routing_.rows.resize(operands.places.size());
        }
    }

    /// Weights and a cache in tiles are written before anything is timed, as an engine's own would be.
    Result<void> lay_out() {
        const Task& task = operands_.task;
        if (!operands_.weights.empty() && products_.in_tiles(task.weights)) {
            for (const WeightMatrix& matrix : operands_.weights) {
                auto laid = matrix.in_tiles(products_.tiles, threads_);
                if (!laid) return std::unexpected(laid.error());
                weights_.push_back(std::move(*laid));
            }
        }
        if (keeps_state(task) || task.kind == TaskKind::convolution) {
            // What is written over; the states at hand stay as they are, for whoever checks.
            for (const Memory& state : operands_.keys) {
                auto own = Memory::reserve(state.bytes());
                if (!own) return std::unexpected(own.error());
                std::copy_n(state.data(), state.bytes(), own->data());
                keys_.push_back(std::move(*own));
            }
            return {};
        }
        layout_ = best_attention(head_widths(task)).layout(task.kv, head_widths(task));
        room_ = kv_room(layout_, task.context);
        if (layout_ == KvLayout::rows) return {};
        if (task.kind != TaskKind::attention && task.kind != TaskKind::kv_write) return {};
        const std::int64_t heads = task.batch * task.kv_heads;
        for (std::size_t copy = 0; copy < operands_.keys.size(); ++copy) {
            auto keys = Memory::reserve(heads * room_ * task.head_dim * 2);
            if (!keys) return std::unexpected(keys.error());
            auto values = Memory::reserve(heads * room_ * task.head_dim * 2);
            if (!values) return std::unexpected(values.error());
            lay_keys(operands_.keys[copy].as<Bf16>(), keys->as<Bf16>(), layout_, heads, task.context, task.head_dim,
                     threads_);
            lay_values(operands_.values[copy].as<Bf16>(), values->as<Bf16>(), layout_, heads, task.context,
                       task.head_dim, threads_);
            keys_.push_back(std::move(*keys));
            values_.push_back(std::move(*values));
        }
        return {};
    }

    void run(std::size_t copy) override {
        const Task& task = operands_.task;
        const float* x = operands_.x.data();
        float* y = operands_.y.data();
        switch (task.kind) {
            case TaskKind::product: {
                for (std::int64_t expert = 0; expert < task.experts; ++expert) {
                    const std::int64_t row = first_row(task, expert);
                    call(copy, expert, first_row(task, expert + 1) - row, task.n, task.k, y + row * task.n);
                }
                multiply_all(x);
                break;
            }
            case TaskKind::absorption: {
                const std::int64_t heads = task.query_heads;
                const std::int64_t rows = task.rows;
                for (std::int64_t head = 0; head < heads; ++head)
                    call(copy, head, rows, task.k, task.head_dim, y + head * rows * task.k);
                multiply_all(x);
                float* results = y + heads * rows * task.k;
                for (std::int64_t head = 0; head < heads; ++head)
                    call(copy, heads + head, rows, task.value_dim, task.k, results + head * rows * task.value_dim);
                multiply_all(x + heads * rows * task.head_dim);
                break;
            }
            case TaskKind::attention: {
                const AttentionCall call{.batch = task.batch,
                                         .tokens = task.tokens,
                                         .query_heads = task.query_heads,
                                         .kv_heads = task.kv_heads,
                                         .widths = head_widths(task),
                                         .context = task.context,
                                         .capacity = room_,
                                         .window = task.window,
                                         .kv = task.kv,
                                         .q = x,
                                         .keys = keys(copy).data(),
                                         .values = task.latent ? keys(copy).data() : values(copy).data(),
                                         .sinks = task.sinks ? operands_.gain.data() : nullptr,
                                         .out = y};
                if (task.chosen > 0)
                    attend_to_chosen(call, operands_.places.data(), task.chosen, best_attention(call.widths), threads_,
                                     chosen_);
                else
                    attend(call, best_attention(call.widths), threads_, scratch_);
                break;
            }
            case TaskKind::norm:
                rms_norm(x, operands_.gain.data(), y, task.rows, task.width, threads_);
                break;
            case TaskKind::layer_norm:
                layer_norm(x, operands_.gain.data(), operands_.bias.data(), y, task.rows, task.width, threads_);
                break;
            case TaskKind::gated_norm:
                gated_norm(x, operands_.gain.data(), y, task.rows, task.width, task.run, threads_);
                break;
            case TaskKind::convolution:
                convolve(x, operands_.gain.data(), operands_.bias.data(), keys(copy).as<float>(), y,
                         {task.batch, task.tokens, task.width, task.taps, task.plain}, threads_);
                break;
            case TaskKind::state_space:
                state_space_step(x, operands_.gain.data(), operands_.bias.data(), keys(copy).as<float>(), y,
                                 state_shape(task), threads_);
                break;
            case TaskKind::delta_rule:
                delta_step(x, operands_.gain.data(), keys(copy).as<float>(), y, state_shape(task), threads_);
                break;
            case TaskKind::selective_scan:
                selective_scan(x, operands_.gain.data(), operands_.bias.data(), keys(copy).as<float>(), y,
                               selective_shape(task), threads_);
                break;
            case TaskKind::add:
                add(y, x, task.rows, task.width, threads_);
                break;
            case TaskKind::add_two:
                add_two(y, x, x + task.rows * task.width, task.rows, task.width, threads_);
                break;
            case TaskKind::activation:
                silu_multiply(x, y, task.rows, task.width, threads_);
                break;
            case TaskKind::multiply:
                multiply_rows({x, 2 * task.width}, {x + task.width, 2 * task.width}, y, task.rows, task.width,
                              threads_);
                break;
            case TaskKind::output_gate:
                open_gates(x, y, task.rows, task.width, task.run, threads_);
                break;
            case TaskKind::plain_activation:
                gelu(x, y, task.rows, task.width, threads_);
                break;
            case TaskKind::rotary:
                if (!turned_) operands_.y = operands_.x;
                turned_ = true;
                rotary(y, turns_.data(), rows_, threads_);
                break;
            case TaskKind::kv_write:
                kv_write(x, keys(copy).data(), task.latent ? nullptr : values(copy).data(), room_, task.kv, layout_,
                         rows_, threads_);
                break;
            case TaskKind::index_write:
                write_index_keys({x, task.width}, operands_.index_keys(copy), task.batch, task.tokens, 0, threads_);
                break;
            case TaskKind::index_scores:
                index_scores_.find(x, {x + task.rows * task.query_heads * task.head_dim, task.query_heads},
                                   operands_.index_keys(copy),
                                   {task.batch, task.tokens, task.query_heads, task.context}, y, threads_);
                break;
            case TaskKind::embedding:
                gather(operands_.tables[0].as<Bf16>(), operands_.tokens.data(), y, task.rows, task.width, threads_);
                break;
            case TaskKind::sampling:
                argmax(x, best_.data(), task.rows, task.width, threads_);
                break;
            case TaskKind::choice:
                route(x, task.rows, task.width, task.chosen, routing_, threads_);
                break;
            case TaskKind::expert_sum:
                combine_rows(x, routing_, y, task.width, threads_);
                break;
        }
    }

    void collect() override {
        const Task& task = operands_.task;
        if (task.kind == TaskKind::sampling) {
            for (std::size_t i = 0; i < best_.size(); ++i) operands_.y[i] = static_cast<float>(best_[i]);
        }
        if (task.kind == TaskKind::choice) {
            const auto& begins = routing_.begins;
            for (std::size_t i = 0; i < routing_.places.size(); ++i) {
                const auto expert =
                    std::upper_bound(begins.begin(), begins.end(), routing_.places[i]) - begins.begin() - 1;
                operands_.y[2 * i] = static_cast<float>(expert);
                operands_.y[2 * i + 1] = routing_.shares[i] * static_cast<float>(task.width);
            }
        }
        for (std::int64_t row = 0; task.kind == TaskKind::index_write && row < task.rows; ++row)
            operands_.index_keys(0).read(row / task.tokens, row % task.tokens, operands_.y.data() + row * task.width);
        if (task.kind != TaskKind::kv_write) return;
        const std::int64_t d = task.head_dim;
        for (std::int64_t row = 0; row < task.rows; ++row) {
            float* to = operands_.y.data() + row * rows_.width() + task.query_heads * d;
            for (std::int64_t head = 0; head < fused_heads(task) - task.query_heads; ++head) {
                const bool value = head >= task.kv_heads;
                const Memory& memory = value ? values(0) : keys(0);
                const auto place = value ? value_place : key_place;
                const std::int64_t position = rows_.position + row % task.tokens;
                const std::int64_t base = (row / task.tokens * task.kv_heads + head % task.kv_heads) * room_ * d;
                for (std::int64_t i = 0; i < d; ++i) {
                    const std::int64_t at = base + place(layout_, position, i, d);
                    to[head * d + i] =
                        task.kv == DType::bf16 ? from_bf16(memory.as<Bf16>()[at]) : memory.as<float>()[at];
                }
            }
        }
    }

  private:
    /// One more product to be run with those that were asked for since the last.
    void call(std::size_t copy, std::int64_t matrix, std::int64_t m, std::int64_t n, std::int64_t k, float* y) {
        const auto& matrices = weights_.empty() ? operands_.weights : weights_;
        const auto each = static_cast<std::size_t>(matrices_of(operands_.task));
        calls_.push_back({.m = m,
                          .n = n,
                          .k = k,
                          .weights = matrices[copy * each + static_cast<std::size_t>(matrix)].view(),
                          .y = y});
    }
    /// Narrowing and packing x is part of it: a step has to do it too.
    void multiply_all(const float* x) {
        activations_.prepare(x, calls_, products_, threads_);
        multiply(calls_, products_, threads_);
        calls_.clear();
    }

    Memory& keys(std::size_t copy) { return keys_.empty() ? operands_.keys[copy] : keys_[copy]; }
    Memory& values(std::size_t copy) { return values_.empty() ? operands_.values[copy] : values_[copy]; }

    Operands& operands_;
    Threads& threads_;
    const ProductKernels& products_ = best_products();
    Activations activations_;
    std::vector<ProductCall> calls_;
    AttentionScratch scratch_;
    ChosenScratch chosen_;
    IndexScores index_scores_;
    KvLayout layout_ = KvLayout::rows;
    std::int64_t room_ = 0;
    std::vector<WeightMatrix> weights_;  // in tiles; none where the kernels take rows
    std::vector<Memory> keys_;           // likewise; states
    std::vector<Memory> values_;
    QkvRows rows_;
    std::vector<float> turns_;
    std::vector<std::int32_t> best_;
    Routing routing_;
    bool turned_ = false;
};

class Own final : public Backend {
  public:
    std::string name() const override { return "own"; }
    std::string describe() const override {
        return fmt::format("own kernels, {}; attention {}", best_products().name,
                           best_attention(HeadWidths::same(128)).name);
    }
    Result<void> available() override { return {}; }

    std::optional<std::string> refuses(const Task& task) const override {
        if (task.kind == TaskKind::product || task.kind == TaskKind::absorption) {
            if (best_products().of(task.weights) == nullptr) return unread_by("processor", task.weights);
            const std::int64_t grain = std::max(grain_of(task.weights), grain_of(task.others.format));
            for (const std::int64_t k : {task.k, task.kind == TaskKind::absorption ? task.head_dim : 0}) {
                if (k % grain != 0) return fmt::format("k = {} is no multiple of {}", k, grain);
            }
        }
        if (task.kind == TaskKind::attention || task.kind == TaskKind::kv_write) {
            if (!kept_by_processors(task.kv))
                return fmt::format(
                    "no processor kernel keeps a KV cache in {}; --kv-cache-dtype bf16 asks for one that is kept",
                    roofline::name(task.kv));
            for (const std::int64_t width : {task.head_dim, value_width(task)}) {
                if (width % attention_grain != 0)
                    return fmt::format("heads of {} are no multiple of {}", width, attention_grain);
            }
            if (task.query_heads / task.kv_heads > 256) return "more than 256 query heads share a KV head";
        }
        const bool indexes = task.kind == TaskKind::index_write || task.kind == TaskKind::index_scores;
        if (indexes && task.head_dim % grain_of(WeightFormat::int8) != 0)
            return fmt::format("an indexer's keys of {} are no multiple of {}", task.head_dim,
                               grain_of(WeightFormat::int8));
        if (task.kind == TaskKind::selective_scan && task.width % SelectiveShape::abreast != 0)
            return fmt::format("{} channels are no multiple of {}", task.width, SelectiveShape::abreast);
        return std::nullopt;
    }

    Result<std::unique_ptr<Kernel>> prepare(Operands& operands, Threads& threads) override {
        auto kernel = std::make_unique<OwnKernel>(operands, threads);
        if (auto laid = kernel->lay_out(); !laid) return std::unexpected(laid.error());
        return kernel;
    }
};

}  // namespace

std::unique_ptr<Backend> own_backend() {
    return std::make_unique<Own>();
}

}  // namespace roofline::bench
