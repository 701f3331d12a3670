// P4, P5: replicas that only compute prompts, and the way of a prompt's cache to those that write the output.
#pragma once

#include <cstddef>
#include <vector>

#include "roofline/decide/candidates.hpp"

namespace roofline::decide {

/// A pool for prompts: a layout and a step size, per replica.
struct PromptPool {
    std::size_t layout = 0;
    std::size_t step = 0;
    double devices = 0.0;
    double capacity = 0.0;
    double capacity_limit = 0.0;
    double ttft = 0.0;
};

struct PromptPools {
    std::vector<PromptPool> all;
    std::vector<PromptPool> kept;  // those that none of the others beats
};

/// P4: a pool that only computes prompts of so many tokens.
PromptPool prompt_pool(const std::vector<PricedLayout>& layouts, std::size_t layout, std::size_t step, double prompt);

/// The pools of layouts [first, end).
PromptPools prompt_pools(const std::vector<PricedLayout>& layouts, std::size_t first, std::size_t end, double prompt);

/// P5: seconds that the cache of one prompt travels among so many devices.
double transfer_seconds(const Choices& choices, const PricedLayout& from, const PricedLayout& to, double devices);

}  // namespace roofline::decide
