// Dividing heads, widths and experts over devices, with the message for what does not divide.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "roofline/core/problem.hpp"

namespace roofline::model {

/// `amount` over `ranks`, which must go evenly.
inline Result<double> even_share(double amount, double ranks, std::string_view what) {
    if (ranks >= 1.0 && std::fmod(amount, ranks) == 0.0) return amount / ranks;
    const auto text = [](double value) { return std::to_string(static_cast<long long>(value)); };
    return fail(text(amount) + " " + std::string(what) + " cannot be shared evenly by " + text(ranks) + " devices");
}

/// The same for what is copied where there is not enough of it: 8 KV heads over 16 devices are one on each.
inline Result<double> share_or_copy(double amount, double ranks, std::string_view what) {
    if (ranks > amount && std::fmod(ranks, amount) == 0.0) return 1.0;
    return even_share(amount, ranks, what);
}

}  // namespace roofline::model
