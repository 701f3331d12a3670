// A whole step of a small model in float64 on the host, from the device's own weights: it says whether the kernels of a
// step are put together rightly. Intermediate values are not rounded here, on the device they are bf16: so the two
// differ by a percent or two after a few layers. Only what a step makes narrower than bf16 is made so here too.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "roofline/bench/cuda/model_check.hpp"
#include "roofline/bench/cuda/reference.hpp"
#include "roofline/bench/cuda/state_reference.hpp"

namespace roofline::cuda::kernels {

namespace {

using Values = std::vector<double>;
using Activations = std::vector<Values>;  // row by row

std::size_t extent(std::int64_t size) {
    return static_cast<std::size_t>(size);
}

/// `count` numbers of those that lie in memory, without scales.
Values numbers_of(const Memory& memory, Format format, std::size_t first, std::size_t count) {
    const auto width = static_cast<std::size_t>(bits(format));
    const auto raw = copied(memory.at(first * width / 8), count * width / 8);
    Values values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = decode(raw.data(), i, format);
    return values;
}

/// All bf16 numbers of a vector; none where there is no vector.
Values vector_of(const Memory& memory) {
    if (memory.bytes() == 0) return {};
    return numbers_of(memory, Format::bf16, 0, memory.bytes() / 2);
}

double dot(const double* a, const double* b, std::size_t count) {
    return std::inner_product(a, a + count, b, 0.0);
}

/// What is left of a row of activations that is made narrow beside such weights.
Values narrowed(const double* x, std::size_t count, Format weights) {
    Values row(x, x + count);
    const std::size_t run = weights == Format::fp8_block ? 128 : count;
    const bool whole = weights == Format::int8;
    for (std::size_t first = 0; first < count; first += run) {
        const std::size_t end = std::min(first + run, count);
        double largest = 1e-30;
        for (std::size_t i = first; i < end; ++i) largest = std::max(largest, std::abs(row[i]));
        const double scale = largest / (whole ? 127.0 : static_cast<double>(e4m3_largest));
        for (std::size_t i = first; i < end; ++i) {
            row[i] = scale * (whole ? std::nearbyint(row[i] / scale) : nearest_e4m3(row[i] / scale));
        }
    }
    return row;
}

/// y[n] = W[n, k] x[k] + bias[n]: a matrix, or several one after another. `narrows`: of x made narrow.
class Decoded {
  public:
    explicit Decoded(const Matrix& matrix, bool narrows = false)
        : n_(extent(matrix.n) * extent(matrix.weights.matrices())),
          k_(extent(matrix.k)),
          narrows_(narrows),
          format_(matrix.weights.format()),
          bias_(vector_of(matrix.bias)) {
        weights_.reserve(n_ * k_);
        for (int one = 0; one < matrix.weights.matrices(); ++one) {
            std::ranges::copy(matrix.weights.rows(one, 0, matrix.n), std::back_inserter(weights_));
        }
    }

    /// `count` numbers of y, from `first` on.
    Values multiply(const double* x, std::size_t first, std::size_t count) const {
        const Values narrow = narrows_ ? narrowed(x, k_, format_) : Values{};
        if (narrows_) x = narrow.data();
        Values y(count);
        for (std::size_t i = 0; i < count; ++i) {
            y[i] = dot(weights_.data() + (first + i) * k_, x, k_) + (bias_.empty() ? 0.0 : bias_[first + i]);
        }
        return y;
    }
    Values multiply(const Values& x) const { return multiply(x.data(), 0, n_); }
    Activations multiply(const Activations& rows) const {
        Activations results;
        for (const Values& row : rows) results.push_back(multiply(row));
        return results;
    }
    std::size_t k() const { return k_; }

  private:
    std::size_t n_;
    std::size_t k_;
    bool narrows_;
    Format format_;
    Values weights_;
    Values bias_;
};

void add_to(Values& to, const Values& x) {
    for (std::size_t i = 0; i < x.size(); ++i) to[i] += x[i];
}

void add_to(Activations& to, const Activations& x) {
    for (std::size_t row = 0; row < x.size(); ++row) add_to(to[row], x[row]);
}

void divide_by_root_mean_square(double* x, const double* gains, std::size_t count) {
    const double factor = 1.0 / std::sqrt(dot(x, x, count) / static_cast<double>(count) + 1e-5);
    for (std::size_t i = 0; i < count; ++i) x[i] *= factor * gains[i];
}

void take_off_mean(Values& x) {
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    for (double& value : x) value -= mean;
}

void turn(double* head, std::size_t dimension, double position) {
    const std::size_t half = dimension / 2;
    for (std::size_t i = 0; i < half; ++i) {
        const double angle = position * std::pow(500000.0, -static_cast<double>(i) / static_cast<double>(half));
        const double low = head[i];
        const double high = head[half + i];
        head[i] = low * std::cos(angle) - high * std::sin(angle);
        head[half + i] = high * std::cos(angle) + low * std::sin(angle);
    }
}

/// Shares by the exponents of scores, in their place.
void make_shares(Values& scores) {
    const double highest = *std::max_element(scores.begin(), scores.end());
    double total = 0.0;
    for (double& score : scores) total += score = std::exp(score - highest);
    for (double& score : scores) score /= total;
}

/// Keys or values, each the first `width` of `pitch` numbers.
struct Entries {
    const Values& numbers;
    std::size_t width;
    std::size_t pitch;

    const double* operator[](std::size_t i) const { return numbers.data() + i * pitch; }
};

/// The entries that a query sees.
struct Reach {
    std::size_t first;
    std::size_t end;
};

/// What one head finds for a query; `unit` is that of its scores. `sink`: the score of an entry without a value, where
/// there is one.
Values found_by(const double* query, const Entries& keys, const Entries& values, const Reach& reach, double unit,
                const float* sink = nullptr) {
    Values shares;
    for (std::size_t i = reach.first; i < reach.end; ++i) shares.push_back(unit * dot(query, keys[i], keys.width));
    if (sink != nullptr) shares.push_back(static_cast<double>(*sink));
    make_shares(shares);
    Values result(values.width, 0.0);
    for (std::size_t i = reach.first; i < reach.end; ++i) {
        for (std::size_t j = 0; j < result.size(); ++j) result[j] += shares[i - reach.first] * values[i][j];
    }
    return result;
}

double silu(double x) {
    return x / (1.0 + std::exp(-x));
}

double gelu_by_tangent(double x) {
    return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

/// An FFN's weights, or those of several, one after another.
struct Ffn {
    Decoded up;
    Decoded down;
    std::size_t hidden;
    bool gated;

    /// to += share times what the FFN of this number makes of x.
    void add(std::size_t number, double share, const Values& x, Values& to) const {
        const std::size_t width = down.k();
        const std::size_t wide = gated ? 2 * width : width;
        const Values raised = up.multiply(x.data(), number * wide, wide);
        Values activated(width);
        for (std::size_t i = 0; i < width; ++i) {
            activated[i] = gated ? silu(raised[i]) * raised[width + i] : gelu_by_tangent(raised[i]);
        }
        const Values result = down.multiply(activated.data(), number * hidden, hidden);
        for (std::size_t i = 0; i < hidden; ++i) to[i] += share * result[i];
    }
};

/// Whether these experts, each another, are those with the highest scores: but for what activations and scores may
/// differ by, a share of the highest, so that of two that are nearly equal either may be there.
bool well_chosen(const Values& scores, const std::vector<int>& experts, double share) {
    double size = 0.0;
    for (const double score : scores) size = std::max(size, std::abs(score));
    std::vector<bool> taken(scores.size(), false);
    double lowest = 1e300;
    for (const int expert : experts) {
        const auto at = static_cast<std::size_t>(expert);
        if (expert < 0 || at >= scores.size() || taken[at]) return false;
        taken[at] = true;
        lowest = std::min(lowest, scores[at]);
    }
    for (std::size_t i = 0; i < scores.size(); ++i) {
        if (!taken[i] && scores[i] > lowest + share * size) return false;
    }
    return true;
}

/// The model's step. A row is a new token of a sequence.
class Forward {
  public:
    explicit Forward(const Model& model)
        : model_(model),
          stack_(model.stack()),
          sequences_(extent(model.step().batch)),
          tokens_(extent(model.step().tokens)),
          context_(extent(model.step().context)),
          hidden_(extent(stack_.hidden)) {}

    /// Of each sequence's last token.
    Activations logits() {
        embed_tokens();
        for (std::size_t kind = 0; kind < stack_.kinds.size(); ++kind) {
            for (int index = 0; index < size_of(stack_.kinds[kind].count); ++index) run_layer(kind, index);
        }
        Activations last;
        for (std::size_t i = 1; i <= sequences_; ++i) last.push_back(stream_[i * tokens_ - 1]);
        return Decoded(model_.head_matrix(), model_.head_narrows())
            .multiply(normed(std::move(last), model_.final_norm()));
    }
    /// Whether a row went to other experts than it should have.
    bool astray() const { return astray_; }

  private:
    /// Latent attention: queries of all heads and the entry of each row, turned.
    struct Latent {
        Activations queries;
        Activations entries;
    };

    void embed_tokens();
    void run_layer(std::size_t kind, int index);
    Activations normed(Activations rows, const Norm& norm) const;

    Activations attend_to_heads(const AttentionShape& shape, const LayerWeights& own, const Activations& x) const;
    void norm_heads_of(const AttentionShape& shape, const LayerWeights& own, Activations& heads) const;
    Latent latent_rows(const AttentionShape& shape, const LayerWeights& own, const Activations& x) const;
    Activations attend_to_entries(const AttentionShape& shape, const LayerWeights& own, const Activations& x) const;
    Activations attend_to_expanded(const AttentionShape& shape, const LayerWeights& own, const Activations& x) const;
    Activations attend(const LayerShape& layer, const LayerWeights& own, const Activations& x) const;

    Activations feed_forward(std::size_t kind, int index, const Activations& x);
    void add_experts(std::size_t kind, int index, const Activations& x, Activations& to);
    void add_shared(const FfnShape& shape, const LayerWeights& own, const Activations& x, Activations& to) const;

    /// A matrix of the kind of layer at hand, multiplied as the model's step does it.
    Decoded decoded(Model::Which which, const Matrix& matrix) const {
        return Decoded(matrix, model_.narrows(kind_, which));
    }

    std::size_t position(std::size_t row) const { return context_ - tokens_ + row % tokens_; }
    std::size_t kept(const AttentionShape& shape) const {
        return extent(shape.kept(model_.step().tokens, model_.step().context));
    }
    Reach reach(const AttentionShape& shape, std::size_t token) const {
        const std::size_t end = kept(shape) - tokens_ + token + 1;
        const std::size_t window = extent(shape.window);
        return {window > 0 && end > window ? end - window : 0, end};
    }
    /// The newest entries of a sequence, in place of what a cache has there: of each row what begins at `from`.
    void put_newest(Values& entries, std::size_t width, const Activations& rows, std::size_t sequence,
                    std::size_t from) const {
        double* to = entries.data() + entries.size() - tokens_ * width;
        for (std::size_t token = 0; token < tokens_; ++token) {
            const double* row = rows[sequence * tokens_ + token].data() + from;
            std::copy(row, row + width, to + token * width);
        }
    }

    const Model& model_;
    const StackShape& stack_;
    std::size_t sequences_;
    std::size_t tokens_;
    std::size_t context_;
    std::size_t hidden_;
    std::size_t kind_ = 0;  // of layers
    Activations stream_;
    bool astray_ = false;
};

void Forward::embed_tokens() {
    const auto row_of = [&](const Memory& table, std::size_t row) {
        return numbers_of(table, Format::bf16, row * hidden_, hidden_);
    };
    for (const int number : model_.token_numbers()) {
        const std::size_t row = stream_.size();
        stream_.push_back(row_of(model_.embedding(), extent(number)));
        if (stack_.positions > 0) {
            add_to(stream_.back(), row_of(model_.positions(), position(row) % extent(stack_.positions)));
        }
    }
    stream_ = normed(std::move(stream_), model_.embedding_norm());
}

/// As they are where there is no norm.
Activations Forward::normed(Activations rows, const Norm& norm) const {
    if (!norm) return rows;
    const Values gains = vector_of(norm.gains);
    const Values bias = stack_.layer_norms ? vector_of(norm.bias) : Values{};
    for (Values& row : rows) {
        if (stack_.layer_norms) take_off_mean(row);
        divide_by_root_mean_square(row.data(), gains.data(), row.size());
        add_to(row, bias);
    }
    return rows;
}

void Forward::run_layer(std::size_t kind, int index) {
    kind_ = kind;
    const LayerShape& shape = stack_.kinds[kind];
    const LayerWeights& own = model_.layer(kind, index);
    Activations seen;
    Activations attended;
    if (shape.attention.query_heads > 0 || shape.state.heads > 0) {
        seen = normed(stream_, own.before_attention);
        attended = normed(attend(shape, own, seen), own.after_attention);
        if (!shape.parallel) add_to(stream_, attended);
    }
    if (shape.ffn.up) {
        const bool same_input = shape.parallel && !own.before_ffn;
        const Activations fed = feed_forward(kind, index, same_input ? seen : normed(stream_, own.before_ffn));
        add_to(stream_, normed(fed, own.after_ffn));
    }
    if (shape.parallel) add_to(stream_, attended);
}

Activations Forward::attend(const LayerShape& layer, const LayerWeights& own, const Activations& x) const {
    const AttentionShape& shape = layer.attention;
    const Decoded out = decoded(Model::out, own.out);
    if (layer.state.heads > 0) {
        return out.multiply(
            mixed_by_states(layer.state, own.state, model_.step(), decoded(Model::qkv, own.qkv).multiply(x)));
    }
    return out.multiply(!shape.latent()          ? attend_to_heads(shape, own, x)
                        : model_.step().expanded ? attend_to_expanded(shape, own, x)
                                                 : attend_to_entries(shape, own, x));
}

void Forward::norm_heads_of(const AttentionShape& shape, const LayerWeights& own, Activations& heads) const {
    const std::size_t dimension = extent(shape.head_dim);
    const std::size_t queries = extent(shape.query_heads) * dimension;
    const std::size_t keys = extent(shape.kv_heads) * dimension;
    const Values gains = vector_of(own.head_norms);
    for (Values& row : heads) {
        if (shape.norm == HeadNorm::whole_width) {
            divide_by_root_mean_square(row.data(), gains.data(), queries);
            divide_by_root_mean_square(row.data() + queries, gains.data() + queries, keys);
        } else if (shape.norm == HeadNorm::each_head) {
            for (std::size_t at = 0; at < queries + keys; at += dimension) {
                divide_by_root_mean_square(row.data() + at, gains.data() + (at < queries ? 0 : dimension), dimension);
            }
        }
    }
}

Activations Forward::attend_to_heads(const AttentionShape& shape, const LayerWeights& own, const Activations& x) const {
    const std::size_t dimension = extent(shape.head_dim);
    const std::size_t query_heads = extent(shape.query_heads);
    const std::size_t kv_heads = extent(shape.kv_heads);
    const std::size_t group = query_heads / kv_heads;
    const std::size_t numbers = kept(shape) * dimension;  // of the keys of a head
    const double unit = 1.0 / std::sqrt(static_cast<double>(dimension));
    Activations heads = decoded(Model::qkv, own.qkv).multiply(x);
    norm_heads_of(shape, own, heads);
    for (std::size_t row = 0; shape.rotary && row < heads.size(); ++row) {
        for (std::size_t head = 0; head < query_heads + kv_heads; ++head) {
            turn(heads[row].data() + head * dimension, dimension, static_cast<double>(position(row)));
        }
    }
    const auto sinks = copied(own.sinks.at<float>(), own.sinks.bytes() / sizeof(float));
    Activations results(heads.size(), Values(query_heads * dimension));
    for (std::size_t cached = 0; cached < sequences_ * kv_heads; ++cached) {
        const std::size_t sequence = cached / kv_heads;
        const std::size_t kv = cached % kv_heads;
        const auto entries_of = [&](const Memory& cache, std::size_t first_head) {
            Values entries = numbers_of(cache, format_of(stack_.kv), cached * numbers, numbers);
            put_newest(entries, dimension, heads, sequence, (first_head + kv) * dimension);
            return entries;
        };
        const Values keys = entries_of(own.keys, query_heads);
        const Values values = entries_of(own.values, query_heads + kv_heads);
        const Entries all_keys{keys, dimension, dimension};
        const Entries all_values{values, dimension, dimension};
        for (std::size_t token = 0; token < tokens_; ++token) {
            const std::size_t row = sequence * tokens_ + token;
            for (std::size_t at = kv * group * dimension; at < (kv + 1) * group * dimension; at += dimension) {
                const float* sink = sinks.empty() ? nullptr : &sinks[at / dimension];
                const Values result =
                    found_by(heads[row].data() + at, all_keys, all_values, reach(shape, token), unit, sink);
                std::copy(result.begin(), result.end(), results[row].data() + at);
            }
        }
    }
    for (std::size_t row = 0; shape.gated && row < heads.size(); ++row) {
        const double* gates = heads[row].data() + (query_heads + 2 * kv_heads) * dimension;
        for (std::size_t i = 0; i < results[row].size(); ++i) results[row][i] /= 1.0 + std::exp(-gates[i]);
    }
    return results;
}

Forward::Latent Forward::latent_rows(const AttentionShape& shape, const LayerWeights& own, const Activations& x) const {
    const std::size_t dimension = extent(shape.head_dim);
    const std::size_t turned = extent(shape.rope_dim);
    const std::size_t rank = extent(shape.rank);
    const Values entry_gains = vector_of(own.entry_norm);
    Latent latent;
    for (const Values& row : decoded(Model::qkv, own.qkv).multiply(x)) {
        const auto split = row.end() - static_cast<std::ptrdiff_t>(shape.entry());
        latent.queries.emplace_back(row.begin(), split);
        latent.entries.emplace_back(split, row.end());
    }
    if (shape.q_down) {
        const Values query_gains = vector_of(own.query_norm);
        for (Values& low : latent.queries) divide_by_root_mean_square(low.data(), query_gains.data(), low.size());
        latent.queries = decoded(Model::q_up, own.q_up).multiply(latent.queries);
    }
    for (std::size_t row = 0; row < x.size(); ++row) {
        const auto at = static_cast<double>(position(row));
        Values& queries = latent.queries[row];
        for (std::size_t end = dimension; end <= queries.size(); end += dimension) {
            turn(queries.data() + end - turned, turned, at);
        }
        Values& entry = latent.entries[row];
        divide_by_root_mean_square(entry.data(), entry_gains.data(), rank);
        turn(entry.data() + rank, turned, at);
    }
    return latent;
}

/// What makes keys of entries is taken into the queries, what makes values of them out of the results.
Activations Forward::attend_to_entries(const AttentionShape& shape, const LayerWeights& own,
                                       const Activations& x) const {
    const std::size_t dimension = extent(shape.head_dim);
    const std::size_t value_dimension = extent(shape.value_dim);
    const std::size_t unturned = extent(shape.unturned());
    const std::size_t rank = extent(shape.rank);
    const std::size_t width = extent(shape.entry());
    const std::size_t numbers = kept(shape) * width;  // of a sequence
    const double unit = 1.0 / std::sqrt(static_cast<double>(dimension));
    const Latent latent = latent_rows(shape, own, x);
    const Decoded into_queries(own.into_queries);
    const Decoded out_of_results(own.out_of_results);
    Activations results(x.size());
    for (std::size_t sequence = 0; sequence < sequences_; ++sequence) {
        Values entries = numbers_of(own.keys, Format::bf16, sequence * numbers, numbers);
        put_newest(entries, width, latent.entries, sequence, 0);
        const Entries keys{entries, width, width};
        const Entries values{entries, rank, width};
        for (std::size_t token = 0; token < tokens_; ++token) {
            const std::size_t row = sequence * tokens_ + token;
            for (std::size_t head = 0; head < extent(shape.query_heads); ++head) {
                const double* own_query = latent.queries[row].data() + head * dimension;
                Values query = into_queries.multiply(own_query, head * rank, rank);
                query.insert(query.end(), own_query + unturned, own_query + dimension);
                const Values found = found_by(query.data(), keys, values, reach(shape, token), unit);
                const Values value = out_of_results.multiply(found.data(), head * value_dimension, value_dimension);
                results[row].insert(results[row].end(), value.begin(), value.end());
            }
        }
    }
    return results;
}

/// Keys and values of all heads are made of this step's entries: there are no older ones.
Activations Forward::attend_to_expanded(const AttentionShape& shape, const LayerWeights& own,
                                        const Activations& x) const {
    const std::size_t dimension = extent(shape.head_dim);
    const std::size_t value_dimension = extent(shape.value_dim);
    const std::size_t unturned = extent(shape.unturned());
    const double unit = 1.0 / std::sqrt(static_cast<double>(dimension));
    const Latent latent = latent_rows(shape, own, x);
    const Activations expanded = decoded(Model::kv_up, own.kv_up).multiply(latent.entries);
    Activations results(x.size());
    for (std::size_t first = 0; first < x.size(); first += tokens_) {
        for (std::size_t head = 0; head < extent(shape.query_heads); ++head) {
            Values keys;
            Values values;
            for (std::size_t row = first; row < first + tokens_; ++row) {
                const double* from = expanded[row].data() + head * (unturned + value_dimension);
                keys.insert(keys.end(), from, from + unturned);
                keys.insert(keys.end(), latent.entries[row].begin() + static_cast<std::ptrdiff_t>(shape.rank),
                            latent.entries[row].end());
                values.insert(values.end(), from + unturned, from + unturned + value_dimension);
            }
            const Entries all_keys{keys, dimension, dimension};
            const Entries all_values{values, value_dimension, value_dimension};
            for (std::size_t token = 0; token < tokens_; ++token) {
                const double* query = latent.queries[first + token].data() + head * dimension;
                const Values value = found_by(query, all_keys, all_values, reach(shape, token), unit);
                results[first + token].insert(results[first + token].end(), value.begin(), value.end());
            }
        }
    }
    return results;
}

Activations Forward::feed_forward(std::size_t kind, int index, const Activations& x) {
    const FfnShape& shape = stack_.kinds[kind].ffn;
    const LayerWeights& own = model_.layer(kind, index);
    Activations results(x.size(), Values(hidden_, 0.0));
    if (shape.experts > 0) {
        add_experts(kind, index, x, results);
    } else {
        const Ffn ffn{decoded(Model::up, own.up), decoded(Model::down, own.down), hidden_, shape.gated};
        for (std::size_t row = 0; row < x.size(); ++row) ffn.add(0, 1.0, x[row], results[row]);
    }
    if (shape.shared_up) add_shared(shape, own, x, results);
    return results;
}

void Forward::add_experts(std::size_t kind, int index, const Activations& x, Activations& to) {
    const FfnShape& shape = stack_.kinds[kind].ffn;
    const LayerWeights& own = model_.layer(kind, index);
    const Decoded router(own.router);
    const Ffn ffn{decoded(Model::up, own.up), decoded(Model::down, own.down), hidden_, shape.gated};
    const std::vector<int> choices = model_.experts_chosen(kind, index);
    const double share = model_.narrows_somewhere() ? 0.15 : 0.03;
    for (std::size_t row = 0; row < x.size(); ++row) {
        const auto of_row = choices.begin() + static_cast<std::ptrdiff_t>(row) * shape.chosen;
        const std::vector<int> experts(of_row, of_row + shape.chosen);
        const Values scores = router.multiply(x[row]);
        if (!well_chosen(scores, experts, share)) {
            astray_ = true;
            return;
        }
        Values shares;
        for (const int expert : experts) shares.push_back(scores[extent(expert)]);
        make_shares(shares);
        for (std::size_t i = 0; i < experts.size(); ++i) ffn.add(extent(experts[i]), shares[i], x[row], to[row]);
    }
}

void Forward::add_shared(const FfnShape& shape, const LayerWeights& own, const Activations& x, Activations& to) const {
    const Ffn ffn{decoded(Model::shared_up, own.shared_up), decoded(Model::shared_down, own.shared_down), hidden_,
                  shape.gated};
    const Values gate = vector_of(own.shared_gate);
    for (std::size_t row = 0; row < x.size(); ++row) {
        const double share =
            shape.shared_gate ? 1.0 / (1.0 + std::exp(-dot(gate.data(), x[row].data(), hidden_))) : 1.0;
        ffn.add(0, share, x[row], to[row]);
    }
}

}  // namespace

double step_error(const Model& model) {
    Forward forward(model);
    const Activations logits = forward.logits();
    if (forward.astray()) throw Failure{"wrong answer: a row went to experts whose scores are not the highest"};
    const auto found = model.logits();
    Difference difference;
    for (std::size_t sequence = 0; sequence < logits.size(); ++sequence) {
        const Values& expected = logits[sequence];
        for (std::size_t i = 0; i < expected.size(); ++i) {
            difference.add(decode_bf16(found[sequence * expected.size() + i]), expected[i]);
        }
    }
    return difference.relative();
}

}  // namespace roofline::cuda::kernels
