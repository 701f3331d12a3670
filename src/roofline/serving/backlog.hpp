// How full steps are with prompts: prompts come at random and wait for a place in the token budget of a step. A small
// Markov chain over the tokens that wait.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace roofline::serving {

struct PromptSize {
    double tokens = 0.0;  // to compute
    double weight = 0.0;
    double past = 0.0;  // tokens in front of them that are cached
};

struct BacklogInput {
    std::vector<PromptSize> sizes;  // weights add up to 1
    double arrivals = 0.0;          // prompts per step, mean
    double sources = 0.0;           // slots that they come from: at most one prompt each; 0: without limit (Poisson)
    double room = 1.0;              // tokens of prompts that a step takes
    bool by_the_clock = false;      // prompts come by the second, not by the step: more of them during a long step
    double use = 0.0;               // by the clock: arrivals over what the replica can serve; how far a queue may reach
};

/// Tokens that wait, in cells.
struct BacklogGrid {
    double cell = 1.0;       // tokens
    std::size_t room = 1;    // cells that a step takes
    std::size_t levels = 1;  // cells that a step may compute: 0 to levels - 1
    std::size_t states = 1;
};
BacklogGrid backlog_grid(const BacklogInput& input);

/// S7: `level[l]` is the probability that a step computes l cells of prompt tokens.
struct Backlog {
    std::vector<double> level;
    std::vector<double> arriving;  // probability that so many cells come in one step; empty: every step is full
    double left = 0.0;             // by the clock: tokens that the step under way has no room for, at any time
};

/// `durations`: by the clock, the time of a step at each level over the time in which `arrivals` come; else not looked
/// at. Without a clock the mean of the levels is exactly what must be computed.
Backlog backlog(const BacklogInput& input, const BacklogGrid& grid, std::span<const double> durations = {});

}  // namespace roofline::serving
