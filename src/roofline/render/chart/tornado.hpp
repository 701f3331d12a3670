// What each of several changes would buy, the best first: twice as much of a resource, a move of `advise`.
#pragma once

#include <string>
#include <vector>

namespace roofline::render::chart {

struct TornadoBar {
    std::string name;
    double gain = 1.0;  // so many times better with it
    std::string note;
    std::string instead = {};  // of the number: why there is none
};

/// As SVG.
std::string tornado_chart(std::vector<TornadoBar> bars, const std::string& title, const std::string& subtitle);

}  // namespace roofline::render::chart
