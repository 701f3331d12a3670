// What a priced stage says in the five times, and what one replica is given to do: for reports and for whoever sums up
// steps of his own.
#pragma once

#include <cmath>
#include <optional>

#include "roofline/core/record.hpp"
#include "roofline/predict/prepared.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::predict {

/// `parts`: of so many equal ones, the time of each.
inline Times times_of(const StageTime& stage, double parts = 1.0) {
    return {.limit = Seconds(stage.limit / parts),
            .attainable = Seconds(stage.attainable / parts),
            .expected = Seconds(stage.expected / parts),
            .expected_low = Seconds(stage.expected_low / parts),
            .expected_high = Seconds(stage.expected_high / parts),
            .measured = std::nullopt};
}

/// Replicas share the sequences.
inline Workload of_one_replica(const Scenario& scenario) {
    Workload workload = scenario.workload;
    workload.batch = std::ceil(workload.batch / scenario.deployment.replicas);
    return workload;
}

}  // namespace roofline::predict
