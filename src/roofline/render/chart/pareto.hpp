// The plans that none beats: more for each user, or more from each device.
#pragma once

#include <string>
#include <vector>

namespace roofline::render::chart {

struct ParetoPoint {
    std::string name;         // what a mouse is told, and the label of the best
    std::string series;       // told apart by colour: the device
    double per_user = 0.0;    // output tokens a second that each user sees
    double per_device = 0.0;  // output tokens a second of each device
    int rank = 0;             // 1: the best, 2: the runner-up, 0: one of the front
};

/// As SVG.
std::string pareto_chart(const std::vector<ParetoPoint>& points, const std::string& title, const std::string& subtitle);

}  // namespace roofline::render::chart
