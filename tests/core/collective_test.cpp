#include "roofline/core/collective.hpp"

#include <gtest/gtest.h>

namespace roofline {
namespace {

// Derivations for a message of M bytes on each rank.

TEST(Collective, OneRankSendsNothing) {
    for (const Collective collective : all_collectives) {
        EXPECT_EQ(compulsory_traffic(collective, {1, 1}).peer, 0.0) << name(collective);
        EXPECT_EQ(compulsory_traffic(collective, {1, 1}).network, 0.0) << name(collective);
    }
}

TEST(Collective, ARingOfFourSendsThreeHalvesOfTheVectorToAddItUp) {
    // Reduce-scatter: three times a quarter; all-gather: three times a quarter.
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::all_reduce, {4, 1}).peer, 6.0 / 4.0);
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::all_gather, {4, 1}).peer, 3.0 / 4.0);
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::reduce_scatter, {4, 1}).peer, 3.0 / 4.0);
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::all_to_all, {4, 1}).peer, 3.0 / 4.0);
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::send_receive, {2, 1}).peer, 1.0);
}

TEST(Collective, ASwitchThatAddsTakesTheVectorOnce) {
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::all_reduce, {8, 1}, {.reduces_in_switch = true}).peer, 1.0);
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::all_reduce, {2, 1}, {.reduces_in_switch = true}).peer, 1.0);
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::all_reduce, {8, 1}).peer, 14.0 / 8.0);
}

TEST(Collective, AcrossNodesEachAdapterCarriesItsShareOfTheNode) {
    // Two nodes of eight: a shard of M/8 is all-reduced between two: 2 x 1/2 x M/8.
    const LinkTraffic sum = compulsory_traffic(Collective::all_reduce, {16, 2});
    EXPECT_DOUBLE_EQ(sum.peer, 14.0 / 8.0);
    EXPECT_DOUBLE_EQ(sum.network, 1.0 / 8.0);
    // Half of all that is gathered comes from the other node, over eight adapters.
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::all_gather, {16, 2}).network, 0.5 / 8.0);
    // Of 16 equal parts, 8 go to the other node, 7 to neighbours, 1 stays.
    const LinkTraffic exchange = compulsory_traffic(Collective::all_to_all, {16, 2});
    EXPECT_DOUBLE_EQ(exchange.network, 8.0 / 16.0);
    EXPECT_DOUBLE_EQ(exchange.peer, 7.0 / 16.0);
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::send_receive, {2, 2}).network, 1.0);
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::send_receive, {2, 2}).peer, 0.0);
}

TEST(Collective, OnATorusAnExchangeCrossesManyLinks) {
    // 64 devices as 4 x 4 x 4: one hop on average in each of three dimensions.
    const LinkTraffic exchange = compulsory_traffic(Collective::all_to_all, {64, 1}, {.torus_dimensions = 3});
    EXPECT_NEAR(exchange.peer, 63.0 / 64.0 * 3.0, 1e-12);
}

}  // namespace
}  // namespace roofline
