// The requests that come: their lengths from two distributions, or from a trace in which lengths belong together.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/serving/lengths.hpp"
#include "roofline/serving/random.hpp"

namespace roofline::serving {

struct Request {
    double arrival = 0.0;  // seconds
    double prompt = 1.0;   // tokens, at least 1
    double output = 1.0;   // tokens, at least 1
};

/// Requests alike, as the closed form counts them; weights add up to 1.
struct Share {
    double prompt = 1.0;
    double output = 1.0;
    double weight = 1.0;
};

struct Mix {
    Lengths prompt = Lengths::fixed(1024.0);
    Lengths output = Lengths::fixed(128.0);
    std::vector<Request> trace;    // not empty: these lengths, in this order, again from the start when they run out
    double longest_context = 0.0;  // > 0: prompt and output together are cut to this, the output first

    /// The `number`-th request. Distributions use `random`; a trace does not.
    Request draw(std::uint64_t number, Random& random) const;

    /// S1: the mix as a few hundred shares: quantiles of both lengths paired by a Fibonacci lattice, or the trace.
    /// `fine`: as some thousand, which know rare long requests.
    std::vector<Share> shares(bool fine = false) const;

  private:
    Request cut(Request request) const;
};

/// Lines of `arrival,prompt,output`: seconds and tokens. A first line of words, blank lines and lines that start with #
/// are passed over. Arrivals need not be in order; the result is.
Result<std::vector<Request>> parse_trace(std::string_view text, std::string_view file);

}  // namespace roofline::serving
