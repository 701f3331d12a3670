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

TEST(Collective, BetweenPairsTrafficTakesTheHostLink) {
    // Four devices, bridged in pairs: M is summed in the pair (2 x 1/2), halves of it between two pairs (2 x 1/2 x
    // 1/2).
    const Wiring pairs = {.joined = 2};
    const LinkTraffic sum = compulsory_traffic(Collective::all_reduce, {4, 1}, pairs);
    EXPECT_DOUBLE_EQ(sum.peer, 1.0);
    EXPECT_DOUBLE_EQ(sum.host, 0.5);
    EXPECT_DOUBLE_EQ(sum.network, 0.0);
    // A pair lacks half of what is gathered, and each of the two fetches half of that.
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::all_gather, {4, 1}, pairs).host, 0.25);
    // Of four parts one stays, one goes to the partner, two to the other pair.
    const LinkTraffic exchange = compulsory_traffic(Collective::all_to_all, {4, 1}, pairs);
    EXPECT_DOUBLE_EQ(exchange.peer, 0.25);
    EXPECT_DOUBLE_EQ(exchange.host, 0.5);
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::send_receive, {2, 1}, pairs).peer, 1.0);
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::send_receive, {4, 1}, pairs).host, 1.0);
}

TEST(Collective, WithoutAPeerLinkTheHostLinkCarriesAll) {
    const Wiring alone = {.joined = 1};
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::all_reduce, {4, 1}, alone).peer, 0.0);
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::all_reduce, {4, 1}, alone).host, 1.5);
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::all_to_all, {4, 1}, alone).host, 0.75);
    EXPECT_DOUBLE_EQ(compulsory_traffic(Collective::send_receive, {2, 1}, alone).host, 1.0);
}

TEST(Collective, AnIslandAsLargeAsTheNodeIsANode) {
    for (const Collective collective : all_collectives) {
        const LinkTraffic whole = compulsory_traffic(collective, {16, 2});
        const LinkTraffic island = compulsory_traffic(collective, {16, 2}, {.joined = 8});
        for (const Level level : all_levels) EXPECT_EQ(whole.at(level), island.at(level)) << name(collective);
    }
}

TEST(Collective, ADeviceSaysHowItIsWired) {
    Device device;
    EXPECT_EQ(wiring_of(device).joined, 1);
    EXPECT_EQ(link_within(device, 2.0), Level::host);
    MemoryLevel& peer = device.levels[index(Level::peer)].emplace();
    EXPECT_EQ(wiring_of(device).joined, 0);
    EXPECT_EQ(link_within(device, 8.0), Level::peer);
    peer.devices = 2;
    EXPECT_EQ(link_within(device, 2.0), Level::peer);
    EXPECT_EQ(link_within(device, 4.0), Level::host);
    peer.reduces_in_switch = true;
    peer.topology = "torus3d";
    EXPECT_TRUE(wiring_of(device).reduces_in_switch);
    EXPECT_EQ(wiring_of(device).torus_dimensions, 3);
}

}  // namespace
}  // namespace roofline
