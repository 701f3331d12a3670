// Deployments as moves change them: the node they lie in, and the flags that ask `predict` for the same.
#pragma once

#include <string>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/decide/candidate.hpp"
#include "roofline/decide/move.hpp"

namespace roofline::decide {

/// Gives a candidate another deployment; refused if it needs more devices than there are.
Result<std::string> spread(Candidate& candidate, model::Deployment deployment, double node, double most_devices);

/// "--tp 4 --pp 2".
std::string deployment_flags(const model::Deployment& deployment);

/// Variants of one degree of parallelism, 1, 2, 4 ... for as long as there are devices, without the one in use (`now`);
/// or why there are none.
std::vector<Variant> doubled(const Question& question, double now, const char* name,
                             Variant (*with)(double degree, const Surroundings& around));

}  // namespace roofline::decide
