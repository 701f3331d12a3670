// A saturated replica followed step by step, with counts in place of requests and prices read off a small table. What
// meets what matters where memory is the limit and in pipelines: requests that were let in together end together and
// let in the next crowd together, one that does not fit waits for another to end, a long step holds up those behind it.
// No distribution of single steps knows that.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "roofline/serving/footprint.hpp"
#include "roofline/serving/limit.hpp"
#include "roofline/serving/step_table.hpp"

namespace roofline::serving {

struct FollowedRequest {
    double weight = 0.0;
    double fresh = 0.0;           // prompt tokens to compute
    double past = 0.0;            // tokens in front of them that are cached
    double steps = 0.0;           // that it writes in after its prompt, mean
    double deviation = 0.0;       // of those: guesses ahead are right by luck
    double prompt = 0.0;          // tokens, cached ones included
    double reserved_bytes = 0.0;  // of the pool, for as long as it stays; 0: as much as it has written
};

struct FollowedInput {
    std::size_t stages = 1;
    std::size_t slots = 1;  // requests that are inside at once, at most
    double writing = 1.0;   // of those, that write at the start, about: as in a server that has been running
    double pool_bytes = std::numeric_limits<double>::infinity();  // for all of them together
    double kept_bytes = 0.0;                                      // of those, that nobody is admitted into
    double tokens_a_step = 1.0;                                   // that a sequence writes
    double checked = 1.0;                                         // and that a step has it put through the model
    double budget = 1.0;                                          // tokens of a step
    double step_tokens = 1.0;                                     // of the budget, that a writing request takes
    double samples = 1.0;                                         // sequences of a writing request
    bool holds_up = true;                                         // false: the slowest stage is never without work
    std::vector<FollowedRequest> requests;
};

/// Means over steps, or over requests where it says so.
struct FollowedFlow {
    double interval = 0.0;    // seconds from one step to the next
    double ended = 0.0;       // requests per step
    double writing = 0.0;     // requests that write in a step
    double inside = 0.0;      // requests, those whose prompt is computed included
    double outside = 0.0;     // requests that were thrown out and wait to come back
    double prompt = 0.0;      // seconds from admission to the first token, mean of requests
    double again = 0.0;       // tokens computed again, per request
    double thrown_out = 0.0;  // times, per request
    double flops = 0.0;
    double memory_bytes = 0.0;
    Limit limit = Limit::sequences;  // what most often kept the next one out
};

/// S6 and S8. The same numbers every time: its requests are drawn from a seed of its own.
FollowedFlow follow(const FollowedInput& input, const StepTable& table, Footprint& footprint);

/// `part` of the way from one to the other.
FollowedFlow between(const FollowedFlow& a, const FollowedFlow& b, double part);

}  // namespace roofline::serving
