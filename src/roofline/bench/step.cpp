#include "roofline/bench/step.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "roofline/bench/kernels/rowwise.hpp"
#include "roofline/bench/kernels/selective_scan.hpp"
#include "roofline/bench/step_run.hpp"

namespace roofline::bench {
namespace {

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

class Model final : public CpuModel {
  public:
    Model(const StackShape& shape, const StepWork& largest, Threads& threads)
        : run_(shape, largest, threads), kinds_(shape.kinds.size()) {}

    Result<void> build(const std::vector<std::int64_t>& distinct) {
        WeightMaker maker(run_.threads);
        for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
            for (std::int64_t i = 0; i < distinct[kind]; ++i) {
                auto layer = maker.layer(run_.shape.kinds[kind], run_.shape.kv, run_.largest);
                if (!layer) return std::unexpected(layer.error());
                kinds_[kind].push_back(std::move(*layer));
            }
        }
        auto head = maker.linear(run_.shape.head);
        if (!head) return std::unexpected(head.error());
        head_ = std::move(*head);
        auto table = maker.numbers(run_.shape.vocabulary * run_.shape.hidden, DType::bf16);
        if (!table) return std::unexpected(table.error());
        table_ = std::move(*table);
        if (run_.shape.positions > 0) {
            auto positions = maker.numbers(run_.shape.positions * run_.shape.hidden, DType::bf16);
            if (!positions) return std::unexpected(positions.error());
            positions_ = std::move(*positions);
        }
        return {};
    }

    std::int64_t layers() const override { return run_.shape.layers(); }
    std::int64_t distinct_layers() const override {
        return std::accumulate(kinds_.begin(), kinds_.end(), std::int64_t{0}, [](std::int64_t sum, const auto& kind) {
            return sum + static_cast<std::int64_t>(kind.size());
        });
    }

    const std::vector<std::int32_t>& step(const StepWork& work) override {
        run_.begin(work);
        parts_ = {};
        clock_ = steady_seconds();
        embed();
        spend(parts_.other);
        for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
            const LayerShape& layer = run_.shape.kinds[kind];
            const auto& distinct = kinds_[kind];
            for (std::int64_t i = 0; i < layer.count; ++i) run_layer(layer, distinct[size(i) % distinct.size()]);
        }
        choose_tokens();
        spend(parts_.other);
        return chosen_;
    }

    const std::vector<float>& logits() const override { return logits_; }
    Parts last_parts() const override { return parts_; }

    double weight(const Place& place, std::int64_t row, std::int64_t column) const override {
        if (place.which == Matrix::head) return head_.weights.at(row, column);
        const auto& distinct = kinds_[place.kind];
        const LayerWeights& layer = distinct[size(place.layer) % distinct.size()];
        if (place.which == Matrix::kv_up && layer.kv_up.n == 0) {
            const AttentionShape& attention = run_.shape.kinds[place.kind].attention;
            const std::int64_t each = attention.unturned() + attention.value_dim;
            const std::int64_t inside = row % each;
            if (inside < attention.unturned()) return layer.into_queries[size(row / each)].weights.at(column, inside);
            return layer.out_of_results[size(row / each)].weights.at(inside - attention.unturned(), column);
        }
        if (place.which == Matrix::taps) {
            const LayerShape& shape = run_.shape.kinds[place.kind];
            const std::int64_t width = shape.state.heads > 0 ? shape.state.channels() : shape.channels.channels;
            return layer.taps.as<float>()[row * width + column];
        }
        return matrix(layer, place).weights.at(row, column);
    }
    double embedding(std::int64_t token, std::int64_t column) const override {
        return from_bf16(table_.as<Bf16>()[token * run_.shape.hidden + column]);
    }
    double position(std::int64_t position, std::int64_t column) const override {
        return from_bf16(positions_.as<Bf16>()[position * run_.shape.hidden + column]);
    }

  private:
    static const Linear& matrix(const LayerWeights& layer, const Place& place) {
        const FfnWeights& ffn = layer.ffns[size(place.expert)];
        switch (place.which) {
            case Matrix::qkv:
                return layer.qkv;
            case Matrix::q_down:
                return layer.q_down;
            case Matrix::q:
                return layer.q;
            case Matrix::kv_down:
                return layer.kv_down;
            case Matrix::kv_up:
                return layer.kv_up;
            case Matrix::index_query:
                return layer.index_query;
            case Matrix::index_key:
                return layer.index_key;
            case Matrix::router:
                return layer.router;
            case Matrix::up:
                return ffn.up;
            case Matrix::down:
                return ffn.down;
            case Matrix::shared_up:
                return layer.shared.up;
            case Matrix::shared_down:
                return layer.shared.down;
            case Matrix::shared_gate:
                return layer.shared_gate;
            case Matrix::latent_down:
                return layer.latent_down;
            case Matrix::latent_up:
                return layer.latent_up;
            case Matrix::in:
                return layer.in;
            case Matrix::select:
                return layer.select;
            case Matrix::step:
                return layer.step;
            default:
                return layer.out;
        }
    }

    void spend(double& part) {
        const double now = steady_seconds();
        part += now - clock_;
        clock_ = now;
    }

    void embed() {
        stream_ = room(run_.rooms.stream, run_.rows * run_.shape.hidden);
        tokens_.resize(size(run_.rows));
        for (std::int64_t row = 0; row < run_.rows; ++row)
            tokens_[size(row)] = static_cast<std::int32_t>(mixed(static_cast<std::uint64_t>(row)) %
                                                           static_cast<std::uint64_t>(run_.shape.vocabulary));
        gather(table_.as<Bf16>(), tokens_.data(), stream_, run_.rows, run_.shape.hidden, run_.threads);
        if (run_.shape.positions > 0) {
            const std::int64_t first = run_.work.context - run_.work.tokens;
            for (std::int64_t row = 0; row < run_.rows; ++row)
                tokens_[size(row)] = static_cast<std::int32_t>((first + row % run_.work.tokens) % run_.shape.positions);
            float* placed = room(run_.rooms.normed, run_.rows * run_.shape.hidden);
            gather(positions_.as<Bf16>(), tokens_.data(), placed, run_.rows, run_.shape.hidden, run_.threads);
            add(stream_, placed, run_.rows, run_.shape.hidden, run_.threads);
        }
        if (run_.shape.embedding_norm) run_.norm(stream_, stream_, run_.rows);
    }

    /// Only the last token of each sequence needs logits.
    void choose_tokens() {
        const std::int64_t hidden = run_.shape.hidden;
        float* last = room(run_.rooms.normed, run_.work.batch * hidden);
        for (std::int64_t i = 0; i < run_.work.batch; ++i)
            std::copy_n(stream_ + ((i + 1) * run_.work.tokens - 1) * hidden, hidden, last + i * hidden);
        if (run_.shape.final_norm) run_.norm(last, last, run_.work.batch);
        logits_.resize(size(run_.work.batch * run_.shape.vocabulary));
        run_.multiply(head_, last, logits_.data(), run_.work.batch);
        chosen_.resize(size(run_.work.batch));
        argmax(logits_.data(), chosen_.data(), run_.work.batch, run_.shape.vocabulary, run_.threads);
    }

    void run_layer(const LayerShape& shape, const LayerWeights& layer) {
        const std::int64_t hidden = run_.shape.hidden;
        float* normed = room(run_.rooms.normed, run_.rows * hidden);
        float* attended = room(run_.rooms.attended, run_.rows * hidden);
        float* result = room(run_.rooms.result, run_.rows * hidden);
        const auto input = [&](bool with_norm) -> const float* {
            if (!with_norm) return stream_;
            run_.norm(stream_, normed, run_.rows);
            return normed;
        };
        const float* seen = nullptr;
        if (shape.mixes()) {
            seen = input(shape.norm_before_attention);
            if (shape.state.heads > 0)
                mix_by_states(run_, shape.state, layer, seen, attended);
            else if (shape.channels.channels > 0)
                mix_by_channels(run_, shape.channels, layer, seen, attended);
            else
                mix_by_attention(run_, shape.attention, layer, seen, attended);
            if (shape.norm_after_attention) run_.norm(attended, attended, run_.rows);
            if (!shape.parallel) add(stream_, attended, run_.rows, hidden, run_.threads);
            spend(parts_.attention);
        }
        if (!shape.ffn.up) return;
        // Side by side, without a norm of its own, an FFN reads what attention has read.
        if (!shape.parallel || shape.norm_before_ffn) seen = input(shape.norm_before_ffn);
        feed_forward(run_, shape.ffn, layer, seen, result);
        if (shape.norm_after_ffn) run_.norm(result, result, run_.rows);
        if (shape.parallel)
            add_two(stream_, attended, result, run_.rows, hidden, run_.threads);
        else
            add(stream_, result, run_.rows, hidden, run_.threads);
        spend(parts_.ffn);
    }

    StepRun run_;
    std::vector<std::vector<LayerWeights>> kinds_;
    Linear head_;
    Memory table_, positions_;

    // Of the step that is run.
    double clock_ = 0.0;
    Parts parts_;
    float* stream_ = nullptr;
    std::vector<std::int32_t> tokens_, chosen_;
    std::vector<float> logits_;
};

/// As many of each kind as memory has room for, the same number of all that have so many.
std::vector<std::int64_t> distinct_of(const StackShape& shape, const StepBytes& bytes, std::int64_t memory) {
    const std::int64_t left = memory - bytes.outside - bytes.working;
    std::int64_t most = 0;
    for (const LayerShape& kind : shape.kinds) most = std::max(most, kind.count);
    std::vector<std::int64_t> distinct(shape.kinds.size());
    for (; most > 0; --most) {
        std::int64_t taken = 0;
        for (std::size_t i = 0; i < distinct.size(); ++i) {
            distinct[i] = std::min(shape.kinds[i].count, most);
            taken += distinct[i] * bytes.layers[i];
        }
        if (taken <= left) return distinct;
    }
    return {};
}

}  // namespace

Result<std::unique_ptr<CpuModel>> CpuModel::make(const StackShape& shape, const StepWork& largest, std::int64_t memory,
                                                 Threads& threads) {
    if (const auto problem = unfit_products(shape, largest)) return fail(*problem);
    if (!kept_by_processors(shape.kv))
        return fail(
            fmt::format("no processor kernel keeps a KV cache in {}; --kv-cache-dtype bf16 asks for one that is kept",
                        roofline::name(shape.kv)));
    bool chosen = false;
    for (const LayerShape& layer : shape.kinds) {
        const AttentionShape& attention = layer.attention;
        chosen = chosen || attention.indexer.heads > 0;
        if (attention.chosen > 0 && !chosen) return fail("its first layers attend to what none before them has chosen");
        for (const std::int64_t width : {attention.head_dim, attention.value_dim, attention.entry(), attention.rank}) {
            if (width % attention_grain != 0)
                return fail(fmt::format("heads of {} are no multiple of {}", width, attention_grain));
        }
        if (attention.indexer.dim % grain_of(WeightFormat::int8) != 0)
            return fail(fmt::format("an indexer's keys of {} are no multiple of {}", attention.indexer.dim,
                                    grain_of(WeightFormat::int8)));
        if (layer.channels.channels % SelectiveShape::abreast != 0)
            return fail(
                fmt::format("{} channels are no multiple of {}", layer.channels.channels, SelectiveShape::abreast));
    }
    const StepBytes bytes = step_bytes(shape, largest);
    const std::vector<std::int64_t> distinct = distinct_of(shape, bytes, memory);
    if (distinct.empty()) {
        return std::unexpected(Problem{
            fmt::format("a step needs {:.1f} GB of memory even with one layer's weights, and {:.1f} GB are free",
                        static_cast<double>(bytes.least()) / 1e9, static_cast<double>(memory) / 1e9),
            true});
    }
    auto model = std::make_unique<Model>(shape, largest, threads);
    if (auto done = model->build(distinct); !done) return std::unexpected(done.error());
    return model;
}

StepOutcome run_step(CpuModel& model, const StepWork& work, const Pace& pace) {
    StepOutcome outcome;
    outcome.backend = "own";
    outcome.layers = model.layers();
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
