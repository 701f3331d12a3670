#include "roofline/serving/percentiles.hpp"

#include <algorithm>
#include <cstddef>

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
    // As if each value stood `weight` times in a row of `total`, the first at place 0.
    const auto at = [&](double fraction) {
        const double place = fraction * (total - 1.0);
        double before = 0.0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double last = before + values[i].weight - 1.0;
            if (place <= last || i + 1 == values.size()) return values[i].value;
            if (place < last + 1.0) return values[i].value + (place - last) * (values[i + 1].value - values[i].value);
            before += values[i].weight;
        }
        return values.back().value;
    };
    return Percentiles{sum / total, at(0.5), at(0.9), at(0.99)};
}

}  // namespace roofline::serving
