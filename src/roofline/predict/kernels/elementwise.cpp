// Kernels that stream their operands once: norms, rotary embedding, activations, residual sums, quantisation, copies,
// short convolutions, and one step of a recurrence (its state is read, updated and written back).
//
// Three things can hold such a kernel back: main memory, for what the cache does not hold; what one multiprocessor can
// move, which also is the speed of cache-resident operands; and the cost of every row, where rows are many and short.
#include <algorithm>
#include <array>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 6> constants = {{
    {"startup", "us", 2.5, 0.3, 60.0, "from launch to the first useful byte, and the drain at the end"},
    {"memory", "fraction", 0.8, 0.05, 1.0, "of the bandwidth of main memory, once all of the machine streams"},
    {"share", "fraction", 0.7, 0.02, 4.0, "of the cache that activations may fill and still be found there"},
    {"unit_rate", "GB/s", 35.0, 1.0, 400.0, "one multiprocessor moves at most, in and out, cache hits included"},
    {"row_cost", "us", 0.02, 0.0001, 5.0, "time of one multiprocessor for a row without content"},
    {"row_units", "multiprocessors", 4.0, 0.1, 1000.0, "that a kernel lets work on one row: few rows fill few of them"},
}};

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const double startup = c[0] * 1e-6;
    const double activations = k.input_bytes + k.output_bytes;

    // A working set beyond the cache evicts itself: hits fade faster than the excess grows.
    double missed = activations;
    if (m.cache > 0.0 && activations > 0.0) {
        const double room = c[2] * m.cache / activations;
        missed *= 1.0 - std::min(1.0, room * room);
    }
    const double memory = m.bandwidth > 0.0 ? (k.weight_bytes + missed) / (c[1] * m.bandwidth) : 0.0;

    double moving = 0.0;
    double rows = 0.0;
    if (m.units > 0.0) {
        const double busy = k.rows > 0.0 ? std::min(m.units, std::max(1.0, k.rows * c[5])) : m.units;
        moving = k.pace * (activations / busy + k.weight_bytes / m.units) / (c[3] * 1e9);
        rows = k.rows * c[4] * 1e-6 / m.units;
    }
    const double compute = m.peak > 0.0 ? k.flops / m.peak : 0.0;
    return startup + std::max(std::max(memory, moving), std::max(rows, compute));
}

}  // namespace

extern const KernelClass elementwise_class;
const KernelClass elementwise_class{"elementwise", "E5", constants, seconds, {}, true};

}  // namespace roofline::predict
