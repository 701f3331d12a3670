// A saturated pipeline followed step by step, with counts in place of requests and prices read off a small table. Which
// steps meet which matters there: a long one holds up those behind it, they come through together, and their prompts
// pile up in the next. No distribution of single steps knows that.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "roofline/serving/replica.hpp"

namespace roofline::serving {

/// Costs of steps by their prompt tokens, by how far into their prompts those are, and by decoding sequences; between
/// the points linear.
struct StepTable {
    static constexpr std::size_t counts = 3;  // of decoding sequences: none, half of the most, the most
    using ByDecoding = std::array<StepCost, counts>;
    struct Row {
        double tokens = 0.0;
        // What a token of them looks at on average, itself in the middle: at the head of prompts, at the end of the
        // longest.
        double near = 0.0;
        double far = 0.0;
        ByDecoding at_head{};
        ByDecoding at_end{};
    };
    double most_decoding = 1.0;  // sequences
    std::vector<Row> rows;       // by tokens, ascending from 0

    StepCost at(double prompt_tokens, double looked_at, double decoding) const;
};

struct PipelineRequest {
    double weight = 0.0;
    double fresh = 0.0;  // prompt tokens to compute
    double past = 0.0;   // tokens in front of them that are cached
    double steps = 0.0;  // that it writes in after its prompt
};

struct PipelineInput {
    std::size_t stages = 2;
    std::size_t slots = 1;     // requests that are inside at once, always
    double budget = 1.0;       // tokens of a step
    double step_tokens = 1.0;  // of the budget, that a writing request takes
    double samples = 1.0;      // sequences of a writing request
    bool holds_up = true;      // false: the slowest stage is never without work
    std::vector<PipelineRequest> requests;
};

/// Means over steps, or over requests where it says so.
struct PipelineFlow {
    double interval = 0.0;  // seconds from one step to the next
    double ended = 0.0;     // requests per step
    double writing = 0.0;   // requests that write in a step
    double inside = 0.0;    // requests, those whose prompt is computed included
    double prompt = 0.0;    // seconds from admission to the first token, mean of requests
    double flops = 0.0;
    double memory_bytes = 0.0;
};

/// S8. The same numbers every time: its requests are drawn from a seed of its own.
PipelineFlow follow(const PipelineInput& input, const StepTable& table);

}  // namespace roofline::serving
