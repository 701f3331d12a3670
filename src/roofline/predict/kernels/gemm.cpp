// Dense products y = x W: tiles in waves over the multiprocessors against one stream of the weights, the two
// overlapping imperfectly near the ridge. What an engine does to the activations first (quantising them) is a constant
// of its own, so that a bare kernel and an engine's linear layer share the formula and differ in their fit.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 10> constants = {{
    {"startup", "us", 3.0, 0.3, 60.0, "from launch to the first useful byte, and the drain at the end"},
    {"compute", "fraction", 0.80, 0.02, 1.0, "of the peak, in full tiles of 128 x 256"},
    {"memory", "fraction", 0.86, 0.05, 1.0, "of the bandwidth, with every multiprocessor loading"},
    {"overlap", "fraction", 0.19, 0.01, 1.0, "of the shorter of compute and memory that shows when both take as long"},
    {"small_tile", "elements", 10.0, 0.5, 400.0, "at which a tile is half as fast; low: small tiles fill odd waves"},
    {"idle", "fraction", 0.10, 0.005, 1.0, "of the weights' time lost per share of multiprocessors without columns"},
    {"sustained", "fraction", 0.93, 0.5, 1.0, "of the speed left once a product runs long and the clock gives way"},
    {"tail", "fraction", 0.8, 0.05, 1.0, "of the last, partly filled wave that is paid; work shared along k pays less"},
    {"input_passes", "times", 0.3, 0.01, 40.0, "the activations' bytes again, outside the product: quantising them"},
    {"step", "ns", 0.8, 0.05, 20.0, "per element of k: a tile walks k in order, however few columns there are"},
}};

/// Sides of 256, 128 or 64.
struct Tile {
    std::size_t row_place;  // 0: 256 rows, 1: 128, 2: 64
    std::size_t col_place;
    double area;
    double load;  // area x (elements loaded per multiply-add)^2: what makes a small tile slower

    constexpr Tile(double rows, double cols)
        : row_place(place(rows)),
          col_place(place(cols)),
          area(rows * cols),
          load((rows + cols) * (rows + cols) / (rows * cols)) {}
    static constexpr std::size_t place(double side) { return side == 256.0 ? 0U : side == 128.0 ? 1U : 2U; }
};

constexpr std::array<Tile, 6> tiles = {{{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}}};
constexpr const Tile& largest = tiles[1];
constexpr double slice = 8192.0;      // longer k is split between multiprocessors
constexpr double heat_time = 1.5e-3;  // seconds: half of the clock's way down

// Multiply-adds per element of k, of the tile shape that wastes least: padding, unfilled waves and small tiles count.
double padded_area(const Kernel& k, double units, double small_tile, double tail) {
    const double small = small_tile * small_tile;
    const std::array<double, 3> row_tiles = {std::ceil(k.rows / 256.0), std::ceil(k.rows / 128.0),
                                             std::ceil(k.rows / 64.0)};
    const std::array<double, 3> col_tiles = {std::ceil(k.cols / 256.0), std::ceil(k.cols / 128.0),
                                             std::ceil(k.cols / 64.0)};
    const double copies = k.copies / units;
    double best = std::numeric_limits<double>::infinity();
    for (const Tile& tile : tiles) {
        const double waves = copies * row_tiles[tile.row_place] * col_tiles[tile.col_place];
        // A hair less, so that a wave that is full but for rounding does not count as two.
        const double paid = waves + tail * (std::ceil(waves - 1e-9) - waves);
        best = std::min(best, paid * (tile.area + small * tile.load));
    }
    return best * units / (1.0 + small * largest.load / largest.area);
}

// Loading capacity without columns to load, against what has some: thin products give each multiprocessor 64 or 128
// columns, and a wave lasts as long when it is half empty. Columns are not rounded up, so that one more never helps.
double idle_share(const Kernel& k, double units) {
    const double wide = k.copies * k.cols / 128.0 * std::max(1.0, k.inner / slice) / units;
    if (wide <= 0.0) return 0.0;
    return (0.5 * std::ceil(wide) + 0.25 * std::ceil(2.0 * wide)) / wide - 1.0;
}

/// A systolic array holds a square of weights and streams rows through it, eight at a time: whatever is smaller is
/// padded with zeros that cost as much. A side of 1 pads nothing.
double systolic_flops(const Kernel& k, double side) {
    const double at_once = std::min(8.0, side);
    const double rows = std::ceil(k.rows / at_once) * at_once;
    return 2.0 * k.copies * rows * std::ceil(k.cols / side) * side * std::ceil(k.inner / side) * side;
}

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const double startup = c[0] * 1e-6;
    const double units = m.units > 0.0 ? m.units : 1.0;  // unknown: waves of one tile, only padding is left

    double compute = 0.0;
    if (m.peak > 0.0) {
        const double padded =
            m.tile > 0.0 ? systolic_flops(k, m.tile) : 2.0 * padded_area(k, units, c[4], c[7]) * k.inner;
        compute = std::max(padded, k.flops) / (c[1] * m.peak);
        compute /= 1.0 - (1.0 - c[6]) * compute / (compute + heat_time);
    }

    double memory = 0.0;
    double inputs = 0.0;
    if (m.bandwidth > 0.0) {
        const double idle = m.units > 0.0 ? c[5] * idle_share(k, units) : 0.0;
        memory = (k.bytes() + k.weight_bytes * idle) / (c[2] * m.bandwidth);
        inputs = c[8] * k.input_bytes / m.bandwidth;
    }
    memory = std::max(memory, c[9] * 1e-9 * k.inner);

    const double longer = std::max(compute, memory);
    const double shorter = std::min(compute, memory);
    const double shows = longer > 0.0 ? c[3] * shorter * shorter / longer : 0.0;
    return startup + longer + shows + inputs;
}

}  // namespace

extern const KernelClass gemm_class;
const KernelClass gemm_class{"gemm", "E1", constants, seconds};

}  // namespace roofline::predict
