// Rows of a matrix in the order in which they are read fastest.
#pragma once

#include <algorithm>
#include <cstdint>

namespace roofline::bench {

/// Calls step(rows) until every row of [first, last) has been among its `runs` rows. Each place of `rows` walks through
/// a stretch of its own: a core fetches more from memory when it reads at several places at once (on Neoverse-V1 a
/// fifth more than at one), and a stretch without jumps keeps the prefetchers going. The rows that are left over come
/// last; a row may come twice at the end.
template <int runs, class Step>
inline __attribute__((always_inline)) void side_by_side(std::int64_t first, std::int64_t last, std::int64_t stretch,
                                                        const Step& step) {
    std::int64_t rows[runs];
    for (std::int64_t at = 0; at < stretch; ++at) {
        for (std::int64_t i = 0; i < runs; ++i) rows[i] = std::min(first + i * stretch + at, last - 1);
        step(rows);
    }
    for (std::int64_t at = first + runs * stretch; at < last; at += runs) {
        for (std::int64_t i = 0; i < runs; ++i) rows[i] = std::min(at + i, last - 1);
        step(rows);
    }
}

/// The same with an odd number of rows to a stretch: places that are a power of two apart would push each other out of
/// the first-level cache.
template <int runs, class Step>
inline __attribute__((always_inline)) void side_by_side(std::int64_t first, std::int64_t last, const Step& step) {
    if (first >= last) return;
    const std::int64_t even_share = (last - first + runs - 1) / runs;
    side_by_side<runs>(first, last, even_share % 2 == 1 ? even_share : even_share - 1, step);
}

/// An odd stretch of at most `share` rows, so that little is left over, but for the one below it where neighbours among
/// the places would meet within 1 KiB in a cache whose ways have `way_bytes`: what they ask for ahead would push out
/// what the other reads.
inline std::int64_t spread_stretch(std::int64_t share, std::int64_t row_bytes, std::int64_t way_bytes) {
    if (share < 2) return share;
    const auto between = [&](std::int64_t stretch) {
        const std::int64_t apart = stretch * row_bytes % way_bytes;
        return std::min(apart, way_bytes - apart);
    };
    const std::int64_t odd = share % 2 == 1 ? share : share - 1;
    return between(odd) < 1024 && between(odd - 1) > between(odd) ? odd - 1 : odd;
}

}  // namespace roofline::bench
