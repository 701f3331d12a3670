// By which type of constants an operator's kernels are known.
#pragma once

#include <string_view>

#include "roofline/model/operators.hpp"
#include "roofline/model/step.hpp"

namespace roofline::predict {

/// What constants of a class are told apart by: the type of the weights; for element-wise work, what kind it is.
std::string_view kernel_type(const model::Operator& op, model::Phase phase);

}  // namespace roofline::predict
