// Pictures of what `decide` answers: advice as a waterfall and a tornado, plans as a front.
#pragma once

#include <string>

#include "roofline/decide/advise.hpp"
#include "roofline/decide/plan.hpp"

namespace roofline::render::chart {

/// The best combinations move by move, every single move, and what doubling each resource buys.
std::string advice_figure(const decide::Advice& advice);

std::string plan_figure(const decide::Plan& plan, const decide::PlanQuestion& question);

}  // namespace roofline::render::chart
