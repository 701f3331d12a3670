#include "roofline/assess/in_parallel.hpp"

#include <atomic>
#include <vector>

#include <gtest/gtest.h>

namespace roofline::assess {
namespace {

TEST(InParallel, DoesEachPieceOnce) {
    std::vector<std::atomic<int>> times(1000);
    in_parallel(times.size(), [&](std::size_t i) { ++times[i]; });
    for (const std::atomic<int>& each : times) EXPECT_EQ(each, 1);
}

TEST(InParallel, DoesNothingWhereThereIsNothing) {
    in_parallel(0, [](std::size_t) { FAIL(); });
}

TEST(InParallel, MayBeNested) {
    std::atomic<int> done = 0;
    in_parallel(3, [&](std::size_t) { in_parallel(5, [&](std::size_t) { ++done; }); });
    EXPECT_EQ(done, 15);
}

}  // namespace
}  // namespace roofline::assess
