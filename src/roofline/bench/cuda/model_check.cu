// A whole step of a small model in float64 on the host, from the device's own weights: it says whether the kernels of a
// step are put together rightly. Intermediate values are not rounded here, on the device they are bf16: so the two
// differ by a percent or two after a few layers.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "roofline/bench/cuda/model_check.hpp"
#include "roofline/bench/cuda/reference.hpp"

namespace roofline::cuda::kernels {

namespace {

using Values = std::vector<double>;

Values vector_of(const Memory& memory) {
    const auto raw = copied(memory.at<std::uint16_t>(), memory.bytes() / 2);
    Values values(raw.size());
    std::transform(raw.begin(), raw.end(), values.begin(), decode_bf16);
    return values;
}

Values matrix_of(const Matrix& matrix, Format format) {
    const auto raw = copied(matrix.weights.at(), matrix.weights.bytes());
    const auto n = static_cast<std::size_t>(matrix.n);
    const auto k = static_cast<std::size_t>(matrix.k);
    Values values(n * k);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = decode(raw.data(), i, format);
    if (format == Format::int4) {
        const Values scales = vector_of(matrix.scales);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] *= scales[i / 128];
    } else if (format != Format::bf16) {
        const auto scales = copied(matrix.scales.at<float>(), n);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] *= static_cast<double>(scales[i / k]);
    }
    return values;
}

/// y[n] = W[n, k] x[k].
Values multiplied(const Values& weights, const double* x, std::size_t k) {
    Values y(weights.size() / k, 0.0);
    for (std::size_t i = 0; i < y.size(); ++i) {
        for (std::size_t j = 0; j < k; ++j) y[i] += weights[i * k + j] * x[j];
    }
    return y;
}

Values normed(const double* x, const double* weight, std::size_t count) {
    double squares = 0.0;
    for (std::size_t i = 0; i < count; ++i) squares += x[i] * x[i];
    const double factor = 1.0 / std::sqrt(squares / static_cast<double>(count) + 1e-5);
    Values y(count);
    for (std::size_t i = 0; i < count; ++i) y[i] = x[i] * factor * weight[i];
    return y;
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

/// Weights of an FFN, or of several, one after another.
struct Ffn {
    const Values& gate_up;
    const Values& down;
    std::size_t hidden;
    std::size_t width;

    /// to += share times what the FFN of this number makes of x.
    void add(std::size_t number, double share, const Values& x, Values& to) const {
        const double* wide = gate_up.data() + number * 2 * width * hidden;
        const double* narrow = down.data() + number * width * hidden;
        const auto dot = [](const double* a, const double* b, std::size_t count) {
            return std::inner_product(a, a + count, b, 0.0);
        };
        Values activated(width);
        for (std::size_t i = 0; i < width; ++i) {
            const double gate = dot(wide + i * hidden, x.data(), hidden);
            activated[i] = gate / (1.0 + std::exp(-gate)) * dot(wide + (width + i) * hidden, x.data(), hidden);
        }
        for (std::size_t i = 0; i < hidden; ++i) to[i] += share * dot(narrow + i * width, activated.data(), width);
    }
};

/// Whether these experts, each another, are those with the highest scores: but for what bf16 activations and scores
/// may differ by, so that of two that are nearly equal either may be there.
bool well_chosen(const Values& scores, const std::vector<int>& experts) {
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
        if (!taken[i] && scores[i] > lowest + 0.03 * size) return false;
    }
    return true;
}

}  // namespace

bool small_enough(const ModelShape& model, const StepShape& step) {
    // All experts' weights are decoded, though few are multiplied.
    const double width = static_cast<double>(model.query_heads + 2 * model.kv_heads) * model.head_dim +
                         static_cast<double>(model.query_heads) * model.head_dim +
                         3.0 * model.ffn_width * std::max(1, model.experts);
    const double work = static_cast<double>(step.batch) * step.tokens * model.layers *
                            (model.hidden * width + 2.0 * step.context * model.query_heads * model.head_dim) +
                        static_cast<double>(step.batch) * model.vocabulary * model.hidden;
    return work < 1e9;
}

double step_error(const Model& model) {
    const ModelShape& shape = model.shape();
    const StepShape& step = model.step();
    const auto hidden = static_cast<std::size_t>(shape.hidden);
    const auto dimension = static_cast<std::size_t>(shape.head_dim);
    const auto query_heads = static_cast<std::size_t>(shape.query_heads);
    const auto kv_heads = static_cast<std::size_t>(shape.kv_heads);
    const auto tokens = static_cast<std::size_t>(step.tokens);
    const auto context = static_cast<std::size_t>(step.context);
    const auto rows = static_cast<std::size_t>(step.batch) * tokens;
    const std::size_t past = context - tokens;
    const std::size_t row_bytes = dimension * static_cast<std::size_t>(bits(step.cache)) / 8;

    const Values table = vector_of(model.embedding());
    std::vector<Values> residual;
    for (const int number : model.token_numbers()) {
        const auto from = table.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(number) * hidden);
        residual.emplace_back(from, from + static_cast<std::ptrdiff_t>(hidden));
    }
    for (int index = 0; index < shape.layers; ++index) {
        const Layer& layer = model.layer(index);
        const Values qkv = matrix_of(layer.qkv, step.weights);
        const Values output = matrix_of(layer.output, step.weights);
        const Values gate_up = matrix_of(layer.gate_up, step.weights);
        const Values down = matrix_of(layer.down, step.weights);
        const Values attention_norm = vector_of(layer.attention_norm);
        const Values ffn_norm = vector_of(layer.ffn_norm);
        const Values head_norms = shape.head_norm ? vector_of(layer.head_norms) : Values{};
        const Values bias = shape.bias ? vector_of(layer.bias) : Values{};
        const auto keys = copied(layer.keys.at(), layer.keys.bytes());
        const auto values = copied(layer.values.at(), layer.values.bytes());
        std::vector<Values> heads(rows);
        for (std::size_t row = 0; row < rows; ++row) {
            heads[row] = multiplied(qkv, normed(residual[row].data(), attention_norm.data(), hidden).data(), hidden);
            for (std::size_t i = 0; i < bias.size(); ++i) heads[row][i] += bias[i];
            for (std::size_t head = 0; head < query_heads + kv_heads; ++head) {
                double* at = heads[row].data() + head * dimension;
                if (shape.head_norm) {
                    const Values one = normed(at, head_norms.data() + (head < query_heads ? 0 : dimension), dimension);
                    std::copy(one.begin(), one.end(), at);
                }
                turn(at, dimension, static_cast<double>(past + row % tokens));
            }
        }
        for (std::size_t row = 0; row < rows; ++row) {
            const std::size_t sequence = row / tokens;
            const std::size_t seen = past + row % tokens + 1;
            Values attended(query_heads * dimension, 0.0);
            for (std::size_t head = 0; head < query_heads; ++head) {
                const std::size_t kv = head / (query_heads / kv_heads);
                const double* query = heads[row].data() + head * dimension;
                // New keys and values from this step's rows, older ones from the cache.
                const auto entry = [&](std::size_t position, std::size_t i, bool key) {
                    if (position >= past) {
                        const std::size_t from = query_heads + (key ? 0 : kv_heads) + kv;
                        return heads[sequence * tokens + position - past][from * dimension + i];
                    }
                    const auto& cache = key ? keys : values;
                    return decode(cache.data() + ((sequence * kv_heads + kv) * context + position) * row_bytes, i,
                                  step.cache);
                };
                Values scores(seen, 0.0);
                for (std::size_t position = 0; position < seen; ++position) {
                    for (std::size_t i = 0; i < dimension; ++i) scores[position] += query[i] * entry(position, i, true);
                    scores[position] /= std::sqrt(static_cast<double>(dimension));
                }
                const double highest = *std::max_element(scores.begin(), scores.end());
                double total = 0.0;
                for (double& score : scores) total += score = std::exp(score - highest);
                for (std::size_t position = 0; position < seen; ++position) {
                    for (std::size_t i = 0; i < dimension; ++i) {
                        attended[head * dimension + i] += scores[position] / total * entry(position, i, false);
                    }
                }
            }
            const Values branch = multiplied(output, attended.data(), attended.size());
            for (std::size_t i = 0; i < hidden; ++i) residual[row][i] += branch[i];
        }
        const Ffn ffn{gate_up, down, hidden, static_cast<std::size_t>(shape.ffn_width)};
        const Values router = shape.experts > 0 ? matrix_of(layer.router, Format::bf16) : Values{};
        const std::vector<int> choices = shape.experts > 0 ? model.experts_chosen(index) : std::vector<int>{};
        const auto chosen = static_cast<std::size_t>(shape.experts_chosen);
        for (std::size_t row = 0; row < rows; ++row) {
            const Values x = normed(residual[row].data(), ffn_norm.data(), hidden);
            if (shape.experts == 0) {
                ffn.add(0, 1.0, x, residual[row]);
                continue;
            }
            const auto of_row = choices.begin() + static_cast<std::ptrdiff_t>(row * chosen);
            const std::vector<int> experts(of_row, of_row + static_cast<std::ptrdiff_t>(chosen));
            const Values scores = multiplied(router, x.data(), hidden);
            if (!well_chosen(scores, experts)) return 1e30;
            double total = 0.0;
            for (const int expert : experts) total += std::exp(scores[static_cast<std::size_t>(expert)]);
            for (const int expert : experts) {
                const auto which = static_cast<std::size_t>(expert);
                ffn.add(which, std::exp(scores[which]) / total, x, residual[row]);
            }
        }
    }
    const Values final_norm = vector_of(model.final_norm());
    const Values head = matrix_of(model.head_matrix(), step.weights);
    const auto found = model.logits();
    Difference difference;
    for (std::size_t sequence = 0; sequence < static_cast<std::size_t>(step.batch); ++sequence) {
        const Values& last = residual[(sequence + 1) * tokens - 1];
        const Values logits = multiplied(head, normed(last.data(), final_norm.data(), hidden).data(), hidden);
        for (std::size_t i = 0; i < logits.size(); ++i) {
            difference.add(decode_bf16(found[sequence * logits.size() + i]), logits[i]);
        }
    }
    return difference.relative();
}

}  // namespace roofline::cuda::kernels
