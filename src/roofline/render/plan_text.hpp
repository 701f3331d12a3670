// A plan for people: the best, the runner-up, what limits each, and the front as a table.
#pragma once

#include <string>

#include "roofline/decide/plan.hpp"

namespace roofline::render {

enum class PlanForm { text, markdown };

/// `most_rows` of the front are shown, evenly chosen; 0: all.
std::string plan_text(const decide::Plan& plan, const decide::PlanQuestion& question, PlanForm form,
                      std::size_t most_rows);

/// The front, all of it.
std::string plan_csv(const decide::Plan& plan, const decide::PlanQuestion& question);

}  // namespace roofline::render
