// Predictions against measurements: on the diagonal they agree.
#pragma once

#include <string>
#include <vector>

namespace roofline::render::chart {

struct ScatterPoint {
    double measured = 0.0;   // seconds
    double predicted = 0.0;  // seconds
};

struct ScatterSeries {
    std::string name;
    std::vector<ScatterPoint> points;
};

/// As SVG. The band is where a prediction is within a fifth of the measurement.
std::string scatter_chart(const std::vector<ScatterSeries>& series, const std::string& title,
                          const std::string& subtitle);

}  // namespace roofline::render::chart
