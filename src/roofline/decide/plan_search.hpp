// P1 to P6: every candidate of a plan priced by a closed form, and those kept that can still be wanted: all that meet
// the targets, the fronts, and where nothing meets them the closest.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "roofline/decide/pareto.hpp"
#include "roofline/decide/plan.hpp"

namespace roofline::decide {

/// No layout: prompts are computed beside outputs.
inline constexpr std::uint32_t no_layout = static_cast<std::uint32_t>(-1);

/// A candidate as the search keeps it: places in its tables, and what came of it.
struct Pick {
    std::uint32_t main = 0;  // layout
    std::uint32_t batch = 0;
    std::uint32_t step = 0;
    std::uint32_t prefill = no_layout;  // layout of the pool for prompts
    std::uint32_t prefill_step = 0;
    double replicas = 1.0;
    double prefill_replicas = 0.0;
    Performance performance;
    double devices = 0.0;
    double cost_per_hour = 0.0;
    double worst = 0.0;  // largest of value over target: 1 or less meets them all
    Merits merits;

    bool apart() const { return prefill != no_layout; }
};

/// What the best of each target is, whatever the others ask.
struct Extremes {
    double ttft = std::numeric_limits<double>::infinity();
    double tpot = std::numeric_limits<double>::infinity();
    double requests = 0.0;
    double cost = std::numeric_limits<double>::infinity();
};

struct Found {
    std::vector<PricedLayout> layouts;
    std::vector<Pick> meeting;  // the targets
    Front<Pick> meeting_front;
    Front<Pick> front;  // of those before the first that meets them
    std::optional<Pick> closest;
    Extremes extremes;
    double requests_limit = 0.0;
    Counts counts;
};

Found search(const PlanQuestion& question);

}  // namespace roofline::decide
