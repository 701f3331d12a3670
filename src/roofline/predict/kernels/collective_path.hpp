// What all collectives share: a start, latency for each step, and the bytes on the slower of two ways. The quick way
// moves flagged words and has no more latency, but uses part of the links; the bulk way moves chunks through a
// pipeline at full width.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {

/// How a group lies over nodes, as counts that are safe to divide by.
struct RankShape {
    double ranks;
    double nodes;
    double local;  // of one node

    explicit RankShape(const Kernel& k)
        : ranks(std::max(k.ranks, 1.0)), nodes(std::clamp(k.nodes, 1.0, ranks)), local(ranks / nodes) {}
    /// Links that many share are slower than a pair's, most of all behind one host.
    double crowded(double crowding) const { return local > 2.0 ? 1.0 + crowding * (local - 2.0) / (local + 6.0) : 1.0; }
};

inline double over(double bytes, double rate) {
    return rate > 0.0 ? bytes / rate : 0.0;
}

/// A stream cut into chunks that pass through a pipeline: small chunks cost starts, large ones leave stages idle. With
/// the best size of chunk, stream + 2 sqrt(stream x chunk) + chunk.
inline double piped(double stream, double chunk) {
    const double root = std::sqrt(stream) + std::sqrt(chunk);
    return root * root;
}

/// Gathers, scatters and exchanges differ in their steps and shares only.
inline constexpr std::array<Constant, 8> exchange_constants = {{
    {"startup", "us", 5.0, 0.3, 100.0, "from launch until all ranks have met, and the end"},
    {"step", "us", 0.7, 0.005, 20.0, "latency for each further rank of the node"},
    {"quick", "fraction", 0.25, 0.002, 0.5, "of the link on the quick way"},
    {"chunk", "us", 3.0, 0.05, 200.0, "latency of a chunk on the bulk way"},
    {"overhead", "messages", 0.35, 0.02, 40.0, "more than must be sent, in time of the link: staging and flags"},
    {"crowding", "times", 0.1, 0.01, 30.0, "by which links slow down from a pair of ranks to many, as behind one host"},
    {"network_latency", "us", 15.0, 1.0, 400.0, "for each further node"},
    {"network", "fraction", 0.7, 0.01, 1.0, "of the network link"},
}};

/// `stays` and `leaves`: parts of the message that a rank sends to others of its node, and through its own adapter.
inline double exchange_seconds(const Kernel& k, const Machine& m, std::span<const double> c, const RankShape& shape,
                               double stays, double leaves) {
    if (shape.ranks <= 1.0) return c[0] * 1e-6;
    const double start = c[0] + c[1] * (shape.local - 1.0) + c[6] * (shape.nodes - 1.0);
    const double bytes = std::max(stays * k.message_bytes, k.link_bytes);
    const double more = shape.local > 1.0 ? c[4] * k.message_bytes : 0.0;
    const double link = m.link / shape.crowded(c[5]);
    const double stream = over(bytes + more, link);
    const double network = over(std::max(leaves * k.message_bytes, k.network_bytes), c[7] * m.network);
    const double bulk = piped(std::max(stream, network), c[3] * 1e-6);
    return start * 1e-6 + (shape.nodes > 1.0 ? bulk : std::min(over(bytes, c[2] * link), bulk));
}

/// All-gather and reduce-scatter: every part goes round a ring of all ranks, which leaves each node once for every
/// adapter that it is spread over.
inline double ring_seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const RankShape shape(k);
    const double leaves = shape.nodes > 1.0 ? (shape.ranks - 1.0) / shape.ranks / shape.local : 0.0;
    return exchange_seconds(k, m, c, shape, (shape.local - 1.0) / shape.local, leaves);
}

}  // namespace roofline::predict
