// Clocks, watts and degrees, asked of NVML where it is there. Its header often is not, so the few functions used are
// spelt out here. Nothing is ever set.
#pragma once

#include <optional>
#include <string>

#include "roofline/measure/cuda/frame.cuh"

namespace roofline::probe {

struct State {
    std::optional<double> clock_hz;  // of the multiprocessors
    std::optional<double> watts;
    std::optional<double> celsius;
    std::optional<double> busy_percent;  // of the last while, whoever used it
};

struct Limits {
    std::optional<double> power_w;
    std::optional<double> highest_clock_hz;
    std::optional<double> memory_clock_hz;
    int pcie_generation = 0;
    int pcie_width = 0;
    std::string driver;
};

/// Of the device whose PCI address CUDA gives. Fields are empty where NVML is missing or refuses.
State state_of(int device);
Limits limits_of(int device);
bool nvml_is_there();

}  // namespace roofline::probe
