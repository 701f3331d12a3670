// What ran, as pieces of work: one item is one call of an operator with all kernels it started, or a kernel that no
// operator explains, or a copy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "roofline/analyze/effort.hpp"
#include "roofline/analyze/timeline.hpp"

namespace roofline::analyze {

struct Item {
    std::uint32_t operation = none;  // the call that explains it, or the innermost one around it
    std::uint32_t effort = none;     // into Items::efforts; none: not explained
    std::uint32_t step = none;
    std::uint32_t role = none;  // into the names of roles
    std::int64_t begin = 0;     // on the device
    std::int64_t end = 0;
    std::int64_t time = 0;     // sum over its kernels
    std::int64_t started = 0;  // when the host asked for it; its begin where that is unknown
    Ran ran = Ran::kernel;
    bool in_graph = false;
    bool inferred = false;              // its work is that of the model, not of shapes in the file
    std::vector<std::uint32_t> events;  // into Timeline::ran
};

struct Items {
    std::vector<Item> all;                 // by begin
    std::vector<Effort> efforts;           // one per signature that has one, more for what is inferred
    std::vector<std::uint32_t> effort_of;  // by signature
    std::vector<std::uint32_t> item_of;    // by event of the timeline
    const Effort* effort(const Item& item) const { return item.effort == none ? nullptr : &efforts[item.effort]; }
};

Items collect_items(const Timeline& timeline);

/// The name of the operator of an item, or of its kernel.
std::string item_name(const Timeline& timeline, const Item& item, bool with_shapes);

}  // namespace roofline::analyze
