// Threads for kernels under test.
#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "roofline/bench/threads.hpp"

namespace roofline::bench::testing {

inline std::unique_ptr<Threads> team(int count = 3) {
    auto threads = Threads::start(count);
    EXPECT_TRUE(threads);
    return std::move(*threads);
}

}  // namespace roofline::bench::testing
