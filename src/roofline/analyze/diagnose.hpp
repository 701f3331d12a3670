// What an analysis means in words: each finding with the figures it rests on, the move of `advise` that answers it, and
// what that could win in this very run.
#pragma once

#include "roofline/analyze/analysis.hpp"

namespace roofline::analyze {

/// The most that could be won comes first.
std::vector<Diagnosis> diagnose(const Analysis& analysis);

}  // namespace roofline::analyze
