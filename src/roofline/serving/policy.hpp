// What an engine is told: how it admits, speculates, caches prefixes, and what its host costs. Each default is the
// plain case, and costs nothing.
#pragma once

#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/serving/replica.hpp"

namespace roofline::serving {

enum class Admission {
    optimistic,  // a request enters when its prompt fits; when the pool is full, the youngest is thrown out and
                 // recomputed
    reserving    // a request enters when its prompt and whole output fit; nobody is thrown out
};

/// Which part of a request this replica does. The two others are disaggregated: keys and values travel between them.
enum class Role { whole, prefill, decode };

/// S2. A draft proposes `tokens` per step, the model checks them all at once and adds one of its own.
struct Speculation {
    double tokens = 0.0;             // proposed per step; 0: none
    double acceptance = 0.0;         // probability that a proposed token is right, given that those before it were
    double draft_fraction = 0.0;     // what drafting adds to a step with decoding, as a fraction of that step
    double draft_seconds = 0.0;      // and in seconds
    const Replica* draft = nullptr;  // and as `tokens` decode steps of another model; its pool and limits are not asked
};

struct Prefix {
    double common = 0.0;  // tokens at the head of every prompt, computed once and kept once
    double hit_rate =
        0.0;  // of the other prompt tokens: the fraction found in the cache. Each sequence still holds them
};

struct Policy {
    Role role = Role::whole;
    Admission admission = Admission::optimistic;
    double watermark = 0.01;       // of the pool, kept free when an optimistic engine admits
    std::vector<double> captured;  // batch sizes of captured graphs, ascending: fewer tokens are padded up to the next
    double host_seconds_request = 0.0;  // before a request reaches the scheduler: tokeniser, HTTP
    double host_seconds_step = 0.0;     // between steps: scheduler, sampling on the host
    double samples = 1.0;               // outputs of each request, over one prompt (n-best, beams)
    Speculation speculation;
    Prefix prefix;
};

/// 1, 2, 4, then every 8 up to `largest`: what engines capture unless they are told otherwise.
std::vector<double> usual_captured_sizes(double largest);

/// S2: tokens of a sequence per step and the mean of their square.
struct TokensPerStep {
    double mean = 1.0;
    double square = 1.0;
};
TokensPerStep tokens_per_step(const Speculation& speculation);

/// Of the budget of a step, that a request which writes takes.
inline double tokens_of_a_writer(const Policy& policy) {
    return (policy.speculation.tokens + 1.0) * policy.samples;
}

/// S3: prompt tokens that need no computing; at least the last one does.
double cached_tokens(const Prefix& prefix, double prompt);

/// Whether the numbers make sense, with the one that does not named.
Result<void> check(const Replica& replica, const Policy& policy);

}  // namespace roofline::serving
