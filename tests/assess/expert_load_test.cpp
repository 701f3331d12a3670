#include "roofline/assess/expert_load.hpp"

#include <gtest/gtest.h>

namespace roofline::assess {
namespace {

TEST(BalancedLoad, EveryExpertOnce) {
    // stride 8 / 2 = 4: token t takes experts t and t + 4.
    const ExpertLoad load = balanced_load({.tokens = 4, .experts = 8, .chosen = 2, .ranks = 1});
    EXPECT_EQ(load.rows, 8.0);
    EXPECT_EQ(load.experts, 8.0);
}

TEST(BalancedLoad, ARankHasItsOwnExpertsOnly) {
    // Experts 0 to 3 get tokens 0 to 3; their other slots are on the other rank.
    const ExpertLoad load = balanced_load({.tokens = 4, .experts = 8, .chosen = 2, .ranks = 2});
    EXPECT_EQ(load.rows, 4.0);
    EXPECT_EQ(load.experts, 4.0);
    EXPECT_EQ(load.tokens, 0.0) << "not asked for";
}

TEST(BalancedLoad, WholeTokensBringTheirOtherSlots) {
    const ExpertLoad load = balanced_load({.tokens = 4, .experts = 8, .chosen = 2, .ranks = 2, .whole_tokens = true});
    EXPECT_EQ(load.tokens, 4.0);
    EXPECT_EQ(load.rows, 8.0);
    EXPECT_EQ(load.experts, 4.0);
}

TEST(BalancedLoad, FewTokensAreSpreadOverTheStride) {
    // Two tokens over a stride of 4 start at 0 and 2: experts 0, 4 and 2, 6.
    EXPECT_EQ(balanced_load({.tokens = 2, .experts = 8, .chosen = 2, .ranks = 1}).experts, 4.0);
    // Of four ranks the first has experts 0 and 1: one slot.
    const ExpertLoad first = balanced_load({.tokens = 2, .experts = 8, .chosen = 2, .ranks = 4, .whole_tokens = true});
    EXPECT_EQ(first.tokens, 1.0);
    EXPECT_EQ(first.rows, 2.0);
    EXPECT_EQ(first.experts, 1.0);
}

TEST(BalancedLoad, MoreTokensThanExpertsGoRoundAgain) {
    // Expert 0 gets tokens 0, 4, 8 (0 and 8 as first choice, 4 as second), expert 1 gets 1, 5, 9.
    const Routing routing{.tokens = 10, .experts = 8, .chosen = 2, .ranks = 4, .whole_tokens = true};
    const ExpertLoad load = balanced_load(routing);
    EXPECT_EQ(load.tokens, 6.0);
    EXPECT_EQ(load.rows, 12.0);
    EXPECT_EQ(load.experts, 2.0);
    EXPECT_EQ(balanced_load({.tokens = 10, .experts = 8, .chosen = 2, .ranks = 4}).rows, 6.0);
}

TEST(BalancedLoad, AStrideThatDoesNotDivideWrapsAround) {
    // stride 3: tokens take 0 3 6, 1 4 7, 2 5 and 8 mod 8 = 0.
    const ExpertLoad load = balanced_load({.tokens = 3, .experts = 8, .chosen = 3, .ranks = 2});
    EXPECT_EQ(load.rows, 5.0);
    EXPECT_EQ(load.experts, 4.0);
}

TEST(PowerLawLoad, EverySlotIsComputedSomewhere) {
    for (const double exponent : {0.0, 1.0, 1.01, 1.2, 3.0}) {
        for (const std::int64_t tokens : {1, 2, 7, 100, 65536}) {
            for (const std::int64_t experts : {1, 8, 60, 256}) {
                for (const std::int64_t chosen : {std::int64_t{1}, (experts + 7) / 8, experts}) {
                    const Routing routing{.tokens = tokens, .experts = experts, .chosen = chosen, .ranks = 1};
                    const ExpertLoad load = power_law_load(routing, exponent);
                    EXPECT_EQ(load.rows, static_cast<double>(tokens * chosen))
                        << tokens << " tokens, " << chosen << " of " << experts << ", exponent " << exponent;
                    EXPECT_LE(load.experts, static_cast<double>(experts));
                    EXPECT_GE(load.experts, static_cast<double>(chosen)) << "no expert sees a token twice";
                }
            }
        }
    }
}

TEST(PowerLawLoad, TheBusiestRankHasAtLeastItsShare) {
    const Routing routing{.tokens = 512, .experts = 128, .chosen = 8, .ranks = 8};
    const ExpertLoad load = power_law_load(routing, 1.2);
    EXPECT_GT(load.rows, 512.0 * 8.0 / 8.0);
    EXPECT_LE(load.rows, 512.0 * 8.0);
    EXPECT_LE(load.experts, 16.0);
}

TEST(PowerLawLoad, WhereEveryExpertIsChosenNothingIsLeftToChance) {
    // Each of 8 experts takes all 5 tokens, whatever was drawn; a rank has 2 of them.
    const ExpertLoad load =
        power_law_load({.tokens = 5, .experts = 8, .chosen = 8, .ranks = 4, .whole_tokens = true}, 1.2);
    EXPECT_EQ(load.experts, 2.0);
    EXPECT_EQ(load.tokens, 5.0);
    EXPECT_EQ(load.rows, 40.0) << "5 whole tokens of 8 slots";
    EXPECT_EQ(power_law_load({.tokens = 5, .experts = 8, .chosen = 8, .ranks = 4}, 1.2).rows, 10.0);
}

TEST(PowerLawLoad, WholeTokensAreNoMoreThanThereAre) {
    for (const std::int64_t tokens : {1, 3, 64, 1000}) {
        Routing routing{.tokens = tokens, .experts = 64, .chosen = 4, .ranks = 4};
        const ExpertLoad own = power_law_load(routing, 1.01);
        routing.whole_tokens = true;
        const ExpertLoad whole = power_law_load(routing, 1.01);
        EXPECT_LE(whole.tokens, static_cast<double>(tokens));
        EXPECT_GE(whole.rows, own.rows);
        EXPECT_NEAR(whole.rows, 4.0 * whole.tokens, 1e-9 * whole.rows);
        EXPECT_GE(whole.experts, own.experts);
        EXPECT_LE(whole.experts, own.experts + 1.0);
    }
}

TEST(PowerLawLoad, ATokenWithOneExpertHasNoSlotElsewhere) {
    Routing routing{.tokens = 20, .experts = 64, .chosen = 1, .ranks = 4};
    const ExpertLoad own = power_law_load(routing, 1.2);
    routing.whole_tokens = true;
    const ExpertLoad whole = power_law_load(routing, 1.2);
    EXPECT_EQ(whole.rows, own.rows);
    EXPECT_EQ(whole.experts, own.experts);
    EXPECT_EQ(whole.tokens, own.rows);
}

TEST(PowerLawLoad, IsTheSameEveryTime) {
    const Routing routing{.tokens = 300, .experts = 256, .chosen = 8, .ranks = 16, .whole_tokens = true};
    const ExpertLoad once = power_law_load(routing, 1.01);
    const ExpertLoad again = power_law_load(routing, 1.01);
    EXPECT_EQ(once.rows, again.rows);
    EXPECT_EQ(once.experts, again.experts);
    EXPECT_EQ(once.tokens, again.tokens);
}

}  // namespace
}  // namespace roofline::assess
