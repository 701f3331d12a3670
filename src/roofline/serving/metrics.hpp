// What a flow means to those who wait for it and those who pay for it.
#pragma once

#include <optional>

#include "roofline/serving/flow.hpp"

namespace roofline::serving {

/// Of one replica. What is not given is not computed.
struct Economy {
    double devices = 1.0;
    std::optional<double> peak_flops;             // per second, of all its devices together, at the type that counts
    std::optional<double> peak_bandwidth;         // bytes per second, of all its devices together
    std::optional<double> watts;                  // of all its devices together, drawn whether busy or not
    std::optional<double> price_per_device_hour;  // in whatever currency
};

struct Metrics {
    double requests_per_second = 0.0;
    double output_tokens_per_second = 0.0;
    double total_tokens_per_second = 0.0;  // prompt and output
    double output_tokens_per_second_per_user = 0.0;
    double output_tokens_per_second_per_device = 0.0;
    std::optional<double> mfu;  // of the peak rate
    std::optional<double> mbu;  // of the peak bandwidth
    std::optional<double> joules_per_output_token;
    std::optional<double> price_per_million_output_tokens;
    std::optional<double> price_per_million_tokens;  // prompt and output alike
};

/// S13. `tpot`: seconds between the tokens of one user, mean.
Metrics metrics(const Flow& flow, double tpot, const Economy& economy);

}  // namespace roofline::serving
