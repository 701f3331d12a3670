// The steady state of a replica without simulating it: some twenty prices and a small Markov chain. Means only;
// percentiles are the simulation's.
#pragma once

#include "roofline/core/problem.hpp"
#include "roofline/serving/flow.hpp"
#include "roofline/serving/limit.hpp"
#include "roofline/serving/load.hpp"
#include "roofline/serving/mix.hpp"
#include "roofline/serving/policy.hpp"

namespace roofline::serving {

struct Steady {
    Flow flow;
    Limit limit = Limit::pool;
    double running = 0.0;             // requests in the running set, mean
    double prompt_step_tokens = 0.0;  // prompt tokens of a step, mean
    double recomputed = 0.0;          // tokens computed again after preemption, per request
    double wait = 0.0;                // seconds, from arrival to admission, mean
    double ttft = 0.0;                // from arrival to the first token. Saturated: from admission
    double tpot = 0.0;                // per token after the first
    double itl = 0.0;                 // between two steps that write for a sequence
    double request = 0.0;             // from arrival to the last token
    double capacity = 0.0;            // requests per second that the replica can serve when saturated
    bool overloaded = false;  // rate above capacity: the queue grows without end; wait, ttft and request are infinite
};

/// S6 to S9. A trace's lengths count as a mix; for its arrivals, simulate.
Result<Steady> steady(const Replica& replica, const Policy& policy, const Mix& mix, const Load& load);

}  // namespace roofline::serving
