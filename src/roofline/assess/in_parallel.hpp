// Independent pieces of work on all processors. Each piece writes to a place of its own, so that what comes out does
// not depend on how many threads there are or who is first.
#pragma once

#include <cstddef>
#include <functional>

namespace roofline::assess {

/// Calls `each` with every number below `count` once, in any order and on several threads at a time; returns when all
/// are done. Pieces begin in the order of their numbers: the longest should come first.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& each);

}  // namespace roofline::assess
