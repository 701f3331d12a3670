// The rows of a sweep as curves of throughput against latency, for --plot.
#pragma once

#include <string>
#include <vector>

#include "roofline/ask/sweep/grid.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/render/chart/throughput_latency.hpp"

namespace roofline::cli {

struct Curves {
    std::vector<render::chart::LoadCurve> curves;
    std::string title;
    std::string along;  // "batch", or the axis that is asked about in its place
};

/// Decode steps of every point. What varies beside the batch tells curves apart.
Result<Curves> curves_of(const ask::Grid& grid, std::size_t first, std::size_t last);

}  // namespace roofline::cli
