// Many who ask, few desks.
#include "roofline/serve/desks.hpp"

#include <atomic>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace roofline::serve {
namespace {

TEST(Desks, NoMoreAreHeldAtOnceThanThereAreAndEverybodyGetsOne) {
    Desks desks(3);
    std::atomic<int> held = 0;
    std::atomic<int> most = 0;
    std::atomic<int> served = 0;
    std::mutex mutex;
    std::set<const ask::Memory*> seen;
    {
        std::vector<std::jthread> askers;
        for (int i = 0; i < 24; ++i) {
            askers.emplace_back([&] {
                for (int round = 0; round < 50; ++round) {
                    Desks::Held desk(desks);
                    const int now = ++held;
                    for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
                    }
                    {
                        const std::lock_guard lock(mutex);
                        seen.insert(&desk.memory());
                    }
                    ++served;
                    --held;
                }
            });
        }
    }
    EXPECT_EQ(served, 24 * 50);
    EXPECT_LE(most, 3);
    EXPECT_LE(seen.size(), 3U);  // what is remembered does not grow with those who ask
}

TEST(Desks, WhatIsRememberedAtADeskIsThereForTheNext) {
    Desks desks(1);
    {
        Desks::Held desk(desks);
        desk.memory().keep_list("models", "text");
    }
    Desks::Held desk(desks);
    ASSERT_NE(desk.memory().list("models"), nullptr);
    EXPECT_EQ(*desk.memory().list("models"), "text");
}

}  // namespace
}  // namespace roofline::serve
