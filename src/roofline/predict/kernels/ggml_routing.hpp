// How many experts the tokens of a step really choose between them, for kernels that were only timed on real text.
#pragma once

#include <algorithm>
#include <cmath>

namespace roofline::predict {

/// Tokens of real text resemble each other, so that `tokens` of them touch no more experts than a smaller number of
/// independent ones would: tokens / sqrt(1 + skew (tokens - 1)). What n independent tokens touch, E (1 - exp(-k n /
/// E)), is taken with the quotient of short series in place of the exponential (within 8 % of it). Never fewer than one
/// token's experts, never more than all tokens' together.
inline double experts_touched(double tokens, double total, double chosen, double skew) {
    const double independent = tokens / std::sqrt(1.0 + skew * std::max(tokens - 1.0, 0.0));
    const double x = chosen * independent / total;
    const double series = x + 0.5 * x * x;
    return std::min(std::max(chosen, total * series / (1.0 + series)), chosen * tokens);
}

}  // namespace roofline::predict
