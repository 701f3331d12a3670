// A plan as JSON: the keys of schema/plan.schema.json.
#pragma once

#include "roofline/decide/plan.hpp"
#include "roofline/io/json_text.hpp"

namespace roofline::io {

/// One entry per model that was asked about, as the keys of an object that is open.
void write_plan(JsonText& json, const decide::Plan& plan, const decide::PlanQuestion& question);

}  // namespace roofline::io
