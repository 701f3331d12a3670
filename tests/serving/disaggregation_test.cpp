#include "roofline/serving/disaggregation.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "roofline/serving/metrics.hpp"
#include "serving/replicas.hpp"

namespace roofline::serving {
namespace {

using testing::ConstantReplica;
using testing::RoofReplica;

Mix fixed(double prompt, double output) {
    return {.prompt = Lengths::fixed(prompt), .output = Lengths::fixed(output), .trace = {}};
}

TEST(Disaggregation, TheNarrowerPoolOrTheLinkDecides) {
    // Prefill: a step of 10 ms takes the prompts of all four slots: 400 requests a second. Decode: four slots of ten
    // steps each, 40 a second a replica.
    const ConstantReplica replica;
    Pools pools;
    pools.prefill.replica = &replica;
    pools.decode.replica = &replica;
    auto state = disaggregate(pools, fixed(100, 11), Load::saturated());
    ASSERT_TRUE(state);
    EXPECT_NEAR(state->prefill_capacity, 400.0, 1e-3);
    EXPECT_NEAR(state->decode_capacity, 40.0, 1e-3);
    EXPECT_TRUE(std::isinf(state->link_capacity));
    EXPECT_EQ(state->narrowest, Narrowest::decode);
    EXPECT_NEAR(state->output_tokens_per_second, 440.0, 1e-2);

    pools.decode.replicas = 20;
    state = disaggregate(pools, fixed(100, 11), Load::saturated());
    EXPECT_EQ(state->narrowest, Narrowest::prefill);
    EXPECT_NEAR(state->capacity, 400.0, 1e-3);

    // 100 bytes a request: at 2,000 bytes a second 50 ms each, 20 requests a second.
    pools.link_bytes_per_second = 2000;
    state = disaggregate(pools, fixed(100, 11), Load::saturated());
    EXPECT_EQ(state->narrowest, Narrowest::link);
    EXPECT_NEAR(state->capacity, 20.0, 1e-6);
    EXPECT_NEAR(state->transfer_seconds, 0.050, 1e-12);

    // A request far from capacity: 10 ms for the first token, 50 ms on the way, ten steps.
    state = disaggregate(pools, fixed(100, 11), Load::rate(0.01));
    EXPECT_NEAR(state->ttft, 0.010, 1e-4);
    EXPECT_NEAR(state->request, 0.160, 5e-4);
    EXPECT_NEAR(state->tpot, 0.015, 5e-5);
    EXPECT_TRUE(disaggregate(pools, fixed(100, 11), Load::rate(21))->overloaded);
    EXPECT_FALSE(disaggregate(pools, fixed(100, 11), Load::users(3)));
}

TEST(Disaggregation, SimulationAndClosedFormAgree) {
    RoofReplica replica;
    replica.pool_bytes = 50e9;
    Pools pools;
    pools.prefill = {.replica = &replica, .policy = {}, .replicas = 2};
    pools.decode = {.replica = &replica, .policy = {}, .replicas = 3};
    pools.link_bytes_per_second = 50e9;
    const Mix mix{.prompt = Lengths::lognormal(2000, 0.6), .output = Lengths::lognormal(300, 0.6), .trace = {}};
    const double capacity = disaggregate(pools, mix, Load::saturated())->capacity;
    const Load load = Load::rate(0.4 * capacity);
    const auto state = disaggregate(pools, mix, load);
    const auto outcome = simulate(pools, mix, load, {.requests = 1500});
    ASSERT_TRUE(state && outcome);
    EXPECT_NEAR(state->tpot / outcome->tpot->mean, 1.0, 0.05);
    EXPECT_NEAR(state->request / outcome->request->mean, 1.0, 0.08);
    EXPECT_NEAR(state->output_tokens_per_second / outcome->output_tokens_per_second, 1.0, 0.08);
    EXPECT_TRUE(simulate(pools, mix, Load::rate(1.2 * capacity), {})->overloaded);
}

TEST(Metrics, AreOnlyWhatIsKnown) {
    Flow flow;
    flow.requests = 2.0;
    flow.prompt_tokens = 2000.0;
    flow.output_tokens = 500.0;
    flow.flops = 4e14;
    flow.memory_bytes = 1.6e12;
    const Metrics plain = metrics(flow, 0.02, {});
    EXPECT_EQ(plain.total_tokens_per_second, 2500.0);
    EXPECT_EQ(plain.output_tokens_per_second_per_user, 50.0);
    EXPECT_FALSE(plain.mfu.has_value());
    EXPECT_FALSE(plain.price_per_million_output_tokens.has_value());
    Economy economy{
        .devices = 2, .peak_flops = 2e15, .peak_bandwidth = 6.4e12, .watts = 1400, .price_per_device_hour = 3.6};
    const Metrics full = metrics(flow, 0.02, economy);
    EXPECT_NEAR(*full.mfu, 0.2, 1e-12);
    EXPECT_NEAR(*full.mbu, 0.25, 1e-12);
    EXPECT_NEAR(*full.joules_per_output_token, 2.8, 1e-12);          // 1400 W / 500 tokens a second
    EXPECT_NEAR(*full.price_per_million_output_tokens, 4.0, 1e-12);  // 0.002 a second / 500 x 1e6
    EXPECT_NEAR(*full.price_per_million_tokens, 0.8, 1e-12);
    EXPECT_EQ(full.output_tokens_per_second_per_device, 250.0);
}

}  // namespace
}  // namespace roofline::serving
