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

std::vector<double> attend(const std::vector<double>& query, const std::vector<std::uint8_t>& keys,
                           const std::vector<std::uint8_t>& values, int context, Format format) {
    const std::size_t dimension = query.size();
    const std::size_t row_bytes = dimension * static_cast<std::size_t>(bits(format)) / 8;
    std::vector<double> scores(static_cast<std::size_t>(context));
    for (std::size_t i = 0; i < scores.size(); ++i) {
        double score = 0.0;
        for (std::size_t j = 0; j < dimension; ++j) score += query[j] * decode(keys.data() + i * row_bytes, j, format);
        scores[i] = score / std::sqrt(static_cast<double>(dimension));
    }
    const double highest = *std::max_element(scores.begin(), scores.end());
    std::vector<double> output(dimension, 0.0);
    double total = 0.0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const double weight = std::exp(scores[i] - highest);
        total += weight;
        for (std::size_t j = 0; j < dimension; ++j)
            output[j] += weight * decode(values.data() + i * row_bytes, j, format);
    }
    for (double& value : output) value /= total;
    return output;
}

}  // namespace roofline::cuda::kernels
