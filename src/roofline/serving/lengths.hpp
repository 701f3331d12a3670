// How long prompts and outputs are: one number, or a distribution given by its quantiles.
#pragma once

#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"

namespace roofline::serving {

struct Lengths {
    enum class Shape { fixed, uniform, normal, lognormal, listed };
    struct Listed {
        double tokens = 0.0;
        double weight = 1.0;
    };

    Shape shape = Shape::fixed;
    double mean = 1.0;           // fixed, normal, lognormal; before rounding and before nothing falls below 1
    double variation = 0.0;      // standard deviation over mean: normal, lognormal
    double low = 1.0;            // uniform
    double high = 1.0;           // uniform
    std::vector<Listed> listed;  // by weight

    static Lengths fixed(double tokens) { return {.mean = tokens, .listed = {}}; }
    static Lengths uniform(double low, double high) {
        return {.shape = Shape::uniform, .low = low, .high = high, .listed = {}};
    }
    static Lengths normal(double mean, double variation) {
        return {.shape = Shape::normal, .mean = mean, .variation = variation, .listed = {}};
    }
    static Lengths lognormal(double mean, double variation) {
        return {.shape = Shape::lognormal, .mean = mean, .variation = variation, .listed = {}};
    }

    /// The mean length of requests between two such fractions: what a part of all requests is counted as.
    double mean_between(double low_probability, double high_probability) const;
    /// The length that a fraction `probability` of requests does not exceed: a whole number, at least 1.
    double quantile(double probability) const;
};

/// "512", "100-2000", "normal:512,0.3", "lognormal:512,1.2" (mean, standard deviation over mean), "128*3,4096*1"
/// (tokens * weight). `name` stands in front of an error: "--prompt".
Result<Lengths> parse_lengths(std::string_view text, std::string_view name);

}  // namespace roofline::serving
