// The roofline: work against the ceilings of the machine it runs on, on two logarithmic axes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "roofline/core/account.hpp"

namespace roofline::render::chart {

struct RooflineOptions {
    std::string title;  // empty: of the accounts
    bool gaps = false;  // a line from every point up to its roof, with how far it is
    std::vector<Level> levels = {Level::memory, Level::cache};  // whose bandwidths are drawn
    double width = 960.0;
    double height = 640.0;
};

/// As SVG. An account without stages shows its device alone.
std::string roofline_chart(std::span<const Account> accounts, const RooflineOptions& options = {});

}  // namespace roofline::render::chart
