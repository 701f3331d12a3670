// Things by two of their figures, both logarithmic: machines by bandwidth and compute, models by weights and cache.
#pragma once

#include <string>
#include <vector>

namespace roofline::render::chart {

struct LandscapePoint {
    std::string name;
    std::string series;  // has a colour and a shape
    double x = 0.0;
    double y = 0.0;
    std::string explained;  // for the mouse
    bool ringed = false;
};

/// y = ratio * x, with words along it.
struct Diagonal {
    double ratio = 1.0;
    std::string words;
};

struct LandscapeLook {
    std::string title;
    std::string subtitle;
    std::string x_name;
    std::string y_name;
    std::vector<Diagonal> diagonals;
};

/// As SVG. Points without a place on such axes are left out and counted at the foot.
std::string landscape_chart(const std::vector<LandscapePoint>& points, const LandscapeLook& look);

}  // namespace roofline::render::chart
