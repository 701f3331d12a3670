// One of the two products of a routed-expert feed-forward network: `copies` experts that are touched, each with its own
// weights and on average `rows` rows of tokens. The two products of a network share their constants, and each carries
// half of what lies around them: routing, permutation, activation, quantisation, the final weighted sum.
//
// Work is dealt in tiles of output. An expert with few rows still pays for a whole tile, and an engine chooses the
// height of its tiles by the rows it expects per expert (`queries`: all token slots offered to this rank over its
// experts), which expert parallelism makes larger than the rows that arrive. Tiles run in waves over the
// multiprocessors, while the weights of the touched experts stream from memory.
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr double tile_cols = 128.0;      // grouped kernels use 64 to 256; the constants absorb the difference
constexpr double least_tile_rows = 8.0;  // the narrowest side of a matrix instruction
constexpr double usual_units = 128.0;    // where the device file does not say

constexpr std::array<Constant, 10> constants = {{
    {"startup", "us", 10.0, 1.0, 100.0, "launches of this product and its share of routing, permutation and final sum"},
    {"compute", "fraction", 0.6, 0.03, 1.0, "of the peak rate, inside a full tile"},
    {"memory", "fraction", 0.85, 0.1, 1.0, "of the memory bandwidth, streaming expert weights"},
    {"tile", "rows", 64.0, 8.0, 256.0, "highest tile the engine chooses; rows are padded to it"},
    {"overlap", "fraction", 0.5, 0.01, 1.0, "of the shorter of compute and weight stream that is not hidden"},
    {"around", "fraction", 0.5, 0.02, 1.0, "of the memory bandwidth, moving activations between the steps"},
    {"step", "ns", 0.5, 0.02, 30.0, "latency of one element of the inner dimension of a tile, however thin"},
    {"tile_step", "ns", 0.6, 0.02, 30.0, "the same per 128 rows: feeding operands, unpacking weights"},
    {"lead", "elements", 128.0, 8.0, 3000.0, "start and end of a tile, as elements of its inner dimension"},
    {"cached", "times", 3.0, 1.0, 10.0, "activations that fit half the cache move this much faster"},
}};

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const double startup = c[0] * 1e-6;
    const double units = m.units > 0.0 ? m.units : usual_units;

    const double expected_rows = k.queries > 0.0 ? k.queries : k.rows;
    const double least_rows = m.tile > 0.0 ? std::min(m.tile, least_tile_rows) : least_tile_rows;  // a CPU: 1
    const double tile_rows = std::min(std::max(expected_rows, least_rows), c[3]);
    // Rows are uneven: an expert above one tile wastes half a tile on average.
    const double tiles_down = std::max(1.0, k.rows / tile_rows + 0.5);
    const double tiles = k.copies * tiles_down * std::ceil(k.cols / tile_cols);
    // Never less than one wave, never less than the work shared evenly; in between, a last wave that is part full.
    // Smooth, because where whole waves end depends on a tile height that is itself fitted.
    const double even = tiles / units;
    const double waves = 1.0 + even * even / (even + 1.0);
    double per_element = c[6] * 1e-9 + c[7] * 1e-9 * tile_rows / 128.0;
    if (m.peak > 0.0) per_element += 2.0 * tile_rows * tile_cols * units / (c[1] * m.peak);
    const double compute = waves * (k.inner + c[8]) * per_element;

    const double stream = m.bandwidth > 0.0 ? k.weight_bytes / (c[2] * m.bandwidth) : 0.0;

    const double activations = k.input_bytes + k.output_bytes;
    const double near = std::min(activations, 0.5 * m.cache);
    const double around = m.bandwidth > 0.0 ? (activations - near + near / c[9]) / (c[5] * m.bandwidth) : 0.0;

    return startup + std::max(compute, stream) + c[4] * std::min(compute, stream) + around;
}

}  // namespace

extern const KernelClass expert_product_class;
const KernelClass expert_product_class{"expert_product", "E7", constants, seconds};

}  // namespace roofline::predict
