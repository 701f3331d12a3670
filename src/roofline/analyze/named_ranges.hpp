// Ranges that people and engines put around what they run, and what their names say: prefill, decode, a step of some
// kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "roofline/analyze/timeline.hpp"

namespace roofline::analyze {

struct Range {
    std::int64_t begin;
    std::int64_t end;
    std::string name;
    std::string kind;  // prefill, decode, mixed, encode, step
};

/// Ranges that name a stage, or, where none does, ranges that name steps; of nested ones the inner.
std::vector<Range> named_ranges(const Timeline& timeline);

}  // namespace roofline::analyze
