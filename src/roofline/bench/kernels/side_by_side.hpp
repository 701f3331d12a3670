// Rows of a matrix in the order in which they are read fastest.
#pragma once

#include <algorithm>
#include <cstdint>

namespace roofline::bench {

/// Calls step(rows) until every row of [first, last) has been among its `runs` rows. Each place of `rows` walks through
/// a stretch of its own: a core fetches more from memory when it reads at several places at once (on Neoverse-V1 a
/// fifth more than at one), and a stretch without jumps keeps the prefetchers going. A stretch is an odd number of
/// rows: places that are a power of two apart would push each other out of the first-level cache. The rows that are
/// left over come last; a row may come twice at the end.
template <int runs, class Step>
inline __attribute__((always_inline)) void side_by_side(std::int64_t first, std::int64_t last, const Step& step) {
    if (first >= last) return;
    const std::int64_t even_share = (last - first + runs - 1) / runs;
    const std::int64_t stretch = even_share % 2 == 1 ? even_share : even_share - 1;
    std::int64_t rows[runs];
    for (std::int64_t at = 0; at < stretch; ++at) {
        for (std::int64_t i = 0; i < runs; ++i) rows[i] = std::min(first + i * stretch + at, last - 1);
        step(rows);
    }
    if (stretch == even_share) return;
    for (std::int64_t i = 0; i < runs; ++i) rows[i] = std::min(first + runs * stretch + i, last - 1);
    step(rows);
}

}  // namespace roofline::bench
