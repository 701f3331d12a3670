// Rows of a matrix in the order in which they are read fastest.
#pragma once

#include <algorithm>
#include <cstdint>

namespace roofline::bench {

/// Calls step(rows) until every row of [first, last) has been among its `runs` rows. Each place of `rows` walks through
/// a stretch of its own: a core fetches more from memory when it reads at several places at once (on Neoverse-V1 a
/// fifth more than at one), and a stretch without jumps keeps the prefetchers going. A row may come twice at the ends.
template <int runs, class Step>
inline __attribute__((always_inline)) void side_by_side(std::int64_t first, std::int64_t last, const Step& step) {
    const std::int64_t stretch = (last - first + runs - 1) / runs;
    for (std::int64_t at = 0; at < stretch; ++at) {
        std::int64_t rows[runs];
        for (std::int64_t i = 0; i < runs; ++i) rows[i] = std::min(first + i * stretch + at, last - 1);
        step(rows);
    }
}

}  // namespace roofline::bench
