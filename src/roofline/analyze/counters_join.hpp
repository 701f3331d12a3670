// Counted launches beside a model's operators: which launch is whose follows from the order and the names of kernels,
// as for graphs without shapes; then real times and bytes stand beside predicted ones.
#pragma once

#include <span>
#include <string>

#include "roofline/analyze/counters.hpp"

namespace roofline::analyze {

struct LaunchSpan {
    std::size_t begin = 0;
    std::size_t end = 0;  // behind the last
    std::string name;     // of the stage: "prefill", "decode 2"
};

/// Fills in `joined`, the model and what its operators moved; a note where the model cannot be what ran.
Result<void> join_counters(std::span<const Counters> launches, std::span<const LaunchSpan> steps,
                           const Options& options, Analysis& analysis);

}  // namespace roofline::analyze
