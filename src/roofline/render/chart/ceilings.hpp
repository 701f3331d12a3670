// What stands above the points of a roofline chart: compute roofs by type and bandwidth slopes by level, for each
// machine once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "roofline/core/account.hpp"
#include "roofline/render/chart/spots.hpp"

namespace roofline::render::chart {

/// Compute roofs of a device that are worth a line, equal rates as one.
struct ComputeRoof {
    Engine engine = Engine::matrix;
    std::vector<DType> types;
    double limit = 0.0;       // FLOP/s
    double attainable = 0.0;  // likewise; equal to the limit where nobody measured
    bool used = false;        // by some record
    double flops = 0.0;       // of the records that use it

    std::string name() const;              // "bf16, fp16"; "fp32 vector"
    std::string spelt(double rate) const;  // in FLOP/s, or OP/s where all its types are integers
};
std::vector<ComputeRoof> compute_roofs(const Account& account);
/// The one that most of the work runs on; else bf16, else the first. Null where there is none.
const ComputeRoof* main_roof(const std::vector<ComputeRoof>& roofs);

struct Slope {
    Level level = Level::memory;
    double limit = 0.0;  // bytes a second; zero: only measured
    double attainable = 0.0;
};

/// A device as it is drawn: once, however many reports are about it.
struct Ceiling {
    std::size_t account = 0;
    std::vector<ComputeRoof> roofs;
    std::vector<Slope> slopes;  // memory first
    const ComputeRoof* main = nullptr;

    double memory() const { return slopes.empty() ? 0.0 : slopes.front().limit; }
    /// What much of the work runs on is drawn bold.
    bool bold(const ComputeRoof& roof) const;
};

std::vector<Ceiling> ceilings_of(std::span<const Account> accounts, const std::vector<Level>& levels);

/// FLOPs per byte up to which memory holds back whatever is drawn, and from which compute does. In between it depends
/// on the engine and number type: each roof has a ridge of its own. Zeros where there is none.
struct Ridges {
    double lowest = 0.0;
    double highest = 0.0;
};
/// Of the bold roofs, and of those under which a point that takes 2% of its stage or more would stand on the wrong
/// side.
Ridges ridges_of(const Ceiling& ceiling, const Device& device, std::span<const Spot> spots);

/// The same name and the same figures: --set may have changed one of two that are called alike.
bool same_machine(const Device& a, const Device& b);

}  // namespace roofline::render::chart
