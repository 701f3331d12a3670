// A step whose kernels were captured once and are launched together: nearly the sum of its kernels. What is left is a
// fixed cost per step, a gap between kernels, and clocks that sink when the matrix units are kept busy.
#include <algorithm>
#include <array>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 5> constants = {{
    {"per_step", "us", 10.0, 0.1, 500.0, "launching the graph, and the drain of its last kernel"},
    {"per_launch", "us", 0.3, 0.01, 10.0, "from one kernel to the next, beyond what a kernel timed alone shows"},
    {"sustained", "fraction", 0.05, 0.0005, 0.4, "time lost to lower clocks while the matrix units never rest"},
    {"onset", "ms", 15.0, 0.5, 300.0, "of busy matrix units until half of that loss is there"},
    {"scale", "fraction", 1.02, 1.0, 1.25, "kernels in a row against the same kernels timed alone"},
}};

double seconds(const Kernel& kernel, const Machine& machine, std::span<const double> c) {
    if (kernel.kernel_seconds <= 0.0) return 0.0;
    const double busy = machine.peak > 0.0 ? std::min(kernel.flops / machine.peak / kernel.kernel_seconds, 1.0) : 0.0;
    const double busy_seconds = busy * kernel.kernel_seconds;
    const double droop = c[2] * busy * busy_seconds / (busy_seconds + 1e-3 * c[3]);
    return 1e-6 * (c[0] + c[1] * kernel.launches) + kernel.kernel_seconds * c[4] * (1.0 + droop);
}

}  // namespace

extern const KernelClass graph_step_class;
const KernelClass graph_step_class{"graph_step", "E9", constants, seconds};

}  // namespace roofline::predict
