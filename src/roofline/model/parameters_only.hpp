// A model of which only the number of parameters is known: its weights stream once per step, two flops each per token.
#pragma once

#include "roofline/model/operators.hpp"
#include "roofline/model/types.hpp"

namespace roofline::model {

Lowered lower_parameters_only(double parameters, const TypePlan& types);

}  // namespace roofline::model
