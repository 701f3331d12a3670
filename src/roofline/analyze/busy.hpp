// Time that passed on streams: what ran, what of it is explained, and when nothing ran. Every nanosecond is counted
// once: the parts of a stream add up to its wall time.
#pragma once

#include <cstdint>
#include <vector>

#include "roofline/analyze/analysis.hpp"
#include "roofline/analyze/items.hpp"

namespace roofline::analyze {

struct Span {
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

/// From the first event on any stream to the last.
Span span_of(const Timeline& timeline, const Items& items);

/// "device 0 stream 7".
std::string stream_name(const Timeline& timeline, std::uint32_t stream);

std::vector<StreamTime> stream_times(const Timeline& timeline, const Items& items, Span whole);

/// A piece of the run that is asked about; several may belong to one group.
struct Part {
    Span span;
    std::size_t group = 0;
};

/// Over all streams, for each group of parts. Parts do not overlap and are sorted by time.
std::vector<WhereTimeWent> where_time_went(const Timeline& timeline, const Items& items, const std::vector<Part>& parts,
                                           std::size_t groups);

}  // namespace roofline::analyze
