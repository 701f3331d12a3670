// Attention of one new token (or a few) per sequence as FlashAttention 2 cuts it. A block takes one sequence, one KV
// head and up to 64 rows of queries (the heads that share its keys) and walks through tiles of keys; two blocks share a
// multiprocessor. Where whole contexts would leave the machine part empty, each is cut into parts that a second kernel
// joins. The kernel for whole contexts works on tiles of 128 rows, most of them padding: it is held back by arithmetic,
// not by memory.
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 8> constants = {{
    {"startup", "us", 4.0, 0.3, 100.0, "launch to the first useful byte"},
    {"combine", "us", 2.0, 0.1, 100.0, "the kernel that joins the parts of a context, however many"},
    {"merge", "us", 0.15, 0.001, 2.0, "for each part of a context: they are joined one after another"},
    {"efficiency", "fraction", 0.92, 0.1, 1.0, "of memory bandwidth with a block in every place"},
    {"compute", "fraction", 0.4, 0.05, 1.0, "of the matrix peak, padding included"},
    {"row", "ns", 0.2, 0.001, 5.0, "of a block for each row and key, however idle its multiprocessor: the softmax"},
    {"lone", "times", 1.3, 0.5, 4.0, "its share of the bandwidth that a block draws at most"},
    {"ramp", "us", 3.0, 0.05, 50.0, "lost before the stream is at full speed"},
}};

constexpr double ramp_bytes = 16e6;  // half of the ramp is paid by then
constexpr double second = 1e6;       // in microseconds
constexpr double hair = 1e-9;        // what is whole but for rounding is whole

double whole(double count) {
    return std::ceil(count - hair);
}

/// Parts of each context, by the kernel's own rule: none once whole contexts fill four fifths of the places; else the
/// fewest whose waves are 85% as full as the fullest. Numbers of parts that make no part shorter do not count.
double parts_of(double blocks, double places, double tiles) {
    constexpr double filled = 0.8;
    constexpr double near_enough = 0.85;
    constexpr double most_parts = 128.0;
    if (blocks >= filled * places) return 1.0;
    const double most = std::min({most_parts, places, tiles});
    const auto fullness = [&](double parts) {
        const double waves = blocks * parts / places;
        return waves / whole(waves);
    };
    double fullest = 0.0;
    double longest = 0.0;
    for (double parts = 1.0; parts <= most; ++parts) {
        const double tiles_each = whole(tiles / parts);
        if (tiles_each != longest) fullest = std::max(fullest, fullness(parts));
        longest = tiles_each;
    }
    longest = 0.0;
    for (double parts = 1.0; parts <= most; ++parts) {
        const double tiles_each = whole(tiles / parts);
        if (tiles_each != longest && fullness(parts) >= near_enough * fullest) return parts;
        longest = tiles_each;
    }
    return 1.0;
}

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const double efficiency = std::min(c[3], 1.0);
    const double compute = std::min(c[4], 1.0);
    const double activations = m.bandwidth > 0.0 ? (k.input_bytes + k.output_bytes) / m.bandwidth : 0.0;
    const double ramp = c[7] * k.weight_bytes / (k.weight_bytes + ramp_bytes);
    const double contexts = k.sequences * k.kv_heads;
    if (m.units <= 0.0 || contexts <= 0.0 || k.keys <= 0.0) {
        // Multiprocessors unknown: as if the blocks just filled them.
        const double stream = m.bandwidth > 0.0 ? k.weight_bytes / (efficiency * m.bandwidth) : 0.0;
        const double arithmetic = m.peak > 0.0 ? k.flops / (compute * m.peak) : 0.0;
        return (c[0] + ramp) / second + std::max(stream, arithmetic) + activations;
    }

    const double dim = std::max(k.key_dim, k.value_dim);
    const double split_tile = dim <= 64.0 ? 256.0 : dim <= 128.0 ? 128.0 : 64.0;  // keys
    const double tiles = whole(k.keys / split_tile);
    const double tall = k.queries * k.heads / k.kv_heads;  // rows of queries that share keys
    const double places = 2.0 * m.units;
    const double parts = parts_of(contexts * std::max(1.0, whole(tall / 64.0)), places, tiles);
    const bool split = parts > 1.0;
    // The kernel for whole contexts has more rows and fewer keys in a tile; wide heads leave no room for more rows.
    const double rows = split || dim > 128.0 ? 64.0 : 128.0;
    const double tile = split || dim > 128.0 ? split_tile : 0.5 * split_tile;
    const double tiles_each = split ? whole(tiles / parts) : whole(k.keys / tile);
    const double pieces = contexts * std::max(1.0, whole(tall / rows)) * (split ? whole(tiles / tiles_each) : 1.0);

    // Seconds of a block for a tile: on a multiprocessor of its own, at its share of the memory, and at the least.
    const double arithmetic = m.peak > 0.0 ? tile * m.units * 4.0 * rows * dim / (compute * m.peak) : 0.0;
    const double key_bytes = k.weight_bytes / (contexts * k.keys);
    const double load = m.bandwidth > 0.0 ? tile * key_bytes * places / m.bandwidth : 0.0;
    const double chain = tile * rows * c[5] * 1e-9;
    // Arithmetic and loads overlap but for one tile.
    const auto wave = [&](double together, double occupied) {
        const double computing = std::max(together * arithmetic, chain);
        const double loading = std::max(load * occupied / efficiency, load / c[6]);
        return tiles_each * std::max(computing, loading) + std::min(computing, loading);
    };
    const double full = std::floor(pieces / places + hair);
    const double rest = std::max(0.0, pieces - full * places);
    double stream = full > 0.0 ? full * wave(2.0, 1.0) : 0.0;
    if (rest > hair * places) stream += wave(rest > m.units ? 2.0 : 1.0, rest / places);

    double joining = 0.0;
    if (split) {
        joining = (c[1] + c[2] * parts) / second;
        // Parts are written and read again in 32 bits.
        if (m.bandwidth > 0.0) joining += 8.0 * k.sequences * k.queries * k.heads * k.value_dim * parts / m.bandwidth;
    }
    return (c[0] + ramp) / second + stream + joining + activations;
}

}  // namespace

extern const KernelClass flash_decode_class;
const KernelClass flash_decode_class{"flash_decode", "E20", constants, seconds, "attention_decode"};

}  // namespace roofline::predict
