// Changes one after another, and what is left after each.
#pragma once

#include <string>
#include <vector>

namespace roofline::render::chart {

struct WaterfallStep {
    std::string name;
    double value = 0.0;  // after it
    std::string text;    // the value in words
};

/// As SVG. The first step is where it begins; less is better.
std::string waterfall_chart(const std::vector<WaterfallStep>& steps, const std::string& title,
                            const std::string& subtitle);

}  // namespace roofline::render::chart
