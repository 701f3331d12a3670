// The longest context that still holds, by bisection: windows, pools and blocks make a cache anything but linear in it.
#pragma once

#include <cmath>
#include <optional>

namespace roofline::predict {

inline constexpr double unlimited = 1e9;  // a batch or context that nothing limits

/// Up to `most` tokens; empty where nothing limits it.
template <class Holds>
std::optional<double> longest_that(const Holds& holds, double most) {
    double longest = most;
    if (!holds(longest)) {
        double low = 0.0;
        while (longest - low > 1.0) {
            const double middle = std::floor((low + longest) / 2.0);
            (holds(middle) ? low : longest) = middle;
        }
        longest = low;
    }
    return longest < unlimited ? std::optional(longest) : std::nullopt;
}

}  // namespace roofline::predict
