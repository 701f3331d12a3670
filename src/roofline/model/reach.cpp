#include "roofline/model/reach.hpp"

#include <algorithm>
#include <cmath>

#include "roofline/core/whole.hpp"

namespace roofline::model {
namespace {

/// Sum over x = 1..n of floor(x / ratio).
double sum_of_floors(double n, double ratio) {
    if (n <= 0.0) return 0.0;
    if (ratio == 1.0) return n * (n + 1.0) / 2.0;
    const double whole = std::floor(n / ratio);
    return ratio * whole * (whole - 1.0) / 2.0 + whole * (n - whole * ratio + 1.0);
}

/// Sum over x = 1..n of (x - 1) mod chunk + 1.
double sum_of_chunks(double n, double chunk) {
    const double whole = std::floor(n / chunk);
    const double rest = n - whole * chunk;
    return whole * chunk * (chunk + 1.0) / 2.0 + rest * (rest + 1.0) / 2.0;
}

/// Sum over x = 1..n of min(top, floor(x / ratio)).
double sum_of_capped(double n, const Reach& reach) {
    if (reach.block > 1.0) {
        // Beyond `top`, top - block entries of other blocks and those of its own block up to the query itself.
        if (n <= reach.top) return sum_of_floors(n, 1.0);
        return sum_of_floors(reach.top, 1.0) + (n - reach.top) * (reach.top - reach.block) +
               sum_of_chunks(n, reach.block) - sum_of_chunks(reach.top, reach.block);
    }
    const double saturated = reach.top * reach.ratio;  // from this position on, every query reaches `top` entries
    if (n < saturated) return sum_of_floors(n, reach.ratio);
    return sum_of_floors(saturated - 1.0, reach.ratio) + (n - saturated + 1.0) * reach.top;
}

}  // namespace

double pairs(const Reach& reach, const Sequences& sequences) {
    const double first = sequences.past;
    const double last = sequences.past + sequences.new_tokens;
    const double each = reach.chunk > 0.0 ? sum_of_chunks(last, reach.chunk) - sum_of_chunks(first, reach.chunk)
                                          : sum_of_capped(last, reach) - sum_of_capped(first, reach);
    return sequences.count * each;
}

double keys(const Reach& reach, const Sequences& sequences) {
    if (sequences.new_tokens == 0.0) return 0.0;  // nobody asks
    const double last = sequences.past + sequences.new_tokens;
    double each = 0.0;
    if (reach.chunk > 0.0) {
        each = last - std::floor(sequences.past / reach.chunk) * reach.chunk;
    } else if (reach.local) {
        each = std::min(last, reach.top + sequences.new_tokens - 1.0);
    } else {
        // Chosen entries: every query may choose its own, but there are no more than exist.
        each = std::min(std::floor(last / reach.ratio), pairs(reach, sequences) / sequences.count);
    }
    return sequences.count * each;
}

double attended(const Reach& reach, double x) {
    if (reach.chunk > 0.0) return std::fmod(x - 1.0, reach.chunk) + 1.0;
    if (reach.block > 1.0 && x > reach.top) return reach.top - reach.block + std::fmod(x - 1.0, reach.block) + 1.0;
    return std::min(reach.top, std::floor(x / reach.ratio));
}

std::string describe(const Reach& reach) {
    if (reach.chunk > 0.0) return "chunks of " + whole(reach.chunk);
    const bool capped = reach.top != Reach::everything;
    if (reach.local && capped) return "window of " + whole(reach.top);
    std::string text = reach.ratio > 1.0 ? "entries of " + whole(reach.ratio) + " tokens" : "full context";
    if (capped) text = "best " + whole(reach.top) + (reach.ratio > 1.0 ? " of " + text : "");
    return text;
}

}  // namespace roofline::model
