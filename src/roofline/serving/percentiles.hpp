// Mean and percentiles of values that may each count many times.
#pragma once

#include <optional>
#include <vector>

#include "roofline/core/quantile.hpp"

namespace roofline::serving {

struct Percentiles {
    double mean = 0.0;
    double p50 = 0.0;
    double p90 = 0.0;
    double p99 = 0.0;
};

/// Of values that each count `weight` times; between two values linearly. Empty without values.
std::optional<Percentiles> percentiles(std::vector<Weighted> values);

}  // namespace roofline::serving
