// The scheduler of a serving engine, step by step: first come, first served; a token budget for each step, shared by
// decoding sequences and chunks of prompts; the youngest thrown out when the pool is full. Seeded and exact: the same
// input gives the same bytes, here and everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/serving/flow.hpp"
#include "roofline/serving/load.hpp"
#include "roofline/serving/mix.hpp"
#include "roofline/serving/percentiles.hpp"
#include "roofline/serving/policy.hpp"

namespace roofline::serving {

enum class Start {
    spread,   // as if the replica had been running for long: the first requests are found at random places of their
              // output
    together  // as a benchmark starts: all at once. Requests of one length then march in step for ever
};

struct Sampling {
    std::uint64_t seed = 1;
    double requests = 2000.0;  // to measure, after a warm-up; a trace is measured whole
    Start start = Start::spread;
};

/// One finished request, for whoever wants to look closer or pass it on.
struct Served {
    Request request;
    double first_token = 0.0;  // when, seconds
    double finished = 0.0;
};

struct Outcome {
    Flow flow;
    double seconds = 0.0;                // measured, after the warm-up
    double requests = 0.0;               // measured
    std::optional<Percentiles> wait;     // from arrival to admission
    std::optional<Percentiles> ttft;     // from arrival to the first token. Saturated: from admission
    std::optional<Percentiles> tpot;     // of each request: mean time of the tokens after the first
    std::optional<Percentiles> itl;      // between two steps that wrote for the same sequence
    std::optional<Percentiles> request;  // from arrival to the last token
    bool overloaded = false;  // requests come faster than they go: the queue has no end, and so there are no times
    double waiting = 0.0;     // requests in the queue when the last one arrived
    // Conservation, over the whole run: what came in is what went out and what was still there at the end.
    double arrived = 0.0;
    double finished = 0.0;
    double unfinished = 0.0;
    double tokens_written = 0.0;
    double tokens_of_finished = 0.0;
    double tokens_of_unfinished = 0.0;
    double tokens_at_start = 0.0;  // that requests found half-way had written before
    double most_pool_bytes = 0.0;
    double most_step_tokens = 0.0;
    double most_sequences = 0.0;
    std::vector<Served> served;  // a trace only, in the order of arrival
};

/// S10.
Result<Outcome> simulate(const Replica& replica, const Policy& policy, const Mix& mix, const Load& load,
                         const Sampling& sampling = {});

}  // namespace roofline::serving
