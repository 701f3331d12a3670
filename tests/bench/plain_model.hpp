// A model written down plainly in fp64, which steps are compared with.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "roofline/bench/numbers.hpp"
#include "roofline/bench/step.hpp"

namespace roofline::bench::testing {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

/// The same model written down plainly: a prompt of one sequence, all of it in fp64.
class Plain {
  public:
    Plain(const CpuModel& model, const StackShape& shape) : model_(model), shape_(shape) {}

    /// Logits of the last token; of one that comes again and again, where `same`.
    Row prefill(std::int64_t tokens, bool same = false) {
        for (std::int64_t t = 0; t < tokens; ++t) {
            const auto token = static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(same ? 0 : t)) % 300U);
            Row row;
            for (std::int64_t i = 0; i < shape_.hidden; ++i) {
                row.push_back(model_.embedding(token, i));
                if (shape_.positions > 0) row.back() += model_.position(t, i);
            }
            stream_.push_back(shape_.embedding_norm ? normed(row) : row);
        }
        for (kind_ = 0; kind_ < shape_.kinds.size(); ++kind_) {
            for (layer_ = 0; layer_ < shape_.kinds[kind_].count; ++layer_) run_layer(shape_.kinds[kind_]);
        }
        const Row last = shape_.final_norm ? normed(stream_.back()) : stream_.back();
        return multiply(CpuModel::Matrix::head, shape_.head, last);
    }

  private:
    Row normed(const Row& x) const { return shape_.layer_norms ? by_deviation(x) : by_square(x); }
    static Row by_square(const Row& x) {
        double square = 0.0;
        for (const double value : x) square += value * value;
        Row y = x;
        for (double& value : y) value /= std::sqrt(square / static_cast<double>(x.size()) + 1e-5);
        return y;
    }
    static Row by_deviation(const Row& x) {
        const auto count = static_cast<double>(x.size());
        double mean = 0.0;
        for (const double value : x) mean += value / count;
        double square = 0.0;
        for (const double value : x) square += (value - mean) * (value - mean);
        Row y = x;
        for (double& value : y) value = (value - mean) / std::sqrt(square / count + 1e-5) + double{CpuModel::bias};
        return y;
    }
    Row multiply(CpuModel::Matrix which, const ProductShape& shape, const Row& x, std::int64_t expert = 0) const {
        Row y(static_cast<std::size_t>(shape.n), shape.bias ? double{CpuModel::bias} : 0.0);
        for (std::int64_t row = 0; row < shape.n; ++row) {
            for (std::size_t i = 0; i < x.size(); ++i)
                y[static_cast<std::size_t>(row)] +=
                    model_.weight({which, kind_, layer_, expert}, row, static_cast<std::int64_t>(i)) * x[i];
        }
        return y;
    }
    static Row part(const Row& x, std::int64_t first, std::int64_t count) {
        return {x.begin() + first, x.begin() + first + count};
    }
    static void put(Row& x, std::int64_t first, const Row& what) {
        std::copy(what.begin(), what.end(), x.begin() + first);
    }
    /// Halves turned against each other.
    static Row turned(const Row& x, std::int64_t position) {
        Row y = x;
        const std::size_t half = x.size() / 2;
        for (std::size_t i = 0; i < half; ++i) {
            const double angle = static_cast<double>(position) *
                                 std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(x.size()));
            y[i] = x[i] * std::cos(angle) - x[i + half] * std::sin(angle);
            y[i + half] = x[i + half] * std::cos(angle) + x[i] * std::sin(angle);
        }
        return y;
    }

    /// Queries, keys and values of a token, by heads.
    struct Heads {
        Rows queries, keys, values;
        Row gates;
        Rows index_queries;
        Row index_key, index_shares;
    };
    Heads heads_of(const AttentionShape& shape, const Row& x, std::int64_t position) const {
        Heads heads;
        if (shape.latent()) {
            const Row low = shape.q_down ? by_square(multiply(CpuModel::Matrix::q_down, shape.q_down, x)) : x;
            const Row q = multiply(CpuModel::Matrix::q, shape.q, low);
            const Row entry = multiply(CpuModel::Matrix::kv_down, shape.kv_down, x);
            const Row made = multiply(CpuModel::Matrix::kv_up, shape.kv_up, by_square(part(entry, 0, shape.rank)));
            const Row key_end = turned(part(entry, shape.rank, shape.rope_dim), position);
            const std::int64_t each = shape.unturned() + shape.value_dim;
            for (std::int64_t head = 0; head < shape.query_heads; ++head) {
                Row query = part(q, head * shape.head_dim, shape.head_dim);
                put(query, shape.unturned(), turned(part(query, shape.unturned(), shape.rope_dim), position));
                Row key = part(made, head * each, shape.unturned());
                key.insert(key.end(), key_end.begin(), key_end.end());
                heads.queries.push_back(query);
                heads.keys.push_back(key);
                heads.values.push_back(part(made, head * each + shape.unturned(), shape.value_dim));
            }
            const IndexerShape& indexer = shape.indexer;
            if (indexer.heads == 0) return heads;
            const auto prepared = [&](Row row) {
                put(row, 0, turned(part(row, 0, shape.rope_dim), position));
                return in_bytes(row);
            };
            const Row small = multiply(CpuModel::Matrix::index_query, indexer.query, low);
            for (std::int64_t head = 0; head < indexer.heads; ++head)
                heads.index_queries.push_back(prepared(part(small, head * indexer.dim, indexer.dim)));
            const Row small_key = multiply(CpuModel::Matrix::index_key, indexer.key, x);
            heads.index_key = prepared(by_square(part(small_key, 0, indexer.dim)));
            heads.index_shares = part(small_key, indexer.dim, indexer.heads);
            return heads;
        }
        Row qkv = multiply(CpuModel::Matrix::qkv, shape.qkv, x);
        const std::int64_t d = shape.head_dim;
        const std::int64_t keys = shape.query_heads * d;
        const std::int64_t values = keys + (shape.keys_as_values ? 0 : shape.kv_heads * d);
        const Row made = qkv;
        if (shape.norm == HeadNorm::whole_width) {
            put(qkv, 0, by_square(part(qkv, 0, keys)));
            put(qkv, keys, by_square(part(qkv, keys, values - keys)));
        }
        const auto prepared = [&](std::int64_t at) {
            Row head = part(qkv, at, d);
            if (shape.norm == HeadNorm::each_head) head = by_square(head);
            return shape.rotary ? turned(head, position) : head;
        };
        for (std::int64_t head = 0; head < shape.query_heads; ++head) {
            const std::int64_t kv_head = head / (shape.query_heads / shape.kv_heads);
            heads.queries.push_back(prepared(head * d));
            heads.keys.push_back(prepared(keys + kv_head * d));
            heads.values.push_back(part(made, values + kv_head * d, d));
        }
        if (shape.gated) heads.gates = part(qkv, values + shape.kv_heads * d, shape.gates());
        return heads;
    }
    /// Rounded to multiples of a 127th of the largest.
    static Row in_bytes(Row x) {
        double largest = 0.0;
        for (const double value : x) largest = std::max(largest, std::abs(value));
        for (double& value : x) value = std::round(value / largest * 127.0) * largest / 127.0;
        return x;
    }
    /// The tokens that one sees, of which an indexer (or that of a layer before) chooses some.
    const std::vector<std::size_t>& seen_by(const AttentionShape& shape, const std::vector<Heads>& tokens,
                                            std::size_t t) {
        chosen_.resize(tokens.size());
        std::vector<std::size_t>& seen = chosen_[t];
        if (shape.chosen > 0 && shape.indexer.heads == 0) return seen;
        const auto window = static_cast<std::size_t>(shape.window);
        seen.clear();
        for (std::size_t p = window > 0 && t + 1 > window ? t + 1 - window : 0; p <= t; ++p) seen.push_back(p);
        if (shape.chosen == 0 || static_cast<std::int64_t>(seen.size()) <= shape.chosen) return seen;
        Row scores;
        for (const std::size_t p : seen) {
            double score = 0.0;
            for (std::size_t head = 0; head < tokens[t].index_queries.size(); ++head) {
                const Row& query = tokens[t].index_queries[head];
                const double dot = std::inner_product(query.begin(), query.end(), tokens[p].index_key.begin(), 0.0);
                score += tokens[t].index_shares[head] * std::max(0.0, dot);
            }
            scores.push_back(score);
        }
        std::sort(seen.begin(), seen.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
        seen.resize(static_cast<std::size_t>(shape.chosen));
        return seen;
    }
    Row attention(const AttentionShape& shape, const std::vector<Heads>& tokens, std::size_t t) {
        Row mixed_row;
        const std::vector<std::size_t>& seen = seen_by(shape, tokens, t);
        for (std::size_t head = 0; head < tokens[t].queries.size(); ++head) {
            const Row& query = tokens[t].queries[head];
            Row weights;
            double total = shape.sinks ? std::exp(1.0) : 0.0;  // every gain is 1, and so is every sink
            for (const std::size_t p : seen) {
                double dot = 0.0;
                for (std::size_t i = 0; i < query.size(); ++i) dot += query[i] * tokens[p].keys[head][i];
                weights.push_back(std::exp(dot / std::sqrt(static_cast<double>(query.size()))));
                total += weights.back();
            }
            Row sum(tokens[t].values[head].size());
            for (std::size_t at = 0; at < seen.size(); ++at) {
                for (std::size_t i = 0; i < sum.size(); ++i)
                    sum[i] += weights[at] / total * tokens[seen[at]].values[head][i];
            }
            mixed_row.insert(mixed_row.end(), sum.begin(), sum.end());
        }
        const Row& gates = tokens[t].gates;
        for (std::size_t i = 0; !gates.empty() && i < mixed_row.size(); ++i)
            mixed_row[i] /= 1.0 + std::exp(-gates[i / (mixed_row.size() / gates.size())]);
        return multiply(CpuModel::Matrix::out, shape.out, mixed_row);
    }

    static Row activated(const Row& wide, bool gated) {
        Row y(gated ? wide.size() / 2 : wide.size());
        for (std::size_t i = 0; i < y.size(); ++i) {
            const double u = std::sqrt(2.0 / std::numbers::pi) * (wide[i] + 0.044715 * std::pow(wide[i], 3.0));
            y[i] = gated ? wide[i] / (1.0 + std::exp(-wide[i])) * wide[i + y.size()]
                         : 0.5 * wide[i] * (1.0 + std::tanh(u));
        }
        return y;
    }
    Row ffn(const FfnShape& shape, const Row& x) const {
        const Row read = shape.norms_apart ? normed(x) : x;
        const Row seen = shape.latent_down ? multiply(CpuModel::Matrix::latent_down, shape.latent_down, read) : read;
        const auto of_expert = [&](std::int64_t expert) {
            const Row wide = multiply(CpuModel::Matrix::up, shape.up, seen, expert);
            return multiply(CpuModel::Matrix::down, shape.down, activated(wide, shape.gated), expert);
        };
        if (shape.experts == 0) return of_expert(0);
        // One after the other the experts with the highest scores, and the softmax over these.
        Row scores = multiply(CpuModel::Matrix::router, shape.router, read);
        std::vector<std::pair<std::int64_t, double>> chosen;
        double total = 0.0;
        for (std::int64_t i = 0; i < shape.chosen; ++i) {
            const auto best = std::max_element(scores.begin(), scores.end());
            chosen.emplace_back(best - scores.begin(), std::exp(*best));
            total += chosen.back().second;
            *best = -1e300;
        }
        Row sum(seen.size());
        for (const auto& [expert, weight] : chosen) add(sum, of_expert(expert), weight / total);
        if (shape.latent_up) sum = multiply(CpuModel::Matrix::latent_up, shape.latent_up, sum);
        if (shape.norms_apart) sum = normed(sum);
        if (!shape.shared_up) return sum;
        const Row wide = multiply(CpuModel::Matrix::shared_up, shape.shared_up, x);
        const Row shared = multiply(CpuModel::Matrix::shared_down, shape.shared_down, activated(wide, shape.gated));
        double open = 1.0;
        if (shape.shared_gate)
            open = 1.0 / (1.0 + std::exp(-multiply(CpuModel::Matrix::shared_gate, shape.shared_gate, x)[0]));
        add(sum, shape.norms_apart ? normed(shared) : shared, open);
        return sum;
    }
    static void add(Row& to, const Row& what, double times = 1.0) {
        for (std::size_t i = 0; i < to.size(); ++i) to[i] += times * what[i];
    }

    /// The last of these rows, which follow each other, through a short convolution.
    Row convolved_row(std::int64_t taps, const Rows& inputs, bool plain = false) const {
        Row convolved(inputs.back().size());
        for (std::int64_t c = 0; c < static_cast<std::int64_t>(convolved.size()); ++c) {
            double sum = double{CpuModel::bias};
            for (std::int64_t tap = 0; tap < taps; ++tap) {
                const std::int64_t at = static_cast<std::int64_t>(inputs.size()) - taps + tap;
                if (at < 0) continue;
                sum += model_.weight({CpuModel::Matrix::taps, kind_, layer_}, tap, c) *
                       inputs[static_cast<std::size_t>(at)][static_cast<std::size_t>(c)];
            }
            convolved[static_cast<std::size_t>(c)] = plain ? sum : sum / (1.0 + std::exp(-sum));
        }
        return convolved;
    }

    /// A gated delta net, token by token from nothing; every rate is 1. A state has a row for each value.
    Rows delta_net(const StateMixerShape& shape, const Rows& seen) const {
        const auto unit = [](Row row) {
            double square = 1e-6;
            for (const double value : row) square += value * value;
            for (double& value : row) value /= std::sqrt(square);
            return row;
        };
        const std::int64_t keys = shape.groups * shape.key_dim;
        Rows inputs;
        Rows states(static_cast<std::size_t>(shape.values()), Row(static_cast<std::size_t>(shape.key_dim)));
        Rows results;
        for (const Row& x : seen) {
            const Row wide = multiply(CpuModel::Matrix::in, shape.in, x);
            inputs.push_back(part(wide, 0, shape.channels()));
            const Row convolved = convolved_row(shape.taps, inputs);
            const Row gates = part(wide, shape.channels(), shape.values());
            const Row steps = part(wide, shape.channels() + shape.values(), shape.heads);
            const Row shares = part(wide, shape.channels() + shape.values() + shape.heads, shape.heads);
            Row mixed;
            for (std::int64_t head = 0; head < shape.heads; ++head) {
                const std::int64_t group = head / (shape.heads / shape.groups);
                const Row query = unit(part(convolved, group * shape.key_dim, shape.key_dim));
                const Row key = unit(part(convolved, keys + group * shape.key_dim, shape.key_dim));
                const double decay = 1.0 / (1.0 + std::exp(steps[static_cast<std::size_t>(head)]));
                const double share = 1.0 / (1.0 + std::exp(-shares[static_cast<std::size_t>(head)]));
                Row found;
                for (std::int64_t v = head * shape.value_dim; v < (head + 1) * shape.value_dim; ++v) {
                    Row& state = states[static_cast<std::size_t>(v)];
                    double known = 0.0;
                    for (std::size_t i = 0; i < key.size(); ++i) known += (state[i] *= decay) * key[i];
                    const double change = share * (convolved[static_cast<std::size_t>(2 * keys + v)] - known);
                    double y = 0.0;
                    for (std::size_t i = 0; i < key.size(); ++i) y += (state[i] += change * key[i]) * query[i];
                    found.push_back(y);
                }
                found = by_square(found);
                for (std::size_t i = 0; i < found.size(); ++i) {
                    const double gate = gates[static_cast<std::size_t>(head * shape.value_dim) + i];
                    mixed.push_back(found[i] * gate / (1.0 + std::exp(-gate)));
                }
            }
            results.push_back(multiply(CpuModel::Matrix::out, shape.out, mixed));
        }
        return results;
    }

    /// Mamba-2, token by token from nothing; every rate is 1.
    Rows state_space(const StateMixerShape& shape, const Rows& seen) const {
        const std::int64_t channels = shape.channels();
        const std::int64_t values = shape.values();
        Rows inputs;
        Rows states(static_cast<std::size_t>(values), Row(static_cast<std::size_t>(shape.key_dim)));
        Rows results;
        for (const Row& x : seen) {
            const Row wide = multiply(CpuModel::Matrix::in, shape.in, x);
            inputs.push_back(part(wide, values, channels));
            const Row convolved = convolved_row(shape.taps, inputs);
            Row gated;
            for (std::int64_t v = 0; v < values; ++v) {
                const std::int64_t head = v / shape.value_dim;
                const std::int64_t group = head / (shape.heads / shape.groups);
                const Row key = part(convolved, values + group * shape.key_dim, shape.key_dim);
                const Row query = part(convolved, values + (shape.groups + group) * shape.key_dim, shape.key_dim);
                const double step = std::log1p(std::exp(wide[static_cast<std::size_t>(values + channels + head)]));
                const double value = convolved[static_cast<std::size_t>(v)];
                Row& state = states[static_cast<std::size_t>(v)];
                double y = double{CpuModel::bias} * value;
                for (std::size_t i = 0; i < state.size(); ++i) {
                    state[i] = std::exp(-step) * state[i] + step * value * key[i];
                    y += state[i] * query[i];
                }
                const double gate = wide[static_cast<std::size_t>(v)];
                gated.push_back(y * gate / (1.0 + std::exp(-gate)));
            }
            results.push_back(multiply(CpuModel::Matrix::out, shape.out, by_square(gated)));
        }
        return results;
    }

    /// Mamba-1, token by token from nothing; every rate is 1.
    Rows selective_states(const ChannelMixerShape& shape, const Rows& seen) const {
        const std::int64_t channels = shape.channels;
        const std::int64_t rank = shape.step.k;
        Rows inputs;
        Rows states(static_cast<std::size_t>(channels), Row(static_cast<std::size_t>(shape.key_dim)));
        Rows results;
        for (const Row& x : seen) {
            const Row wide = multiply(CpuModel::Matrix::in, shape.in, x);
            inputs.push_back(part(wide, 0, channels));
            const Row values = convolved_row(shape.taps, inputs);
            const Row selected = multiply(CpuModel::Matrix::select, shape.select, values);
            const auto chosen = [&](std::int64_t first, std::int64_t count) {
                const Row own = part(selected, first, count);
                return shape.norms ? by_square(own) : own;
            };
            const Row steps = multiply(CpuModel::Matrix::step, shape.step, chosen(0, rank));
            const Row keys = chosen(rank, shape.key_dim);
            const Row queries = chosen(rank + shape.key_dim, shape.key_dim);
            Row mixed;
            for (std::size_t c = 0; c < values.size(); ++c) {
                const double step = std::log1p(std::exp(steps[c]));
                double y = double{CpuModel::bias} * values[c];
                for (std::size_t i = 0; i < keys.size(); ++i) {
                    states[c][i] = std::exp(-step) * states[c][i] + step * values[c] * keys[i];
                    y += states[c][i] * queries[i];
                }
                const double gate = wide[static_cast<std::size_t>(channels) + c];
                mixed.push_back(y * gate / (1.0 + std::exp(-gate)));
            }
            results.push_back(multiply(CpuModel::Matrix::out, shape.out, mixed));
        }
        return results;
    }

    /// LFM2: a short convolution between two gates.
    Rows gated_convolution(const ChannelMixerShape& shape, const Rows& seen) const {
        Rows inputs;
        Rows results;
        for (const Row& x : seen) {
            const Row wide = multiply(CpuModel::Matrix::in, shape.in, x);
            Row gated = part(wide, 0, shape.channels);
            const Row values = part(wide, 2 * shape.channels, shape.channels);
            for (std::size_t c = 0; c < gated.size(); ++c) gated[c] *= values[c];
            inputs.push_back(gated);
            Row mixed = convolved_row(shape.taps, inputs, true);
            for (std::size_t c = 0; c < mixed.size(); ++c)
                mixed[c] *= wide[static_cast<std::size_t>(shape.channels) + c];
            results.push_back(multiply(CpuModel::Matrix::out, shape.out, mixed));
        }
        return results;
    }

    Rows mixed_by_states(const LayerShape& layer, const Rows& seen) const {
        if (layer.state.heads > 0)
            return layer.state.delta ? delta_net(layer.state, seen) : state_space(layer.state, seen);
        return layer.channels.key_dim > 0 ? selective_states(layer.channels, seen)
                                          : gated_convolution(layer.channels, seen);
    }

    void run_layer(const LayerShape& layer) {
        if (layer.state.heads > 0 || layer.channels.channels > 0) {
            Rows seen;
            for (const Row& row : stream_) seen.push_back(layer.norm_before_attention ? normed(row) : row);
            const Rows results = mixed_by_states(layer, seen);
            for (std::size_t t = 0; t < stream_.size(); ++t) add(stream_[t], results[t]);
        }
        if (layer.attention.query_heads == 0) {
            if (!layer.ffn.up) return;
            for (Row& row : stream_) add(row, ffn(layer.ffn, layer.norm_before_ffn ? normed(row) : row));
            return;
        }
        std::vector<Heads> tokens;
        Rows seen;
        for (std::size_t t = 0; t < stream_.size(); ++t) {
            seen.push_back(layer.norm_before_attention ? normed(stream_[t]) : stream_[t]);
            tokens.push_back(heads_of(layer.attention, seen[t], static_cast<std::int64_t>(t)));
        }
        for (std::size_t t = 0; t < stream_.size(); ++t) {
            Row attended = attention(layer.attention, tokens, t);
            if (layer.norm_after_attention) attended = normed(attended);
            if (!layer.parallel) add(stream_[t], attended);
            Row input = layer.norm_before_ffn ? normed(stream_[t]) : layer.parallel ? seen[t] : stream_[t];
            Row result = ffn(layer.ffn, input);
            if (layer.norm_after_ffn) result = normed(result);
            if (layer.parallel) add(stream_[t], attended);
            add(stream_[t], result);
        }
    }

    const CpuModel& model_;
    const StackShape& shape_;
    Rows stream_;
    std::size_t kind_ = 0;
    std::int64_t layer_ = 0;
    std::vector<std::vector<std::size_t>> chosen_;  // of the last layer that chose what tokens see
};

}  // namespace roofline::bench::testing
