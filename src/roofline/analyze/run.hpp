// From a timeline to an analysis: what ran is tied to operators, operators to their place in the model, both to steps;
// then counted, held against the roofs, and told.
#pragma once

#include <string>

#include "roofline/analyze/analysis.hpp"
#include "roofline/analyze/timeline.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::analyze {

Result<Analysis> analyze_timeline(Timeline timeline, const Options& options, const std::string& name);

}  // namespace roofline::analyze
