// What fits say of rows they had not seen: log(measured / expected), by fit. Ranges and errors are made of these.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "roofline/assess/row_groups.hpp"

namespace roofline::assess {

/// A fit of a group: to all of its rows, or to those of one generation or device.
struct FitName {
    GroupKey key;
    predict::Scope scope = predict::Scope::everything;
    std::string of;

    bool operator<(const FitName& other) const {
        if (key < other.key) return true;
        if (other.key < key) return false;
        return std::tie(scope, of) < std::tie(other.scope, other.of);
    }
};
struct Residual {
    double value = 0.0;
    // What was left out, whose rows err together: a family of shapes, a device, a generation. The row's or device's own
    // string, which outlives this.
    std::string_view voice;
    double weight = 1.0;
};
using Residuals = std::map<FitName, std::vector<Residual>>;

/// `row`: the measurement of `sample`.
inline double residual_of(const Sample& sample, const Measurement& row, const Constants& constants) {
    const double expected = std::max(predicted_seconds(sample.calls, constants), row.attainable);
    return std::log(sample.seconds / expected);
}

}  // namespace roofline::assess
