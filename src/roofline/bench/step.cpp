#include "roofline/bench/step.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/routing.hpp"
#include "roofline/bench/kernels/rowwise.hpp"

namespace roofline::bench {
namespace {

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

KvLayout layout_of(const ModelShape& shape) {
    return best_attention().layout(shape.kv, HeadWidths::same(shape.head_dim));
}

struct Ffn {
    WeightMatrix gate_up;
    WeightMatrix down;
};

struct Layer {
    WeightMatrix qkv;
    WeightMatrix out;
    WeightMatrix router;    // of a mixture
    std::vector<Ffn> ffns;  // its experts, or one
    Memory keys;
    Memory values;
};

class Model final : public CpuModel {
  public:
    Model(const ModelShape& shape, const StepWork& largest, Threads& threads)
        : shape_(shape), capacity_(kv_room(layout_of(shape), largest.context)), threads_(threads) {}

    Result<void> build(const StepWork& largest, std::int64_t distinct) {
        const std::int64_t d = shape_.head_dim;
        const std::int64_t q = shape_.query_heads * d;
        const std::int64_t kv = shape_.kv_heads * d;
        const std::int64_t cache = largest.batch * kv * capacity_ * bits(shape_.kv) / 8;
        std::uint64_t seed = 1ULL << 44U;
        const auto matrix = [&](WeightMatrix& target, std::int64_t n, std::int64_t k, DType type) -> Result<void> {
            auto made = WeightMatrix::random(n, k, type, seed += 1ULL << 36U, threads_);
            if (made && best_products().in_tiles(type)) made = made->in_tiles(best_products().tiles, threads_);
            if (!made) return std::unexpected(made.error());
            target = std::move(*made);
            return {};
        };
        for (std::int64_t i = 0; i < distinct; ++i) {
            Layer& layer = layers_.emplace_back();
            if (auto done = matrix(layer.qkv, q + 2 * kv, shape_.hidden, shape_.weights); !done) return done;
            if (auto done = matrix(layer.out, shape_.hidden, q, shape_.weights); !done) return done;
            if (shape_.experts > 0) {
                if (auto done = matrix(layer.router, shape_.experts, shape_.hidden, shape_.router); !done) return done;
            }
            layer.ffns.resize(size(std::max<std::int64_t>(1, shape_.experts)));
            for (Ffn& ffn : layer.ffns) {
                if (auto done = matrix(ffn.gate_up, 2 * shape_.ffn_width, shape_.hidden, shape_.weights); !done)
                    return done;
                if (auto done = matrix(ffn.down, shape_.hidden, shape_.ffn_width, shape_.weights); !done) return done;
            }
            for (Memory* side : {&layer.keys, &layer.values}) {
                auto memory = Memory::reserve(cache);
                if (!memory) return std::unexpected(memory.error());
                *side = std::move(*memory);
                fill_cache(*side, seed += 1ULL << 36U);
            }
        }
        if (auto done = matrix(head_, shape_.vocabulary, shape_.hidden, shape_.head); !done) return done;
        auto table = Memory::reserve(shape_.vocabulary * shape_.hidden * 2);
        if (!table) return std::unexpected(table.error());
        table_ = std::move(*table);
        threads_.ranges(shape_.vocabulary * shape_.hidden, 1 << 16, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t i = first; i < last; ++i)
                table_.as<Bf16>()[i] = to_bf16(random_value(static_cast<std::uint64_t>(i)));
        });
        gain_.assign(size(shape_.hidden), 1.0F);
        head_gain_.assign(size(d), 1.0F);
        bias_.assign(size(q + 2 * kv), 0.01F);
        return {};
    }

    std::int64_t distinct_layers() const override { return static_cast<std::int64_t>(layers_.size()); }

    const std::vector<std::int32_t>& step(const StepWork& work) override {
        const std::int64_t rows = work.batch * work.tokens;
        const std::int64_t d = shape_.head_dim;
        const QkvRows fused{work.batch,         work.tokens,     work.context - work.tokens,
                            shape_.query_heads, shape_.kv_heads, d};
        reserve(rows, fused);
        if (turned_for_ != std::array{fused.position, work.tokens}) {
            turns_.resize(size(work.tokens * d));
            rotary_table(turns_.data(), fused.position, work.tokens, d);
            turned_for_ = {fused.position, work.tokens};
        }
        parts_ = {};
        double clock = steady_seconds();
        const auto spend = [&](double& part) {
            const double now = steady_seconds();
            part += now - clock;
            clock = now;
        };
        tokens_.resize(size(rows));
        for (std::int64_t row = 0; row < rows; ++row)
            tokens_[size(row)] = static_cast<std::int32_t>(mixed(static_cast<std::uint64_t>(row)) %
                                                           static_cast<std::uint64_t>(shape_.vocabulary));
        gather(table_.as<Bf16>(), tokens_.data(), stream_.data(), rows, shape_.hidden, threads_);
        spend(parts_.other);
        for (std::int64_t i = 0; i < shape_.layers; ++i) {
            const Layer& layer = layers_[size(i) % layers_.size()];
            rms_norm(stream_.data(), gain_.data(), normed_.data(), rows, shape_.hidden, threads_);
            multiply(layer.qkv, normed_.data(), qkv_.data(), rows, fused.width(), shape_.hidden);
            if (shape_.bias) add_bias(rows, fused.width());
            if (shape_.qk_norm) norm_heads(rows, fused);
            rotary(qkv_.data(), turns_.data(), fused, threads_);
            kv_write(qkv_.data(), layer.keys.data(), layer.values.data(), capacity_, shape_.kv, layout_of(shape_),
                     fused, threads_);
            take_queries(qkv_.data(), queries_.data(), fused, threads_);
            attend({.batch = work.batch,
                    .tokens = work.tokens,
                    .query_heads = shape_.query_heads,
                    .kv_heads = shape_.kv_heads,
                    .widths = HeadWidths::same(d),
                    .context = work.context,
                    .capacity = capacity_,
                    .kv = shape_.kv,
                    .q = queries_.data(),
                    .keys = layer.keys.data(),
                    .values = layer.values.data(),
                    .out = mixed_.data()},
                   best_attention(), threads_, scratch_);
            multiply(layer.out, mixed_.data(), normed_.data(), rows, shape_.hidden, shape_.query_heads * d);
            add(stream_.data(), normed_.data(), rows, shape_.hidden, threads_);
            spend(parts_.attention);
            rms_norm(stream_.data(), gain_.data(), normed_.data(), rows, shape_.hidden, threads_);
            if (shape_.experts > 0) {
                mix_experts(layer, rows);
            } else {
                const Ffn& ffn = layer.ffns[0];
                multiply(ffn.gate_up, normed_.data(), wide_.data(), rows, 2 * shape_.ffn_width, shape_.hidden);
                silu_multiply(wide_.data(), gated_.data(), rows, shape_.ffn_width, threads_);
                multiply(ffn.down, gated_.data(), normed_.data(), rows, shape_.hidden, shape_.ffn_width);
            }
            add(stream_.data(), normed_.data(), rows, shape_.hidden, threads_);
            spend(parts_.ffn);
        }
        // Only the last token of each sequence needs logits.
        last_.resize(size(work.batch * shape_.hidden));
        for (std::int64_t i = 0; i < work.batch; ++i) {
            std::copy_n(stream_.data() + ((i + 1) * work.tokens - 1) * shape_.hidden, shape_.hidden,
                        last_.data() + i * shape_.hidden);
        }
        rms_norm(last_.data(), gain_.data(), normed_.data(), work.batch, shape_.hidden, threads_);
        logits_.resize(size(work.batch * shape_.vocabulary));
        multiply(head_, normed_.data(), logits_.data(), work.batch, shape_.vocabulary, shape_.hidden);
        chosen_.resize(size(work.batch));
        argmax(logits_.data(), chosen_.data(), work.batch, shape_.vocabulary, threads_);
        spend(parts_.other);
        return chosen_;
    }

    const std::vector<float>& logits() const override { return logits_; }
    Parts last_parts() const override { return parts_; }

    double weight(Matrix which, std::int64_t layer, std::int64_t expert, std::int64_t row,
                  std::int64_t column) const override {
        const Layer& held = layers_[size(layer) % layers_.size()];
        switch (which) {
            case Matrix::qkv:
                return held.qkv.at(row, column);
            case Matrix::out:
                return held.out.at(row, column);
            case Matrix::router:
                return held.router.at(row, column);
            case Matrix::gate_up:
                return held.ffns[size(expert)].gate_up.at(row, column);
            case Matrix::down:
                return held.ffns[size(expert)].down.at(row, column);
            case Matrix::head:
                return head_.at(row, column);
        }
        return 0.0;
    }
    double embedding(std::int64_t token, std::int64_t column) const override {
        return from_bf16(table_.as<Bf16>()[token * shape_.hidden + column]);
    }

  private:
    void fill_cache(Memory& memory, std::uint64_t seed) {
        threads_.ranges(memory.bytes() * 8 / bits(shape_.kv), 1 << 16, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t i = first; i < last; ++i) {
                const float value = random_value(seed + static_cast<std::uint64_t>(i));
                if (shape_.kv == DType::bf16)
                    memory.as<Bf16>()[i] = to_bf16(value);
                else
                    memory.as<float>()[i] = value;
            }
        });
    }

    void reserve(std::int64_t rows, const QkvRows& fused) {
        const auto room = [&](std::vector<float>& values, std::int64_t width) {
            if (values.size() < size(rows * width)) values.resize(size(rows * width));
        };
        room(stream_, shape_.hidden);
        room(normed_, std::max(shape_.hidden, shape_.ffn_width));
        room(qkv_, fused.width());
        room(queries_, shape_.query_heads * shape_.head_dim);
        room(mixed_, shape_.query_heads * shape_.head_dim);
        // Rows as experts see them: each is there for all that it chose.
        const std::int64_t times = std::max<std::int64_t>(1, shape_.experts_chosen);
        room(wide_, times * 2 * shape_.ffn_width);
        room(gated_, times * shape_.ffn_width);
        if (shape_.experts == 0) return;
        room(scores_, shape_.experts);
        room(taken_, times * shape_.hidden);
        room(given_, times * shape_.hidden);
    }

    /// The FFN of a mixture: of the rows in `normed_`, and into them.
    void mix_experts(const Layer& layer, std::int64_t rows) {
        const std::int64_t hidden = shape_.hidden;
        const std::int64_t width = shape_.ffn_width;
        multiply(layer.router, normed_.data(), scores_.data(), rows, shape_.experts, hidden);
        route(scores_.data(), rows, shape_.experts, shape_.experts_chosen, routing_, threads_);
        scatter_rows(normed_.data(), routing_, taken_.data(), hidden, threads_);
        const auto each = [&](const auto& work) {
            for (std::int64_t expert = 0; expert < shape_.experts; ++expert) {
                const std::int64_t first = routing_.begins[size(expert)];
                const std::int64_t count = routing_.begins[size(expert + 1)] - first;
                if (count > 0) work(layer.ffns[size(expert)], first, count);
            }
        };
        each([&](const Ffn& ffn, std::int64_t first, std::int64_t count) {
            multiply(ffn.gate_up, taken_.data() + first * hidden, wide_.data() + first * 2 * width, count, 2 * width,
                     hidden);
        });
        silu_multiply(wide_.data(), gated_.data(), rows * shape_.experts_chosen, width, threads_);
        each([&](const Ffn& ffn, std::int64_t first, std::int64_t count) {
            multiply(ffn.down, gated_.data() + first * width, given_.data() + first * hidden, count, hidden, width);
        });
        combine_rows(given_.data(), routing_, normed_.data(), hidden, threads_);
    }

    void multiply(const WeightMatrix& matrix, const float* x, float* y, std::int64_t m, std::int64_t n,
                  std::int64_t k) {
        ProductCall call{.m = m, .n = n, .k = k, .weights = matrix.view(), .y = y};
        activations_.prepare(x, call, products_, threads_);
        bench::multiply(call, products_, threads_);
    }

    void add_bias(std::int64_t rows, std::int64_t width) {
        threads_.ranges(rows, 1, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t row = first; row < last; ++row) {
                for (std::int64_t i = 0; i < width; ++i) qkv_[size(row * width + i)] += bias_[size(i)];
            }
        });
    }

    void norm_heads(std::int64_t rows, const QkvRows& fused) {
        threads_.ranges(rows, 1, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t row = first; row < last; ++row) {
                for (std::int64_t head = 0; head < fused.query_heads + fused.kv_heads; ++head) {
                    float* values = qkv_.data() + row * fused.width() + head * fused.head_dim;
                    float square = 0.0F;
                    for (std::int64_t i = 0; i < fused.head_dim; ++i) square += values[i] * values[i];
                    const float scale = 1.0F / std::sqrt(square / static_cast<float>(fused.head_dim) + 1e-5F);
                    for (std::int64_t i = 0; i < fused.head_dim; ++i) values[i] *= scale * head_gain_[size(i)];
                }
            }
        });
    }

    ModelShape shape_;
    std::int64_t capacity_;
    Threads& threads_;
    const ProductKernels& products_ = best_products();
    std::vector<Layer> layers_;
    WeightMatrix head_;
    Memory table_;
    std::vector<float> gain_, head_gain_, bias_;
    std::vector<float> stream_, normed_, qkv_, queries_, mixed_, wide_, gated_, last_, logits_, turns_;
    std::vector<float> scores_, taken_, given_;  // of a router, and rows that experts take and give back
    Routing routing_;
    std::array<std::int64_t, 2> turned_for_ = {-1, -1};
    std::vector<std::int32_t> tokens_, chosen_;
    Activations activations_;
    AttentionScratch scratch_;
    Parts parts_;
};

}  // namespace

StepBytes step_bytes(const ModelShape& shape, const StepWork& work) {
    const std::int64_t q = shape.query_heads * shape.head_dim;
    const std::int64_t kv = shape.kv_heads * shape.head_dim;
    const std::int64_t ffn = WeightMatrix::bytes(2 * shape.ffn_width, shape.hidden, shape.weights) +
                             WeightMatrix::bytes(shape.hidden, shape.ffn_width, shape.weights);
    StepBytes bytes;
    bytes.layer = WeightMatrix::bytes(q + 2 * kv, shape.hidden, shape.weights) +
                  WeightMatrix::bytes(shape.hidden, q, shape.weights) + std::max<std::int64_t>(1, shape.experts) * ffn +
                  2 * work.batch * kv * work.context * bits(shape.kv) / 8;
    if (shape.experts > 0) bytes.layer += WeightMatrix::bytes(shape.experts, shape.hidden, shape.router);
    bytes.outside =
        WeightMatrix::bytes(shape.vocabulary, shape.hidden, shape.head) + shape.vocabulary * shape.hidden * 2;
    const std::int64_t rows = work.batch * work.tokens;
    // fp32 rows of every kind, once more in their narrow form, and the logits.
    const std::int64_t times = std::max<std::int64_t>(1, shape.experts_chosen);
    const std::int64_t of_experts = shape.experts > 0 ? shape.experts + 2 * times * shape.hidden : 0;
    bytes.working = rows * 4 * (4 * shape.hidden + 3 * q + 2 * kv + 4 * times * shape.ffn_width + of_experts) +
                    work.batch * shape.vocabulary * 4;
    return bytes;
}

Result<std::unique_ptr<CpuModel>> CpuModel::make(const ModelShape& shape, const StepWork& largest, std::int64_t memory,
                                                 Threads& threads) {
    const std::int64_t grain = shape.weights == DType::int4 ? int4_group : 16;
    for (const DType type : {shape.weights, shape.head, shape.router}) {
        if (best_products().of(type) == nullptr)
            return fail(fmt::format("no processor kernel multiplies {} weights", roofline::name(type)));
    }
    if (shape.hidden % grain != 0 || shape.ffn_width % grain != 0 || shape.query_heads * shape.head_dim % grain != 0)
        return fail(fmt::format("a width of the model is no multiple of {}", grain));
    if (shape.kv != DType::bf16 && shape.kv != DType::fp32)
        return fail(fmt::format("no processor kernel keeps a KV cache in {}", roofline::name(shape.kv)));
    if (shape.head_dim % 32 != 0) return fail(fmt::format("heads of {} are no multiple of 32", shape.head_dim));
    const StepBytes bytes = step_bytes(shape, largest);
    const std::int64_t left = memory - bytes.outside - bytes.working;
    const std::int64_t distinct = std::min(shape.layers, left / bytes.layer);
    if (distinct < 1) {
        return std::unexpected(Problem{
            fmt::format("a step needs {:.1f} GB of memory even with one layer's weights, and {:.1f} GB are free",
                        static_cast<double>(bytes.outside + bytes.working + bytes.layer) / 1e9,
                        static_cast<double>(memory) / 1e9),
            true});
    }
    auto model = std::make_unique<Model>(shape, largest, threads);
    if (auto done = model->build(largest, distinct); !done) return std::unexpected(done.error());
    return model;
}

StepOutcome run_step(CpuModel& model, const StepWork& work, const Pace& pace) {
    StepOutcome outcome;
    outcome.backend = "own";
    outcome.layers_distinct = model.distinct_layers();
    std::vector<CpuModel::Parts> parts;
    outcome.timing = time_calls(
        [&](std::size_t) {
            model.step(work);
            parts.push_back(model.last_parts());
        },
        1, pace.budget);
    // Shares of the median step, from the sums over all of them.
    CpuModel::Parts sum;
    for (const CpuModel::Parts& part : parts) {
        sum.attention += part.attention;
        sum.ffn += part.ffn;
        sum.other += part.other;
    }
    const double all = sum.attention + sum.ffn + sum.other;
    outcome.attention = outcome.timing.median * sum.attention / all;
    outcome.ffn = outcome.timing.median * sum.ffn / all;
    outcome.other = outcome.timing.median * sum.other / all;
    return outcome;
}

}  // namespace roofline::bench
