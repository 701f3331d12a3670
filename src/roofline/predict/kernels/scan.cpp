// Prefill of a recurrence (gated delta net, Mamba-2) in chunks: matrix work within a chunk, a state carried from chunk
// to chunk. A sequence's chunks follow each other, so long sequences with few heads wait for that chain however large
// the machine is; many of them are bound by tiles or by the traffic of intermediate results. One step of decoding is no
// scan: it streams its state and belongs to the element-wise class.
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 7> constants = {{
    {"startup", "us", 18.0, 1.0, 400.0, "launches of all the kernels that make up the scan"},
    {"step", "us", 2.5, 0.02, 50.0, "of the chain from one chunk of a sequence to its next"},
    {"unit_rate", "TFLOP/s", 0.7, 0.01, 20.0, "one multiprocessor sustains on whole chunks"},
    {"memory", "fraction", 0.25, 0.02, 1.0,
     "of main memory's bandwidth; intermediate results, which are not counted, lower it"},
    {"share", "fraction", 0.3, 0.02, 5.0, "of the cache that operands may fill and still be found there"},
    {"overlap", "fraction", 0.3, 0.01, 1.0, "of the shorter of two limits that still shows: 0 hides it, 1 adds them"},
    {"state_rate", "GB/s", 60.0, 1.0, 500.0, "one multiprocessor loads and stores states"},
}};

constexpr double chunk = 64.0;               // tokens; a shorter piece costs as much as a whole one
constexpr double state_element = 2.0 * 4.0;  // bytes in and out of a state number in fp32

double blend(double a, double b, double overlap) {
    return std::max(a, b) + overlap * std::min(a, b);
}

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const double queries = std::max(k.queries, 1.0);
    const double chunks = std::ceil(queries / chunk);
    const double chain = chunks * c[1] * 1e-6;

    double tiles = 0.0;
    double states = 0.0;
    if (m.units > 0.0) {
        tiles = k.flops * (chunks * chunk / queries) / (c[2] * 1e12 * m.units);
        states = state_element * k.sequences * k.heads * k.key_dim * k.value_dim / (c[6] * 1e9 * m.units);
    }
    double memory = 0.0;
    double floor = 0.0;
    if (m.bandwidth > 0.0) {
        double missed = 1.0;
        if (m.cache > 0.0 && k.bytes() > 0.0) {
            const double room = c[4] * m.cache / k.bytes();
            missed -= std::min(1.0, room * room);
        }
        memory = missed * ((k.input_bytes + k.output_bytes) / c[3] + k.weight_bytes) / m.bandwidth;
        floor = k.weight_bytes / m.bandwidth;
    }
    if (m.peak > 0.0) {
        floor = std::max(floor, k.flops / m.peak);
    }
    const double work = blend(chain, blend(tiles, memory, c[5]), c[5]) + states;
    return c[0] * 1e-6 + std::max(work, floor);
}

}  // namespace

extern const KernelClass scan_class;
const KernelClass scan_class{"scan", "E6", constants, seconds};

}  // namespace roofline::predict
