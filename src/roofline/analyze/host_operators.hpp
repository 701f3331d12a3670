// Traces of a processor alone: no kernels, operators are what ran.
#pragma once

#include "roofline/analyze/timeline.hpp"

namespace roofline::analyze {

/// Keeps of nested operators those that did the work and drops the ones around and inside them, so that every
/// nanosecond and every FLOP counts once.
void keep_what_ran(Timeline& timeline);

}  // namespace roofline::analyze
