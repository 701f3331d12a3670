// One replica of a deployment as its scheduler sees it: what a step costs and what a sequence keeps in memory. No
// device, no file and no parallelism in sight; whoever knows those writes an adapter.
#pragma once

#include <limits>
#include <span>

#include "roofline/model/step.hpp"

namespace roofline::serving {

struct StepCost {
    double latency = 0.0;       // seconds until its tokens are there
    double interval = 0.0;      // seconds until the replica can take the next step: less than latency in a pipeline
    double flops = 0.0;         // of all devices of the replica
    double memory_bytes = 0.0;  // likewise
};

/// `part` of the way from one cost to the other.
inline StepCost between(const StepCost& a, const StepCost& b, double part) {
    const auto mixed = [part](double x, double y) { return x + part * (y - x); };
    return {mixed(a.latency, b.latency), mixed(a.interval, b.interval), mixed(a.flops, b.flops),
            mixed(a.memory_bytes, b.memory_bytes)};
}

class Replica {
  public:
    Replica() = default;
    Replica(const Replica&) = default;
    Replica& operator=(const Replica&) = default;
    virtual ~Replica() = default;

    /// Prefill groups come first. Counts and tokens may be fractions: the closed form prices mean steps.
    virtual StepCost price(std::span<const model::Sequences> step) const = 0;

    /// Cache of one sequence with this many tokens, as the engine allocates it: in blocks, with its states. On the
    /// scale of pool_bytes: both of one device, or both of all.
    virtual double sequence_bytes(double context) const = 0;

    double pool_bytes = std::numeric_limits<double>::infinity();  // for all sequences together
    double max_sequences = 256.0;                                 // in the running set
    double max_step_tokens = 8192.0;                              // token budget of a step
    int pipeline_stages = 1;                                      // steps that can be under way at once
    bool holds_up = true;  // whether a long step of a pipeline holds up those behind it: not in a bound
};

}  // namespace roofline::serving
