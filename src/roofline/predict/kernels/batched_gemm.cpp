// Many small products side by side, one per head (the absorbed projections of latent attention): small weights, so the
// activations are most of the traffic and come from the cache when they fit; short k, so a tile's start and end weigh.
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 7> constants = {{
    {"startup", "us", 4.0, 0.3, 60.0, "from launch to the first useful byte, and the drain at the end"},
    {"compute", "fraction", 0.5, 0.01, 1.0, "of the peak; low where the kernel also quantises or converts"},
    {"memory", "fraction", 0.8, 0.02, 1.0, "of the bandwidth"},
    {"overlap", "fraction", 0.2, 0.01, 1.0, "of the shorter of compute and memory that shows when both take as long"},
    {"cached", "times", 2.0, 1.0, 8.0, "the bandwidth, for activations that fit in half the cache"},
    {"tail", "fraction", 0.6, 0.02, 1.0, "of the last, partly filled wave that is paid"},
    {"prologue", "elements", 40.0, 1.0, 3000.0, "of k: what filling and emptying a tile costs"},
}};

struct Tile {
    double rows;
    double cols;
};

constexpr std::array<Tile, 8> tiles = {
    {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}, {32, 128}, {16, 128}}};
constexpr double small_tile = 4.0;  // multiply-adds per element loaded at which a tile loses half its speed

double padded_area(const Kernel& k, double units, double tail) {
    double best = 0.0;
    for (const Tile& tile : tiles) {
        const double count = k.copies * std::ceil(k.rows / tile.rows) * std::ceil(k.cols / tile.cols);
        const double waves = count / units;
        const double paid = waves + tail * (std::ceil(waves) - waves);
        const double slower = 1.0 + small_tile * (tile.rows + tile.cols) / (tile.rows * tile.cols);
        const double area = paid * units * tile.rows * tile.cols * slower;
        if (best == 0.0 || area < best) best = area;
    }
    return best;
}

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const double startup = c[0] * 1e-6;
    const double units = m.units > 0.0 ? m.units : 1.0;

    double compute = 0.0;
    if (m.peak > 0.0) {
        const double padded = 2.0 * padded_area(k, units, c[5]) * (k.inner + c[6]);
        compute = std::max(padded, k.flops) / (c[1] * m.peak);
    }

    double memory = 0.0;
    if (m.bandwidth > 0.0) {
        const double activations = k.input_bytes + k.output_bytes;
        // All of them up to half the cache, none from a full cache on: the benchmark's loop and the step around the
        // kernel both leave other data there.
        const double resident = m.cache > 0.0 ? std::clamp(2.0 * (1.0 - activations / m.cache), 0.0, 1.0) : 0.0;
        memory = (k.weight_bytes + activations * (1.0 - resident + resident / c[4])) / (c[2] * m.bandwidth);
    }

    const double longer = std::max(compute, memory);
    const double shorter = std::min(compute, memory);
    const double shows = longer > 0.0 ? c[3] * shorter * shorter / longer : 0.0;
    return startup + longer + shows;
}

}  // namespace

extern const KernelClass batched_gemm_class;
const KernelClass batched_gemm_class{"batched_gemm", "E2", constants, seconds};

}  // namespace roofline::predict
