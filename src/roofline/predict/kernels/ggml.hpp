// What llama.cpp's kernels have in common whatever the backend: what a step really works on, and how it is kept.
#pragma once

#include <algorithm>
#include <cmath>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {

inline double over(double work, double rate) {
    return rate > 0.0 ? work / rate : 0.0;
}

/// How many experts the tokens of a step really choose between them: the kernels were only timed on real text.
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

namespace ggml {

inline constexpr double host_seconds = 150e-6;  // building, encoding or scheduling, and sampling: between two steps
inline constexpr double micro_batch = 2048.0;   // tokens at a time: a sliding window's cache holds that many beside it
inline constexpr double cache_padding = 256.0;  // entries that attention rounds its context up to

/// One query of a layer with a sliding window works on all its cache holds, masked: so many times what it should.
inline double beyond_window(const Kernel& k) {
    if (k.window <= 0.0 || k.context <= 0.0) return 1.0;
    const double held = std::min(std::ceil(k.context / cache_padding) * cache_padding, k.window + micro_batch);
    return std::max(held / std::min(k.context, k.window), 1.0);
}

/// A prompt's recurrence goes token after token: five flops for each number of the state, which is read and written in
/// 4 bytes.
inline double recurrence_flops(const Kernel& k) {
    return 5.0 * k.weight_bytes / 8.0 * k.queries;
}

/// Operators count activations in 16 bits; here they are fp32.
inline double activation_bytes(const Kernel& k) {
    if (k.pattern == Pattern::product || k.pattern == Pattern::experts)
        return 4.0 * k.rows * k.copies * (k.inner + k.cols);
    return 2.0 * (k.input_bytes + k.output_bytes) + (k.pattern == Pattern::stream ? k.weight_bytes : 0.0);
}

}  // namespace ggml
}  // namespace roofline::predict
