// Which rows of a step go to which experts of a mixture, and what becomes of their results.
#pragma once

#include <cstdint>
#include <vector>

#include "roofline/bench/threads.hpp"

namespace roofline::bench {

/// Rows of a step, expert after expert: each row is there as often as it has experts.
struct Routing {
    std::int64_t chosen = 0;           // experts of a row
    std::vector<std::int64_t> begins;  // where an expert's rows begin, and behind the last one their number
    std::vector<std::int64_t> rows;    // of the step, in that order
    std::vector<std::int64_t> places;  // [row][chosen]: where a row lies in it
    std::vector<float> shares;         // [row][chosen]: of an expert in a row's result; those of a row add up to 1
};

/// Every row goes to the `chosen` experts with its highest scores; shares are the softmax over these.
void route(const float* scores, std::int64_t rows, std::int64_t experts, std::int64_t chosen, Routing& routing,
           Threads& threads);
/// Copies rows of x to where their experts find them.
void scatter_rows(const float* x, const Routing& routing, float* y, std::int64_t width, Threads& threads);
/// y = the sum of a row's results by its experts, each with its share.
void combine_rows(const float* x, const Routing& routing, float* y, std::int64_t width, Threads& threads);

}  // namespace roofline::bench
