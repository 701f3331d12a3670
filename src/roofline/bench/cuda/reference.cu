// Differences and attention in float64.
#include <algorithm>
#include <cmath>

#include "roofline/bench/cuda/reference.hpp"

namespace roofline::cuda::kernels {

void Difference::add(double found, double expected) {
    if (!std::isfinite(found) || !std::isfinite(expected)) broken_ = true;
    square_ += (found - expected) * (found - expected);
    reference_ += expected * expected;
}

double Difference::relative() const {
    if (broken_ || reference_ == 0.0) return 1e30;
    return std::sqrt(square_ / reference_);
}

std::vector<int> sample(int total, int count) {
    std::vector<int> numbers;
    const int wanted = std::min(total, count);
    for (int i = 0; i < wanted; ++i) {
        numbers.push_back(wanted == 1 ? 0
                                      : static_cast<int>(static_cast<std::int64_t>(i) * (total - 1) / (wanted - 1)));
    }
    return numbers;
}

std::vector<double> attend(const std::vector<double>& query, const Rows& keys, const Rows& values, int value_dim,
                           int context, Format format, int first, std::optional<double> sink) {
    const auto begin = static_cast<std::size_t>(first);
    const auto row = [&](const Rows& rows, std::size_t i) {
        return rows.bytes.data() +
               i * static_cast<std::size_t>(rows.pitch) * static_cast<std::size_t>(bits(format)) / 8;
    };
    std::vector<double> scores(static_cast<std::size_t>(context) - begin);
    for (std::size_t i = 0; i < scores.size(); ++i) {
        double score = 0.0;
        for (std::size_t j = 0; j < query.size(); ++j) score += query[j] * decode(row(keys, begin + i), j, format);
        scores[i] = score / std::sqrt(static_cast<double>(query.size()));
    }
    double highest = *std::max_element(scores.begin(), scores.end());
    if (sink) highest = std::max(highest, *sink);
    std::vector<double> output(static_cast<std::size_t>(value_dim), 0.0);
    double total = sink ? std::exp(*sink - highest) : 0.0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const double weight = std::exp(scores[i] - highest);
        total += weight;
        for (std::size_t j = 0; j < output.size(); ++j) output[j] += weight * decode(row(values, begin + i), j, format);
    }
    for (double& value : output) value /= total;
    return output;
}

}  // namespace roofline::cuda::kernels
