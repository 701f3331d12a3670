// P7: what `serving` says of a candidate that the closed form found: the whole mix of requests, waiting included.
#pragma once

#include "roofline/core/problem.hpp"
#include "roofline/decide/plan_search.hpp"

namespace roofline::decide {

/// `seconds` of a core may be spent on a simulation where the rate asked for is near capacity; 0: none.
Result<Served> serve(const PlanQuestion& question, const std::vector<PricedLayout>& layouts, const Pick& pick,
                     double seconds);

/// Whether the targets are met then too.
bool holds(const Targets& targets, const Served& served);

}  // namespace roofline::decide
