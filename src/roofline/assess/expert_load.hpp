// What reaches the timed rank of a routed-expert benchmark, from what its table says: tokens of all ranks together, and
// how they were dealt over the experts. Benchmarks time one rank; where loads differ, the busiest.
#pragma once

#include <cstdint>

namespace roofline::assess {

/// Sizes are positive, experts a multiple of ranks, chosen at most experts: the caller has checked.
struct Routing {
    std::int64_t tokens = 1;  // of all ranks
    std::int64_t experts = 1;
    std::int64_t chosen = 1;  // experts a token goes through
    std::int64_t ranks = 1;   // that share the experts, each with a consecutive block
    /// Some benchmarks give the kernel every slot of a token that has one here, and put those that belong elsewhere on
    /// the first expert, instead of leaving them out.
    bool whole_tokens = false;
};

struct ExpertLoad {
    double rows = 0.0;     // token slots this rank computes
    double experts = 0.0;  // its experts with at least one row
    double tokens = 0.0;   // with at least one slot here; counted for whole_tokens only, else 0
};

/// Token t goes through experts t, t + stride, t + 2 stride ..., the stride being experts / chosen rounded up; fewer
/// tokens than the stride are spread evenly over it. What the first rank gets.
ExpertLoad balanced_load(const Routing& routing);

/// Rows per expert drawn from a power law with this exponent, scaled to all slots, none above the tokens; what is cut
/// off or rounded away goes to the least loaded experts of each rank in turn. The table does not hold the draw that was
/// timed: this is the mean of a few, of a fixed sequence, for the rank with most rows.
ExpertLoad power_law_load(const Routing& routing, double exponent);

}  // namespace roofline::assess
