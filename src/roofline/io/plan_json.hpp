// A plan as JSON: the keys of schema/plan.schema.json.
#pragma once

#include "roofline/decide/plan.hpp"
#include "roofline/io/report_json.hpp"

namespace roofline::io {

/// One entry per model that was asked about.
OrderedJson plan_json(const decide::Plan& plan, const decide::PlanQuestion& question);

}  // namespace roofline::io
