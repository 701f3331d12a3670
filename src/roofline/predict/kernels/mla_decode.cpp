// Absorbed MLA attention (the decode step of DeepSeek-style models): all heads of a sequence read the same latent
// cache, so memory, the matrix units and the walk along one sequence can each be the limit. Work is dealt out in items,
// a sequence times a tile of heads; kernels that split long sequences over many units show a small `serial`.
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 11> constants = {{
    {"startup", "us", 9.0, 0.3, 100.0, "rotary, cache write and attention launches, from first to last useful byte"},
    {"host", "us", 20.0, 0.1, 500.0, "issuing the launches when no graph does it; hides behind the kernels"},
    {"bandwidth", "fraction", 0.75, 0.02, 0.95, "of the memory bandwidth, while the cache streams"},
    {"compute", "fraction", 0.4, 0.01, 0.95, "of the matrix peak, on heads padded to 16"},
    {"activations", "passes", 2.0, 0.2, 30.0, "over queries and results: copies, quantising, partial results"},
    {"item", "us", 2.0, 0.05, 200.0, "for each item on a unit, beside its keys"},
    {"serial", "us", 0.003, 0.00001, 0.5, "per key of one sequence, split as far as the kernel splits"},
    {"merge", "us", 3.0, 0.05, 30.0, "joining the parts of a long sequence"},
    {"tile", "heads", 32.0, 4.0, 128.0, "that share one item"},
    {"overlap", "fraction", 0.3, 0.01, 1.0, "of the shorter limits that is not hidden behind the longest"},
    {"wide", "fraction", 0.5, 0.05, 0.95, "of the matrix peak in tiles of 64 heads, which many heads are worth"},
}};

constexpr double padded_rows = 16.0;  // the shortest side of a matrix instruction
constexpr double wide_tile = 64.0;    // heads: the rows of a warp group's matrix instruction
constexpr double long_keys = 1024.0;  // from about here kernels split a sequence

struct Tiling {
    double heads;    // rows of a tile: heads of one token
    double padding;  // rows that a tile is padded to at least
    double compute;  // of the matrix peak
};

double seconds_with(const Tiling& tiling, const Kernel& k, const Machine& m, std::span<const double> c) {
    const double startup = c[0], host = c[1], bandwidth = c[2], activations = c[4];
    const double item = c[5], serial = c[6], merge = c[7], overlap = c[9];

    const double rows = std::max(k.queries, 1.0) * std::max(k.heads, 1.0);
    const double load = m.units > 0.0 ? k.sequences * std::max(1.0, rows / tiling.heads) / m.units : 0.0;
    // The last round is rarely full; half-way between a sharp and a smooth edge, as sequences differ in length.
    const double waves = load > 1.0 ? 0.5 * (load + std::ceil(load - 1e-9)) : 1.0;

    const double chain = serial * k.keys * waves;
    const double bytes = k.weight_bytes + activations * (k.input_bytes + k.output_bytes);
    const double stream = m.bandwidth > 0.0 ? bytes / (bandwidth * m.bandwidth) * 1e6 : 0.0;
    const double padding = std::max(1.0, tiling.padding / rows);
    const double products = m.peak > 0.0 ? k.flops * padding / (tiling.compute * m.peak) * 1e6 : 0.0;
    const double longest = std::max({chain, stream, products});

    const double device = startup + item * load + merge * k.keys / (k.keys + long_keys) + longest +
                          overlap * (chain + stream + products - longest);
    return 1e-6 * (device + host * host / (device + host));  // a smooth maximum of the two
}

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const Tiling narrow{c[8], padded_rows, c[3]};
    const Tiling wide{wide_tile, wide_tile, c[10]};
    return std::min(seconds_with(narrow, k, m, c), seconds_with(wide, k, m, c));
}

}  // namespace

extern const KernelClass mla_decode_class;
const KernelClass mla_decode_class{"mla_decode", "E8", constants, seconds};

}  // namespace roofline::predict
