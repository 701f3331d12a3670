// A prediction as an account (core/account.hpp): what charts and comparisons need of it.
#pragma once

#include "roofline/core/account.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::predict {

Account account_of(const Scenario& scenario, const Report& report);

}  // namespace roofline::predict
