// Pictures of what `decide` answers: advice as a waterfall and a tornado, plans as a front.
#pragma once

#include <string>
#include <vector>

#include "roofline/decide/advise.hpp"
#include "roofline/decide/plan.hpp"

namespace roofline::render::chart {

/// The best combinations move by move, and what doubling each resource buys.
std::vector<std::string> advice_charts(const decide::Advice& advice);

/// Every move by itself, whether it helps or not: what was tried and refused is an answer too. Of no move, nothing.
std::vector<std::string> move_charts(const decide::Advice& advice);

std::string plan_figure(const decide::Plan& plan, const decide::PlanQuestion& question);

}  // namespace roofline::render::chart
