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

/// Compute roofs of a device that are worth a line, equal rates as one.
struct ComputeRoof {
    Engine engine = Engine::matrix;
    std::vector<DType> types;
    double limit = 0.0;       // FLOP/s
    double attainable = 0.0;  // likewise; equal to the limit where nobody measured
    bool used = false;        // by some record
    double flops = 0.0;       // of the records that use it

    std::string name() const;  // "bf16, fp16"; "fp32 vector"
};
std::vector<ComputeRoof> compute_roofs(const Account& account);
/// The one that most of the work runs on; else bf16, else the first. Null where there is none.
const ComputeRoof* main_roof(const std::vector<ComputeRoof>& roofs);

}  // namespace roofline::render::chart
