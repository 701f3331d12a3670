#include "roofline/serving/policy.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>

namespace roofline::serving {

std::vector<double> usual_captured_sizes(double largest) {
    std::vector<double> sizes;
    for (const double size : {1.0, 2.0, 4.0}) {
        if (size <= largest) sizes.push_back(size);
    }
    for (int size = 8; size <= largest; size += 8) sizes.push_back(size);
    return sizes;
}

TokensPerStep tokens_per_step(const Speculation& speculation) {
    // P(at least j tokens) = acceptance^(j - 1) for j = 1 .. k + 1; the mean is their sum, the square sums (2j - 1)
    // each.
    TokensPerStep result{0.0, 0.0};
    double probability = 1.0;
    for (int j = 1; j <= speculation.tokens + 1.0; ++j) {
        result.mean += probability;
        result.square += (2.0 * j - 1.0) * probability;
        probability *= speculation.acceptance;
    }
    return result;
}

double cached_tokens(const Prefix& prefix, double prompt) {
    const double common = std::min(prefix.common, prompt);
    return std::min(common + std::floor(prefix.hit_rate * (prompt - common)), prompt - 1.0);
}

Result<void> check(const Replica& replica, const Policy& policy) {
    struct Rule {
        bool good;
        const char* what;
    };
    const Speculation& speculation = policy.speculation;
    const auto whole = [](double value, double low, double high) {
        return value >= low && value <= high && value == std::floor(value);
    };
    const std::initializer_list<Rule> rules = {
        {replica.pool_bytes > 0.0, "pool for keys and values: expected more than 0 bytes"},
        {whole(replica.max_sequences, 1.0, 1e6), "sequences at once: expected a whole number from 1 to 1e6"},
        {whole(replica.max_step_tokens, 1.0, 1e8), "tokens of a step: expected a whole number from 1 to 1e8"},
        {replica.pipeline_stages >= 1 && replica.pipeline_stages <= 1024, "pipeline stages: expected 1 to 1024"},
        {whole(policy.samples, 1.0, replica.max_sequences),
         "outputs of a request: expected a whole number from 1 to the sequences at once"},
        {policy.watermark >= 0.0 && policy.watermark < 1.0, "watermark: expected a fraction below 1"},
        {policy.host_seconds_request >= 0.0 && policy.host_seconds_request < 1e6,
         "host seconds of a request: expected 0 or more"},
        {policy.host_seconds_step >= 0.0 && policy.host_seconds_step < 1e6,
         "host seconds of a step: expected 0 or more"},
        {whole(speculation.tokens, 0.0, 64.0), "speculated tokens: expected a whole number from 0 to 64"},
        {speculation.acceptance >= 0.0 && speculation.acceptance <= 1.0, "acceptance: expected 0 to 1"},
        {speculation.draft_fraction >= 0.0 && speculation.draft_fraction < 1e3, "draft fraction: expected 0 or more"},
        {speculation.draft_seconds >= 0.0 && speculation.draft_seconds < 1e6, "draft seconds: expected 0 or more"},
        {whole(policy.prefix.common, 0.0, 1e8), "common prefix: expected whole tokens, 0 or more"},
        {policy.prefix.hit_rate >= 0.0 && policy.prefix.hit_rate <= 1.0, "prefix hit rate: expected 0 to 1"},
        {std::is_sorted(policy.captured.begin(), policy.captured.end()), "captured sizes: expected ascending"},
        {(speculation.tokens + 1.0) * policy.samples <= replica.max_step_tokens,
         "tokens of a step: expected room for one request, its speculated tokens and outputs"},
    };
    for (const Rule& rule : rules) {
        if (!rule.good) return fail(rule.what);
    }
    return {};
}

}  // namespace roofline::serving
