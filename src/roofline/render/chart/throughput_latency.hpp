// What a larger batch buys and costs: tokens a second of the device against the time of a step.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace roofline::render::chart {

struct LoadPoint {
    double along = 0.0;          // the batch, or whatever grows along the curve
    double seconds = 0.0;        // expected, between two tokens of a sequence
    double rate = 0.0;           // expected tokens a second of all sequences
    double limit_seconds = 0.0;  // at datasheet peaks; zero: unknown
    double limit_rate = 0.0;
    bool compute_bound = false;
    bool fits = true;
    std::string bound = {};  // what holds it back, in a word; empty: not told
};

struct LoadCurve {
    std::string name;
    std::vector<LoadPoint> points;  // in the order of the curve
    std::optional<double> largest;  // that memory holds
};

/// As SVG. `along` names what grows: "batch".
std::string throughput_latency_chart(const std::vector<LoadCurve>& curves, const std::string& title,
                                     const std::string& along);

}  // namespace roofline::render::chart
