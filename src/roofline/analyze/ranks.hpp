// Several ranks of one run: who computes longest, and who waits for it. A collective ends for all at once, so what one
// rank spends in collectives beyond the rank that spends least is waiting.
#pragma once

#include <string>
#include <vector>

#include "roofline/analyze/analysis.hpp"
#include "roofline/analyze/text.hpp"

namespace roofline::analyze {

/// Writes into each analysis what it is among the others. Of a single one: nothing.
void compare_ranks(std::vector<Analysis>& analyses);

/// One summary of all, after `compare_ranks`.
std::string ranks_text(const std::vector<Analysis>& analyses, const TextOptions& options);

}  // namespace roofline::analyze
