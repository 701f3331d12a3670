#include "roofline/serving/dealing.hpp"

#include <gtest/gtest.h>

#include "roofline/serving/stages.hpp"

namespace roofline::serving {
namespace {

/// What the next steps compute, as long as there is something.
std::vector<double> steps_of(Dealing dealing) {
    std::vector<double> result;
    while (dealing.due() > 0.0) {
        result.push_back(dealing.due());
        dealing.compute(result.back());
        dealing.next();
    }
    return result;
}

using Steps = std::vector<double>;

TEST(Dealing, WithoutAPipelineEverythingIsDueAtOnce) {
    Dealing dealing(1);
    dealing.enter(5000, 10);
    dealing.enter(3000, 10);
    EXPECT_EQ(dealing.due(), 8000.0);
}

TEST(Dealing, APromptIsSharedAmongTwoRoundsOfSteps) {
    // Two stages: four steps. 4,000 tokens are 1,000 each; 600 are no more than three parts of 256 or less: 200 each.
    Dealing dealing(2);
    dealing.enter(4000, 10);
    EXPECT_EQ(steps_of(dealing), (Steps{1000, 1000, 1000, 1000}));
    Dealing smaller(2);
    smaller.enter(600, 10);
    EXPECT_EQ(steps_of(smaller), (Steps{200, 200, 200}));
}

TEST(Dealing, AloneAPromptStaysWhole) {
    Dealing dealing(4);
    dealing.enter(4000, 1);
    EXPECT_EQ(steps_of(dealing), (Steps{4000}));
    Dealing pair(4);
    pair.enter(4000, 2);  // one other request: two steps are under way at most
    EXPECT_EQ(steps_of(pair), (Steps{2000, 2000}));
}

TEST(Dealing, ShortPromptsGoWhereTheLeastIsDue) {
    Dealing dealing(2);
    for (const double tokens : {100.0, 90.0, 80.0, 70.0, 60.0}) dealing.enter(tokens, 10);
    EXPECT_EQ(steps_of(dealing), (Steps{100, 90, 80, 130}));
}

TEST(Dealing, WhatAStepHasNoRoomForIsDueInTheNext) {
    Dealing dealing(2);
    dealing.enter(4000, 10);
    dealing.compute(400);
    EXPECT_EQ(dealing.due(), 600.0);
    dealing.next();
    EXPECT_EQ(steps_of(dealing), (Steps{1600, 1000, 1000}));
    // Thrown out with 3,600 to go: nothing is due any more.
    dealing.leave(3600);
    EXPECT_EQ(dealing.due(), 0.0);
}

TEST(Stages, AStepWaitsForTheOneBefore) {
    // Two stages, the first the slower: 6 + 4 ms. The second step finds the first stage free at 6 and the second at 10;
    // it is through the first at 12, through the second at 16.
    Stages stages(2);
    const StepCost cost{.latency = 0.010, .interval = 0.006, .flops = 0.0, .memory_bytes = 0.0};
    EXPECT_DOUBLE_EQ(stages.pass(cost, 0.0), 0.010);
    EXPECT_DOUBLE_EQ(stages.free(), 0.006);
    EXPECT_DOUBLE_EQ(stages.pass(cost, 0.0), 0.016);
    // A short one behind a long one: 2 + 2 ms, first stage 12 to 14, then it waits until 16.
    EXPECT_DOUBLE_EQ(stages.pass({.latency = 0.004, .interval = 0.002, .flops = 0.0, .memory_bytes = 0.0}, 0.0), 0.018);
    EXPECT_DOUBLE_EQ(stages.busy(), 0.014);
}

}  // namespace
}  // namespace roofline::serving
