// The largest numbers of each row (sampling, routing), as PyTorch cuts a reduction: a row has a block of 512 threads,
// each of which walks through its share. Only where that share is long is a row given to several blocks, which then
// join their results through memory: a row of 128,256 numbers is one block, one of 151,936 is nineteen.
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 5> constants = {{
    {"startup", "us", 2.5, 0.3, 60.0, "from launch to the first useful byte, and the drain at the end"},
    {"value", "us", 0.1, 0.001, 2.0, "of a thread for each number of its share, one after another, found in the cache"},
    {"cold", "times", 1.4, 1.0, 10.0, "as long where the numbers come from memory"},
    {"issue", "us", 0.07, 0.001, 2.0, "of a multiprocessor for a number of every thread of a block"},
    {"join", "us", 4.0, 0.1, 60.0, "for the blocks of a row to join their results"},
}};

constexpr double threads = 512.0;     // of a block
constexpr double together = 4.0;      // blocks on a multiprocessor
constexpr double long_share = 256.0;  // numbers of a thread, from which on a row is cut
constexpr double short_share = 16.0;  // and what a thread is left with at least
constexpr double number_bytes = 2.0;

double whole(double count) {
    return std::ceil(count - 1e-9);
}

double parts_of(double rows, double share, double places) {
    if (share < long_share || rows > places) return 1.0;
    return std::max(std::min(whole(places / rows), whole(share / short_share)), whole(share / long_share));
}

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const double bytes = k.bytes();
    const double memory = m.bandwidth > 0.0 ? std::max(0.0, bytes - m.cache) / m.bandwidth : 0.0;
    const double compute = m.peak > 0.0 ? k.flops / m.peak : 0.0;
    double walk = 0.0;
    double join = 0.0;
    if (k.rows > 0.0) {
        const double row = bytes / (number_bytes * k.rows);
        const double units = m.units > 0.0 ? m.units : 1e9;  // unknown: as if there were enough
        const double busy = std::clamp(row, 1.0, threads);
        const double parts = parts_of(k.rows, row / busy, together * units);
        const double share = std::max(1.0, row / busy / parts);
        const double blocks = k.rows * parts * busy / threads;
        const double value = c[1] * (bytes > m.cache ? std::max(c[2], 1.0) : 1.0);
        const double full = std::floor(blocks / (together * units) + 1e-9);
        const double rest = whole((blocks - full * together * units) / units);
        walk = share * (full * std::max(value, together * c[3]) + (rest > 0.0 ? std::max(value, rest * c[3]) : 0.0));
        if (parts > 1.0) join = c[4];
    }
    return (c[0] + join) * 1e-6 + std::max({walk * 1e-6, memory, compute});
}

}  // namespace

extern const KernelClass selection_class;
const KernelClass selection_class{"selection", "E22", constants, seconds, "elementwise", true};

}  // namespace roofline::predict
