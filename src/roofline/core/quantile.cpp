#include "roofline/core/quantile.hpp"

namespace roofline {

double quantile(std::span<const Weighted> values, double part) {
    double total = 0.0;
    for (const Weighted& entry : values) total += entry.weight;
    const double place = part * (total - 1.0);
    double before = 0.0;
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
        const double last = before + values[i].weight - 1.0;
        if (place <= last) return values[i].value;
        if (place < last + 1.0) return values[i].value + (place - last) * (values[i + 1].value - values[i].value);
        before += values[i].weight;
    }
    return values.back().value;
}

}  // namespace roofline
