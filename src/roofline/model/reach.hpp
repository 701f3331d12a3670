// Which cached positions a query attends to: all of them, a window, a chunk, compressed entries, the best k.
// Everything an attention kind costs follows from two sums over a step, both in closed form:
//   pairs  how many (query, key) products there are
//   keys   how many distinct cached entries must be read
#pragma once

#include <limits>
#include <string>

#include "roofline/model/step.hpp"

namespace roofline::model {

/// The query at position x (counted from 1, itself included) attends to min(top, floor(x / ratio)) entries; with a
/// chunk of c, to the (x - 1) mod c + 1 positions of its own chunk.
struct Reach {
    static constexpr double everything = std::numeric_limits<double>::infinity();

    double top = everything;
    bool local = false;  // true: the `top` nearest (a sliding window); false: any `top` (chosen by an indexer)
    double ratio = 1.0;  // entries pool this many tokens
    double chunk = 0.0;  // > 0: attention stays within chunks of this many positions
    double block = 1.0;  // entries are chosen in blocks, the query's own (partly filled) block always among them

    static Reach full() { return {}; }
    static Reach window(double size) { return {.top = size, .local = true}; }
    static Reach chunked(double size) { return {.chunk = size}; }
    static Reach best(double k, double block = 1.0) { return {.top = k, .block = block}; }
    static Reach pooled(double tokens, double k = everything) { return {.top = k, .ratio = tokens}; }

    bool operator==(const Reach&) const = default;

    /// Whether each query reads entries that are chosen one by one.
    bool chooses() const { return !local && top != everything && ratio == 1.0 && block == 1.0 && chunk == 0.0; }

    /// The most entries that can ever be attended to, hence need to be kept if `local` or chunked.
    double kept() const { return chunk > 0.0 ? chunk : local ? top : everything; }
};

/// F20: sum over the new queries of what each attends to.
double pairs(const Reach& reach, const Sequences& sequences);

/// F21: distinct entries read.
double keys(const Reach& reach, const Sequences& sequences);

/// Entries in reach of the query at position x.
double attended(const Reach& reach, double x);

std::string describe(const Reach& reach);

}  // namespace roofline::model
