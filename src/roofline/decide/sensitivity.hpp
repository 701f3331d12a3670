// What a goal owes to each resource of the machine: what doubling one buys, and the slope where the machine stands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "roofline/decide/resources.hpp"
#include "roofline/decide/score.hpp"

namespace roofline::decide {

struct Sensitivity {
    Resource resource;
    double doubled = 1.0;              // the goal gets so many times better with twice as much of it
    std::optional<double> elasticity;  // percent better for one percent more; empty for capacity, which comes in steps
    std::string note;
};

/// D4. Capacity counts through the largest batch it holds, under goals that a batch helps.
std::vector<Sensitivity> sensitivities(const Candidate& asked, const Score& score, Goal goal);

/// The number types that the stage a goal looks at multiplies in, the one with most of the compute time first.
std::vector<DType> working_types(const Candidate& asked, const Score& score, Goal goal);

}  // namespace roofline::decide
