// Quantiles of values that may each count many times.
#pragma once

#include <span>

namespace roofline {

struct Weighted {
    double value = 0.0;
    double weight = 1.0;  // how often the value counts; no less than once
};

/// As if each value stood `weight` times in a row, the first of all at 0 and the last at 1, with straight lines
/// between: `part` of the way. The values are in order and at least one.
double quantile(std::span<const Weighted> values, double part);

}  // namespace roofline
