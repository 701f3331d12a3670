// Fused attention of many new tokens per sequence (prefill, chunks of it, encoders). Matrix work and softmax share the
// multiprocessors; the blocks of queries do not divide evenly over them; the engine around the kernel moves the
// activations a few more times (rotary, cache write, number conversion).
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 6> constants = {{
    {"startup", "us", 6.0, 1.0, 100.0, "launches, and the small kernels around this one"},
    {"efficiency", "fraction", 0.75, 0.05, 1.0, "of the matrix engine's peak, softmax apart"},
    {"softmax", "flop", 12.0, 2.0, 60.0,
     "fp32 operations for each query-key pair and head that the products do not hide"},
    {"tile", "rows", 128.0, 32.0, 512.0, "queries that one multiprocessor takes at a time"},
    {"near", "passes", 1.0, 0.05, 8.0, "over queries, keys, values and outputs, in time of main memory"},
    {"far", "passes", 1.5, 0.1, 8.0, "more of them over what does not stay in the cache"},
}};

constexpr double wasted_keys = 64.0;    // masked half of the block on the diagonal, or the prologue of a full one
constexpr double row_step = 64.0;       // queries are padded to the rows of a matrix instruction group
constexpr double head_step = 16.0;      // and heads to its depth
constexpr double tail = 0.8;            // of the longest block: what the others wait for at the end
constexpr double resident_share = 0.5;  // of the cache, before the activations displace one another
constexpr double second = 1e6;          // in microseconds

double padded(double size, double step) {
    return std::ceil(size / step) * step;
}

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const double efficiency = std::min(c[1], 1.0);
    const double query_heads = k.sequences * k.heads;
    const double pair_flops = 2.0 * (k.key_dim + k.value_dim);
    const double needed = query_heads * k.queries * pair_flops;
    // Causal masks and windows show in the flops: the keys that a query attends to on average.
    const double mean_keys = needed > 0.0 ? k.flops / needed : k.keys;
    const double rows = padded(k.queries, row_step);

    double per_pair = 0.0;
    if (m.peak > 0.0) {
        per_pair += 2.0 * (padded(k.key_dim, head_step) + padded(k.value_dim, head_step)) / (efficiency * m.peak);
    }
    if (m.vector_peak > 0.0) per_pair += c[2] / m.vector_peak;

    const double total = query_heads * rows * (mean_keys + wasted_keys) * per_pair;
    double work = total;
    if (m.units > 0.0) {
        // One block per multiprocessor takes as long as its longest, the last queries'; from two on they fill up.
        const double longest = std::min(c[3], rows) * (k.keys + wasted_keys) * per_pair * m.units;
        const double blocks = query_heads * std::max(1.0, k.queries / c[3]);
        const double full = std::clamp(blocks / m.units - 1.0, 0.0, 1.0);
        work = std::max(total, longest * (1.0 - full * (1.0 - tail)) + total * full);
    }

    double moves = 0.0;
    double limit = 0.0;
    if (m.bandwidth > 0.0) {
        const double over = m.cache > 0.0 ? std::max(0.0, k.bytes() - resident_share * m.cache) : 0.0;
        moves = (c[4] * k.bytes() + c[5] * over) / m.bandwidth;
        limit = k.bytes() / m.bandwidth;
    }
    return c[0] / second + std::max(work + moves, limit);
}

}  // namespace

extern const KernelClass attention_prefill_class;
const KernelClass attention_prefill_class{"attention_prefill", "E3", constants, seconds};

}  // namespace roofline::predict
