#include "roofline/serving/percentiles.hpp"

#include <algorithm>

namespace roofline::serving {

std::optional<Percentiles> percentiles(std::vector<Weighted> values) {
    double total = 0.0;
    double sum = 0.0;
    for (const Weighted& entry : values) {
        total += entry.weight;
        sum += entry.weight * entry.value;
    }
    if (!(total > 0.0)) return std::nullopt;
    std::sort(values.begin(), values.end(), [](const Weighted& a, const Weighted& b) {
        return a.value != b.value ? a.value < b.value : a.weight < b.weight;
    });
    const auto at = [&](double fraction) { return quantile(values, fraction); };
    return Percentiles{sum / total, at(0.5), at(0.9), at(0.99)};
}

}  // namespace roofline::serving
