// Deployments as moves change them: the node they lie in, and the flags that ask `predict` for the same.
#pragma once

#include <string>

#include "roofline/core/problem.hpp"
#include "roofline/decide/candidate.hpp"

namespace roofline::decide {

/// Gives a candidate another deployment; refused if it needs more devices than there are.
Result<std::string> spread(Candidate& candidate, model::Deployment deployment, double node, double most_devices);

/// "--tp 4 --pp 2".
std::string deployment_flags(const model::Deployment& deployment);

}  // namespace roofline::decide
