// A request mix as one engine sees it, before anything is priced: what the steady state starts from.
#pragma once

#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/serving/backlog.hpp"
#include "roofline/serving/mix.hpp"
#include "roofline/serving/policy.hpp"

namespace roofline::serving {

/// The mix as one engine sees it: what a request brings, how long it stays, what it holds.
struct Demand {
    std::vector<PromptSize> prompts;  // tokens to compute
    std::vector<double> steps;        // of each of them: steps after the first token
    std::vector<double> wholes;       // and bytes at the end of their outputs
    struct Context {
        double fraction = 0.0;  // of decoding sequences
        double past = 0.0;
    };
    std::vector<Context> contexts;
    double fresh = 0.0;             // prompt tokens to compute, mean
    double prompt = 0.0;            // tokens
    double output = 0.0;            // tokens written here by each sample
    double decode_steps = 0.0;      // Z: steps after the first token, mean
    double decode_variation = 0.0;  // standard deviation of those over their mean
    double prompt_bytes = 0.0;      // held while the prompt is computed
    double decode_bytes = 0.0;      // held while writing, mean over such steps
    double held_variance = 0.0;     // of what a sequence that writes holds, over the square of its mean
    double tokens_a_step = 1.0;     // that a sequence writes
    double luck = 0.0;              // variance of those over the square of their mean
};

/// Refuses a mix with a request that the pool can never hold.
Result<Demand> demand_of(const Replica& replica, const Policy& policy, const Mix& mix, bool fine = false);

}  // namespace roofline::serving
