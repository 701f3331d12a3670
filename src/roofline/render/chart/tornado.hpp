// What doubling each resource of the machine would buy, the best first.
#pragma once

#include <string>
#include <vector>

namespace roofline::render::chart {

struct TornadoBar {
    std::string name;
    double gain = 1.0;  // so many times better with twice as much
    std::string note;
};

/// As SVG.
std::string tornado_chart(std::vector<TornadoBar> bars, const std::string& title, const std::string& subtitle);

}  // namespace roofline::render::chart
