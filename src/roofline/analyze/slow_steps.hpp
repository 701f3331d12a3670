// Steps in which the device mostly waited for something that happens once: compiling, loading, choosing kernels.
#pragma once

#include <string>
#include <vector>

#include "roofline/analyze/items.hpp"
#include "roofline/analyze/steps.hpp"

namespace roofline::analyze {

/// Moves steps that waited far longer than those like them take out of their stages, among what ran outside steps: one
/// of them would be most of an average, and what it says of the others would be wrong. A note for each is returned.
std::vector<std::string> set_slow_steps_apart(const Items& items, Steps& steps);

}  // namespace roofline::analyze
