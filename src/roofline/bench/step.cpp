#include "roofline/bench/step.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/routing.hpp"
#include "roofline/bench/kernels/rowwise.hpp"
#include "roofline/bench/kernels/state_space.hpp"
#include "roofline/bench/step_weights.hpp"

namespace roofline::bench {
namespace {

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

/// Room that only grows.
float* room(std::vector<float>& values, std::int64_t count) {
    if (values.size() < size(count)) values.resize(size(count));
    return values.data();
}

class Model final : public CpuModel {
  public:
    Model(const StackShape& shape, const StepWork& largest, Threads& threads)
        : shape_(shape), largest_(largest), threads_(threads), kinds_(shape.kinds.size()) {}

    Result<void> build(const std::vector<std::int64_t>& distinct) {
        WeightMaker maker(threads_);
        for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
            for (std::int64_t i = 0; i < distinct[kind]; ++i) {
                auto layer = maker.layer(shape_.kinds[kind], shape_.kv, largest_);
                if (!layer) return std::unexpected(layer.error());
                kinds_[kind].push_back(std::move(*layer));
            }
        }
        auto head = maker.linear(shape_.head);
        if (!head) return std::unexpected(head.error());
        head_ = std::move(*head);
        auto table = maker.numbers(shape_.vocabulary * shape_.hidden, DType::bf16);
        if (!table) return std::unexpected(table.error());
        table_ = std::move(*table);
        if (shape_.positions > 0) {
            auto positions = maker.numbers(shape_.positions * shape_.hidden, DType::bf16);
            if (!positions) return std::unexpected(positions.error());
            positions_ = std::move(*positions);
        }
        std::int64_t widest = shape_.hidden;
        for (const LayerShape& layer : shape_.kinds)
            widest = std::max({widest, layer.attention.q_down.n, layer.state.channels()});
        gain_.assign(size(widest), 1.0F);
        norm_bias_.assign(size(widest), CpuModel::bias);
        return {};
    }

    std::int64_t layers() const override { return shape_.layers(); }
    std::int64_t distinct_layers() const override {
        return std::accumulate(kinds_.begin(), kinds_.end(), std::int64_t{0}, [](std::int64_t sum, const auto& kind) {
            return sum + static_cast<std::int64_t>(kind.size());
        });
    }

    const std::vector<std::int32_t>& step(const StepWork& work) override {
        work_ = work;
        rows_ = work.batch * work.tokens;
        parts_ = {};
        clock_ = steady_seconds();
        embed();
        spend(parts_.other);
        for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
            const LayerShape& layer = shape_.kinds[kind];
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
            const AttentionShape& attention = shape_.kinds[place.kind].attention;
            const std::int64_t each = attention.unturned() + attention.value_dim;
            const std::int64_t inside = row % each;
            if (inside < attention.unturned()) return layer.into_queries[size(row / each)].weights.at(column, inside);
            return layer.out_of_results[size(row / each)].weights.at(inside - attention.unturned(), column);
        }
        if (place.which == Matrix::taps)
            return layer.taps.as<float>()[row * shape_.kinds[place.kind].state.channels() + column];
        return matrix(layer, place).weights.at(row, column);
    }
    double embedding(std::int64_t token, std::int64_t column) const override {
        return from_bf16(table_.as<Bf16>()[token * shape_.hidden + column]);
    }
    double position(std::int64_t position, std::int64_t column) const override {
        return from_bf16(positions_.as<Bf16>()[position * shape_.hidden + column]);
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
            case Matrix::in:
                return layer.in;
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
        stream_ = room(stream_room_, rows_ * shape_.hidden);
        tokens_.resize(size(rows_));
        for (std::int64_t row = 0; row < rows_; ++row)
            tokens_[size(row)] = static_cast<std::int32_t>(mixed(static_cast<std::uint64_t>(row)) %
                                                           static_cast<std::uint64_t>(shape_.vocabulary));
        gather(table_.as<Bf16>(), tokens_.data(), stream_, rows_, shape_.hidden, threads_);
        if (shape_.positions > 0) {
            const std::int64_t first = work_.context - work_.tokens;
            for (std::int64_t row = 0; row < rows_; ++row)
                tokens_[size(row)] = static_cast<std::int32_t>((first + row % work_.tokens) % shape_.positions);
            float* placed = room(normed_, rows_ * shape_.hidden);
            gather(positions_.as<Bf16>(), tokens_.data(), placed, rows_, shape_.hidden, threads_);
            add(stream_, placed, rows_, shape_.hidden, threads_);
        }
        if (shape_.embedding_norm) norm(stream_, stream_, rows_);
    }

    /// Only the last token of each sequence needs logits.
    void choose_tokens() {
        const std::int64_t hidden = shape_.hidden;
        float* last = room(normed_, work_.batch * hidden);
        for (std::int64_t i = 0; i < work_.batch; ++i)
            std::copy_n(stream_ + ((i + 1) * work_.tokens - 1) * hidden, hidden, last + i * hidden);
        if (shape_.final_norm) norm(last, last, work_.batch);
        logits_.resize(size(work_.batch * shape_.vocabulary));
        multiply(head_, last, logits_.data(), work_.batch);
        chosen_.resize(size(work_.batch));
        argmax(logits_.data(), chosen_.data(), work_.batch, shape_.vocabulary, threads_);
    }

    void run_layer(const LayerShape& shape, const LayerWeights& layer) {
        const std::int64_t hidden = shape_.hidden;
        float* normed = room(normed_, rows_ * hidden);
        float* attended = room(attended_, rows_ * hidden);
        float* result = room(result_, rows_ * hidden);
        const auto input = [&](bool with_norm) -> const float* {
            if (!with_norm) return stream_;
            norm(stream_, normed, rows_);
            return normed;
        };
        const bool mixes = shape.state.heads > 0 || shape.attention.query_heads > 0;
        const float* seen = nullptr;
        if (mixes) {
            seen = input(shape.norm_before_attention);
            if (shape.state.heads > 0)
                update_states(shape.state, layer, seen, attended);
            else if (shape.attention.latent())
                attend_to_entries(shape.attention, layer, seen, attended);
            else
                attend_to_heads(shape.attention, layer, seen, attended);
            if (shape.norm_after_attention) norm(attended, attended, rows_);
            if (!shape.parallel) add(stream_, attended, rows_, hidden, threads_);
            spend(parts_.attention);
        }
        if (!shape.ffn.up) return;
        // Side by side, without a norm of its own, an FFN reads what attention has read.
        if (!shape.parallel || shape.norm_before_ffn) seen = input(shape.norm_before_ffn);
        if (shape.ffn.experts > 0)
            mix_experts(shape.ffn, layer, seen, result);
        else
            feed_forward(shape.ffn.gated, layer.ffns[0], seen, result);
        if (shape.norm_after_ffn) norm(result, result, rows_);
        if (shape.parallel)
            add_two(stream_, attended, result, rows_, hidden, threads_);
        else
            add(stream_, result, rows_, hidden, threads_);
        spend(parts_.ffn);
    }

    void attend_to_heads(const AttentionShape& shape, const LayerWeights& layer, const float* x, float* y) {
        const std::int64_t kept = shape.kept(work_.tokens, work_.context);
        const std::int64_t d = shape.head_dim;
        const CacheShape cache = cache_shape(shape, shape_.kv, largest_);
        const QkvRows fused{work_.batch, work_.tokens, kept - work_.tokens, shape.query_heads, shape.kv_heads, d};
        float* qkv = room(wide_, rows_ * fused.width());
        float* queries = room(queries_, rows_ * shape.query_heads * d);
        float* mixed = room(mixed_, rows_ * shape.query_heads * d);
        if (shape.gated) {
            const std::int64_t width = shape.query_heads * d;
            float* made = room(gated_, rows_ * layer.qkv.n);
            float* opened = room(opened_, rows_ * 2 * width);
            multiply(layer.qkv, x, made, rows_);
            turn(made, qkv, {rows_, 1, fused.width(), layer.qkv.n, fused.width()}, threads_);
            turn(made + fused.width(), opened + width, {rows_, 1, width, layer.qkv.n, 2 * width}, threads_);
        } else {
            multiply(layer.qkv, x, qkv, rows_);
        }
        if (shape.norm == HeadNorm::each_head)
            norm_runs(qkv, rows_, fused.width(), shape.query_heads + shape.kv_heads, d, threads_);
        if (shape.norm == HeadNorm::whole_width) {
            norm_runs(qkv, rows_, fused.width(), 1, shape.query_heads * d, threads_);
            norm_runs(qkv + shape.query_heads * d, rows_, fused.width(), 1, shape.kv_heads * d, threads_);
        }
        if (shape.rotary) rotary(qkv, turns(d), fused, threads_);
        kv_write(qkv, layer.keys.data(), layer.values.data(), cache.capacity, shape_.kv, cache.layout, fused, threads_);
        take_queries(qkv, queries, fused, threads_);
        attend({.batch = work_.batch,
                .tokens = work_.tokens,
                .query_heads = shape.query_heads,
                .kv_heads = shape.kv_heads,
                .widths = cache.widths,
                .context = kept,
                .capacity = cache.capacity,
                .window = shape.window,
                .kv = shape_.kv,
                .q = queries,
                .keys = layer.keys.data(),
                .values = layer.values.data(),
                .sinks = shape.sinks ? gain_.data() : nullptr,
                .out = mixed},
               best_attention(), threads_, scratch_);
        if (shape.gated) {
            const std::int64_t width = shape.query_heads * d;
            turn(mixed, opened_.data(), {rows_, 1, width, width, 2 * width}, threads_);
            open_gates(opened_.data(), mixed, rows_, width, threads_);
        }
        multiply(layer.out, mixed, y, rows_);
    }

    /// One token of every sequence (state_space.hpp).
    void update_states(const StateMixerShape& shape, const LayerWeights& layer, const float* x, float* y) {
        const std::int64_t values = shape.values();
        const std::int64_t channels = shape.channels();
        const StateShape states{work_.batch, shape.heads, shape.groups, shape.key_dim, shape.value_dim};
        float* wide = room(wide_, rows_ * shape.in.n);
        float* unmixed = room(low_, rows_ * channels);
        float* convolved = room(by_head_, rows_ * channels);
        // Where in a row of the first product there is what.
        const std::int64_t gates_at = shape.delta ? channels : 0;
        const std::int64_t convolved_at = shape.delta ? 0 : values;
        const std::int64_t of_heads = shape.in.n - values - channels;  // behind both
        const std::int64_t given_width = channels + of_heads;
        float* given = room(queries_, rows_ * given_width);
        float* gated = room(wide_queries_, rows_ * 2 * values);
        float* mixed = room(mixed_, rows_ * values);
        multiply(layer.in, x, wide, rows_);
        const auto copy = [&](const float* from, std::int64_t from_width, float* to, std::int64_t to_width,
                              std::int64_t count) {
            turn(from, to, {rows_, 1, count, from_width, to_width}, threads_);
        };
        copy(wide + convolved_at, shape.in.n, unmixed, channels, channels);
        convolve(unmixed, layer.taps.as<float>(), norm_bias_.data(), layer.past.as<float>(), convolved,
                 {work_.batch, work_.tokens, channels, shape.taps}, threads_);
        copy(convolved, channels, given, given_width, channels);
        copy(wide + values + channels, shape.in.n, given + channels, given_width, of_heads);
        if (shape.delta)
            delta_step(given, gain_.data(), layer.keys.as<float>(), mixed, states, threads_);
        else
            state_space_step(given, gain_.data(), norm_bias_.data(), layer.keys.as<float>(), mixed, states, threads_);
        copy(mixed, values, gated, 2 * values, values);
        copy(wide + gates_at, shape.in.n, gated + values, 2 * values, values);
        gated_norm(gated, gain_.data(), mixed, rows_, values, shape.delta ? shape.value_dim : values, threads_);
        multiply(layer.out, mixed, y, rows_);
    }

    void attend_to_entries(const AttentionShape& shape, const LayerWeights& layer, const float* x, float* y) {
        const std::int64_t heads = shape.query_heads;
        const CacheShape cache = cache_shape(shape, shape_.kv, largest_);
        float* queries = room(queries_, rows_ * heads * shape.head_dim);
        float* entries = room(entries_, rows_ * shape.entry());
        if (layer.q_down.n > 0) {
            float* low = room(low_, rows_ * layer.q_down.n);
            multiply(layer.q_down, x, low, rows_);
            rms_norm(low, gain_.data(), low, rows_, layer.q_down.n, threads_);
            multiply(layer.q, low, queries, rows_);
        } else {
            multiply(layer.q, x, queries, rows_);
        }
        multiply(layer.kv_down, x, entries, rows_);
        norm_runs(entries, rows_, shape.entry(), 1, shape.rank, threads_);
        const float* table = turns(shape.rope_dim);
        const TurnedHeads of_queries{rows_,          work_.tokens,   heads,
                                     shape.rope_dim, shape.head_dim, heads * shape.head_dim};
        rotary(queries + shape.unturned(), table, of_queries, threads_);
        const TurnedHeads of_entries{rows_, work_.tokens, 1, shape.rope_dim, shape.rope_dim, shape.entry()};
        rotary(entries + shape.rank, table, of_entries, threads_);
        const QkvRows written{work_.batch, work_.tokens, work_.context - work_.tokens, 0, 1, shape.entry(), true};
        kv_write(entries, layer.keys.data(), nullptr, cache.capacity, shape_.kv, cache.layout, written, threads_);
        float* mixed = room(mixed_, rows_ * heads * std::max(shape.rank, shape.value_dim));
        if (work_.expanded)
            attend_expanded(shape, layer, queries, entries, mixed);
        else
            attend_absorbed(shape, layer, cache, queries, mixed);
        multiply(layer.out, mixed, y, rows_);
    }

    /// Keys and values of every head, made of the entries of this step.
    void attend_expanded(const AttentionShape& shape, const LayerWeights& layer, const float* queries,
                         const float* entries, float* mixed) {
        const std::int64_t heads = shape.query_heads;
        const std::int64_t key = shape.head_dim;
        const std::int64_t value = shape.value_dim;
        const std::int64_t each = shape.unturned() + value;
        float* low = room(low_, rows_ * shape.rank);
        float* wide = room(wide_, rows_ * heads * each);
        turn(entries, low, {rows_, 1, shape.rank, shape.entry(), shape.rank}, threads_);
        multiply(layer.kv_up, low, wide, rows_);
        const HeadWidths widths{key, value};
        const KvLayout layout = best_attention().layout(shape_.kv, widths);
        const std::int64_t capacity = kv_room(layout, work_.tokens);
        const QkvRows expanded{work_.batch, work_.tokens, 0, 0, heads, key, false, value};
        float* fused = room(expanded_, rows_ * expanded.width());
        threads_.ranges(rows_, 1, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t row = first; row < last; ++row) {
                for (std::int64_t head = 0; head < heads; ++head) {
                    const float* from = wide + (row * heads + head) * each;
                    float* to = fused + row * expanded.width() + head * key;
                    std::copy_n(from, shape.unturned(), to);
                    std::copy_n(entries + row * shape.entry() + shape.rank, shape.rope_dim, to + shape.unturned());
                    std::copy_n(from + shape.unturned(), value,
                                fused + row * expanded.width() + heads * key + head * value);
                }
            }
        });
        const std::int64_t column = work_.batch * heads * capacity * bits(shape_.kv) / 8;  // bytes, of whole 32s
        keys_.resize(size(column * key / 64));
        values_.resize(size(column * value / 64));
        kv_write(fused, keys_.data(), values_.data(), capacity, shape_.kv, layout, expanded, threads_);
        attend({.batch = work_.batch,
                .tokens = work_.tokens,
                .query_heads = heads,
                .kv_heads = heads,
                .widths = widths,
                .context = work_.tokens,
                .capacity = capacity,
                .kv = shape_.kv,
                .q = queries,
                .keys = keys_.data(),
                .values = values_.data(),
                .out = mixed},
               best_attention(), threads_, scratch_);
    }

    /// Over the entries themselves: what would make keys of them goes into the queries, what would make values of them
    /// out of the results.
    void attend_absorbed(const AttentionShape& shape, const LayerWeights& layer, const CacheShape& cache,
                         const float* queries, float* mixed) {
        const std::int64_t heads = shape.query_heads;
        float* by_head = room(by_head_, rows_ * heads * std::max(shape.unturned(), shape.rank));
        float* made = room(wide_, rows_ * heads * std::max(shape.rank, shape.value_dim));
        float* wide_queries = room(wide_queries_, rows_ * heads * shape.entry());
        turn(queries, by_head, {rows_, heads, shape.unturned(), shape.head_dim, shape.unturned()}, threads_);
        multiply_each(layer.into_queries, by_head, made);
        // Scores are divided by the root of a head's width, not of an entry's.
        const float scale = std::sqrt(static_cast<float>(shape.entry()) / static_cast<float>(shape.head_dim));
        turn(made, wide_queries, {heads, rows_, shape.rank, shape.rank, shape.entry(), scale}, threads_);
        turn(queries + shape.unturned(), wide_queries + shape.rank,
             {rows_ * heads, 1, shape.rope_dim, shape.head_dim, shape.entry(), scale}, threads_);
        attend({.batch = work_.batch,
                .tokens = work_.tokens,
                .query_heads = heads,
                .kv_heads = 1,
                .widths = cache.widths,
                .context = work_.context,
                .capacity = cache.capacity,
                .kv = shape_.kv,
                .q = wide_queries,
                .keys = layer.keys.data(),
                .values = layer.keys.data(),
                .out = mixed},
               best_attention(), threads_, scratch_);
        turn(mixed, by_head, {rows_, heads, shape.rank, shape.rank, shape.rank}, threads_);
        multiply_each(layer.out_of_results, by_head, made);
        turn(made, mixed, {heads, rows_, shape.value_dim, shape.value_dim, shape.value_dim}, threads_);
    }

    void activate(bool gated, const float* x, float* y, std::int64_t rows, std::int64_t width) {
        if (gated)
            silu_multiply(x, y, rows, width, threads_);
        else
            gelu(x, y, rows, width, threads_);
    }

    void feed_forward(bool gated, const FfnWeights& ffn, const float* x, float* y) {
        float* wide = room(wide_, rows_ * ffn.up.n);
        float* active = room(active_, rows_ * ffn.down.k);
        multiply(ffn.up, x, wide, rows_);
        activate(gated, wide, active, rows_, ffn.down.k);
        multiply(ffn.down, active, y, rows_);
    }

    void mix_experts(const FfnShape& shape, const LayerWeights& layer, const float* x, float* y) {
        const std::int64_t hidden = shape_.hidden;
        const std::int64_t slots = rows_ * shape.chosen;
        float* scores = room(scores_, rows_ * shape.experts);
        multiply(layer.router, x, scores, rows_);
        route(scores, rows_, shape.experts, shape.chosen, routing_, threads_);
        float* taken = room(taken_, slots * hidden);
        scatter_rows(x, routing_, taken, hidden, threads_);
        const auto each = [&](const float* from, float* to, Linear FfnWeights::* which) {
            for (std::int64_t expert = 0; expert < shape.experts; ++expert) {
                const std::int64_t first = routing_.begins[size(expert)];
                const std::int64_t count = routing_.begins[size(expert + 1)] - first;
                const Linear& linear = layer.ffns[size(expert)].*which;
                if (count > 0) call(linear, to + first * linear.n, count);
            }
            multiply_called(from);
        };
        float* wide = room(wide_, slots * shape.up.n);
        float* active = room(active_, slots * shape.down.k);
        float* given = room(given_, slots * hidden);
        each(taken, wide, &FfnWeights::up);
        activate(shape.gated, wide, active, slots, shape.down.k);
        each(active, given, &FfnWeights::down);
        combine_rows(given, routing_, y, hidden, threads_);
        if (shape.shared_up) add_shared(shape, layer, x, y);
    }

    void add_shared(const FfnShape& shape, const LayerWeights& layer, const float* x, float* y) {
        float* shared = room(given_, rows_ * shape_.hidden);
        feed_forward(shape.gated, layer.shared, x, shared);
        if (shape.shared_gate) {
            float* gates = room(scores_, rows_);
            multiply(layer.shared_gate, x, gates, rows_);
            for (std::int64_t row = 0; row < rows_; ++row) {
                const float open = 1.0F / (1.0F + std::exp(-gates[row]));
                for (std::int64_t i = 0; i < shape_.hidden; ++i) shared[row * shape_.hidden + i] *= open;
            }
        }
        add(y, shared, rows_, shape_.hidden, threads_);
    }

    /// One more product to be run with those that were called since the last were.
    void call(const Linear& linear, float* y, std::int64_t rows) {
        calls_.push_back({.m = rows, .n = linear.n, .k = linear.k, .weights = linear.weights.view(), .y = y});
        called_.push_back(&linear);
    }
    /// The rows of x are theirs, one product after the other.
    void multiply_called(const float* x) {
        activations_.prepare(x, calls_, products_, threads_);
        bench::multiply(calls_, products_, threads_);
        for (std::size_t i = 0; i < calls_.size(); ++i) add_bias(calls_[i].y, called_[i]->bias, calls_[i].m, threads_);
        calls_.clear();
        called_.clear();
    }
    void multiply(const Linear& linear, const float* x, float* y, std::int64_t rows) {
        call(linear, y, rows);
        multiply_called(x);
    }
    /// All rows of each head.
    void multiply_each(const std::vector<Linear>& heads, const float* x, float* y) {
        for (const Linear& linear : heads) {
            call(linear, y, rows_);
            y += rows_ * linear.n;
        }
        multiply_called(x);
    }

    void norm(const float* x, float* y, std::int64_t rows) {
        if (shape_.layer_norms)
            layer_norm(x, gain_.data(), norm_bias_.data(), y, rows, shape_.hidden, threads_);
        else
            rms_norm(x, gain_.data(), y, rows, shape_.hidden, threads_);
    }

    /// Of the positions of this step, for heads of some width.
    const float* turns(std::int64_t dim) {
        const std::array<std::int64_t, 3> wanted = {dim, work_.context - work_.tokens, work_.tokens};
        const auto found = turns_.find(wanted);
        if (found != turns_.end()) return found->second.data();
        std::vector<float> table(size(work_.tokens * dim));
        rotary_table(table.data(), wanted[1], work_.tokens, dim);
        return turns_.emplace(wanted, std::move(table)).first->second.data();
    }

    StackShape shape_;
    StepWork largest_;
    Threads& threads_;
    const ProductKernels& products_ = best_products();
    std::vector<std::vector<LayerWeights>> kinds_;
    Linear head_;
    Memory table_, positions_;
    std::vector<float> gain_, norm_bias_;

    // Of the step that is run.
    StepWork work_;
    std::int64_t rows_ = 0;
    double clock_ = 0.0;
    Parts parts_;
    float* stream_ = nullptr;
    std::vector<std::int32_t> tokens_, chosen_;
    std::vector<float> logits_;

    // Rooms, kept between steps. What is in one is used up before another thing is put there.
    std::vector<float> stream_room_, normed_, attended_, result_;
    std::vector<float> wide_, active_, low_, entries_, queries_, wide_queries_, by_head_, mixed_;
    std::vector<float> expanded_, gated_, opened_;
    std::vector<float> scores_, taken_, given_;  // of a router, and rows that experts take and give back
    std::vector<LineOfFloats> keys_, values_;    // of latent entries, expanded
    std::map<std::array<std::int64_t, 3>, std::vector<float>> turns_;
    std::vector<ProductCall> calls_;
    std::vector<const Linear*> called_;
    Routing routing_;
    Activations activations_;
    AttentionScratch scratch_;
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
    if (shape.kv != DType::bf16 && shape.kv != DType::fp32)
        return fail(fmt::format("no processor kernel keeps a KV cache in {}", roofline::name(shape.kv)));
    for (const LayerShape& layer : shape.kinds) {
        const AttentionShape& attention = layer.attention;
        if (layer.state.heads > 0 && largest.tokens > 1) return fail("no kernel for prompts of layers with a state");
        for (const std::int64_t width : {attention.head_dim, attention.value_dim, attention.entry(), attention.rank}) {
            if (width % 32 != 0) return fail(fmt::format("heads of {} are no multiple of 32", width));
        }
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
