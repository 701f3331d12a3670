// A step launched kernel by kernel: the device waits for the host whenever a kernel is shorter than its launch.
#include <algorithm>
#include <array>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 2> constants = {{
    {"per_step", "us", 300.0, 1.0, 20000.0, "of the host: preparing inputs, fetching the token"},
    {"per_launch", "us", 6.0, 0.5, 200.0, "of the host: one kernel through the framework and the driver"},
}};

constexpr double in_a_row = 1.03;  // kernels after one another against the same kernels timed alone, as graphs show it

double seconds(const Kernel& kernel, const Machine&, std::span<const double> c) {
    const double host = 1e-6 * (c[0] + c[1] * kernel.launches);
    return std::max(in_a_row * kernel.kernel_seconds, host);
}

}  // namespace

extern const KernelClass eager_step_class;
const KernelClass eager_step_class{"eager_step", "E10", constants, seconds};

}  // namespace roofline::predict
