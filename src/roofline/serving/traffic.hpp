// A deployment under traffic, in one question and one answer: the closed form at all three times, the simulation where
// it is asked for, two pools where they are. What `predict` shows under load.
#pragma once

#include <optional>
#include <vector>

#include "roofline/serving/deployed.hpp"
#include "roofline/serving/disaggregation.hpp"
#include "roofline/serving/metrics.hpp"
#include "roofline/serving/simulation.hpp"
#include "roofline/serving/steady.hpp"

namespace roofline::serving {

struct Traffic {
    Load load;  // of the whole deployment: replicas share it
    Mix mix;
    Policy policy;
    std::optional<predict::Scenario> draft;  // a small model that speculates for the large one
    double prefill_replicas = 0.0;           // > 0: prompts on these, outputs on the deployment's own replicas
    bool simulate = false;
    Sampling sampling;
    std::optional<double> price_per_device_hour;
};

struct Answer {
    Steady limit;
    Steady attainable;
    Steady expected;
    Metrics metrics;  // of the whole deployment, at the expected times
    double replicas = 1.0;
    std::optional<Outcome> simulated;  // of one replica, at the expected times
    std::optional<Disaggregated> pools;
    std::optional<DisaggregatedOutcome> simulated_pools;
    double pool_bytes = 0.0;  // for caches, of one replica
    std::vector<std::string> assumptions;
};

Result<Answer> answer(const predict::Scenario& scenario, const Traffic& traffic);

/// S9: requests to simulate where the closed form is a rough mean: near capacity, unless that would take seconds. 0:
/// none.
double worth_simulating(const Traffic& traffic, const Answer& answer);

/// The same of one replica at `rate` requests a second, in so many seconds of a usual core.
double worth_simulating(const Steady& found, double rate, double seconds);

}  // namespace roofline::serving
