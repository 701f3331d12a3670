// Loads at random on a replica that is a plain roofline: what the closed form and the simulation are held against each
// other on. For tests and for the comparison itself (bench/agreement).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "roofline/serving/elementary.hpp"
#include "roofline/serving/mix.hpp"
#include "roofline/serving/policy.hpp"
#include "roofline/serving/random.hpp"

namespace roofline::testing {

/// The larger, or the sum, of what weights, keys and values take from memory and what the products take to compute.
class RoofReplica : public serving::Replica {
  public:
    serving::StepCost price(std::span<const model::Sequences> step) const override {
        double tokens = 0.0;
        double keys = 0.0;
        double pairs = 0.0;
        for (const model::Sequences& group : step) {
            tokens += group.count * group.new_tokens;
            keys += group.count * (group.past + group.new_tokens);
            pairs += group.count * group.new_tokens * (group.past + (group.new_tokens + 1.0) / 2.0);
        }
        const double bytes = parameters * 2.0 + token_bytes * keys;
        const double flops = 2.0 * parameters * tokens + 4.0 * 4096.0 * 32.0 * pairs;
        const double memory = bytes / 3.35e12;
        const double compute = flops / 989e12;
        const double time = start + (overlaps ? std::max(memory, compute) : memory + compute);
        return {time, time / pipeline_stages, flops, bytes};
    }
    double sequence_bytes(double context) const override { return token_bytes * 16.0 * std::ceil(context / 16.0); }

    double parameters = 8e9;
    double token_bytes = 131072.0;
    double start = 0.0;  // seconds of every step
    bool overlaps = true;
};

/// A replica, a policy and a mix, all at random and all sensible.
struct RandomCase {
    RoofReplica replica;
    serving::Policy policy;
    serving::Mix mix;
};

inline RandomCase random_case(std::uint64_t seed, int most_stages = 1) {
    serving::Random random(seed, 99);
    const auto pick = [&](std::initializer_list<double> values) {
        return *(values.begin() + static_cast<std::ptrdiff_t>(random.next() % values.size()));
    };
    const auto scale = [&](double low, double high) {
        return std::floor(low * serving::power(high / low, random.uniform()));
    };
    using serving::Lengths;
    RandomCase the;
    const double billions = pick({1, 8, 70});
    the.replica.parameters = billions * 1e9;
    the.replica.token_bytes = billions == 1 ? 32768 : billions == 8 ? 131072 : 327680;
    the.replica.overlaps = pick({0, 1}) == 1;
    the.replica.start = pick({0, 0.002});
    const double prompt = scale(32, 8000);
    const double output = scale(8, 1000);
    switch (static_cast<int>(pick({0, 1, 2, 3, 4}))) {
        case 0:
            the.mix.prompt = Lengths::fixed(prompt);
            the.mix.output = Lengths::fixed(output);
            break;
        case 1:
            the.mix.prompt = Lengths::uniform(std::floor(prompt / 4), std::floor(prompt * 1.75));
            the.mix.output = Lengths::uniform(std::floor(output / 4), std::floor(output * 1.75));
            break;
        case 2:
            the.mix.prompt = Lengths::lognormal(prompt, pick({0.3, 1.0}));
            the.mix.output = Lengths::lognormal(output, pick({0.3, 1.0}));
            break;
        case 3:
            the.mix.prompt = Lengths::fixed(prompt);
            the.mix.output = Lengths::lognormal(output, pick({0.3, 1.0}));
            break;
        default:
            the.mix.prompt = Lengths::normal(prompt, pick({0.1, 0.3}));
            the.mix.output = Lengths::fixed(output);
    }
    the.mix.longest_context = 32768;
    the.replica.max_step_tokens = pick({512, 2048, 8192});
    the.replica.max_sequences = pick({64, 256, 1024});
    double longest = 0.0;
    for (const serving::Share& share : the.mix.shares()) longest = std::max(longest, share.prompt + share.output);
    the.replica.pool_bytes =
        std::max(scale(3, 500) * (prompt + output), 3.0 * longest + 64.0) * the.replica.token_bytes;
    if (most_stages > 1) the.replica.pipeline_stages = most_stages;
    the.policy.admission = random.uniform() < 0.6 ? serving::Admission::optimistic : serving::Admission::reserving;
    the.policy.watermark = pick({0.01, 0.05});
    if (random.uniform() < 0.2) the.policy.speculation = {.tokens = 3, .acceptance = 0.7};
    if (random.uniform() < 0.2) the.policy.prefix.hit_rate = 0.5;
    return the;
}

}  // namespace roofline::testing
