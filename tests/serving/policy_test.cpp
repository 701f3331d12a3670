#include "roofline/serving/policy.hpp"

#include <gtest/gtest.h>

#include "roofline/serving/step_plan.hpp"
#include "serving/replicas.hpp"

namespace roofline::serving {
namespace {

using testing::ConstantReplica;

TEST(Speculation, WritesTheTokensOfAGeometricSum) {
    EXPECT_EQ(tokens_per_step({}).mean, 1.0);
    EXPECT_EQ(tokens_per_step({.tokens = 4, .acceptance = 1.0}).mean,
              5.0);  // all four, and the one of the model itself
    EXPECT_EQ(tokens_per_step({.tokens = 4, .acceptance = 0.0}).mean, 1.0);
    // (1 - 0.8^4) / (1 - 0.8) = 0.5904 / 0.2 = 2.952
    EXPECT_NEAR(tokens_per_step({.tokens = 3, .acceptance = 0.8}).mean, 2.952, 1e-12);
    // 1, 2, 3, 4 tokens with 0.2, 0.16, 0.128, 0.512: 0.2 + 0.64 + 1.152 + 8.192 = 10.184
    EXPECT_NEAR(tokens_per_step({.tokens = 3, .acceptance = 0.8}).square, 10.184, 1e-12);
}

TEST(Prefix, LeavesAtLeastTheLastTokenToCompute) {
    EXPECT_EQ(cached_tokens({.common = 100, .hit_rate = 0.0}, 300), 100.0);
    EXPECT_EQ(cached_tokens({.common = 100, .hit_rate = 0.5}, 300), 200.0);
    EXPECT_EQ(cached_tokens({.common = 100, .hit_rate = 1.0}, 300), 299.0);
    EXPECT_EQ(cached_tokens({.common = 100, .hit_rate = 0.0}, 40), 39.0);
}

TEST(StepPlan, PutsContextsOfOnePowerOfTwoTogetherAndLosesNoToken) {
    class Recording : public ConstantReplica {
      public:
        StepCost price(std::span<const model::Sequences> step) const override {
            seen.assign(step.begin(), step.end());
            return ConstantReplica::price(step);
        }
        mutable std::vector<model::Sequences> seen;
    } replica;
    StepPlan plan;
    Policy policy;
    plan.decode(1, 1000);
    plan.decode(1, 600);
    plan.decode(2, 5000);
    plan.chunk(1, 300, 0, 1);
    plan.chunk(1, 400, 0, 0);
    plan.cost(replica, policy);
    ASSERT_EQ(replica.seen.size(), 3U);
    EXPECT_EQ(replica.seen[0].phase, model::Phase::prefill);
    // 700 tokens and 300^2 + 400^2 = 250,000 in squares: 1.96 chunks of 357.14.
    EXPECT_NEAR(replica.seen[0].count, 1.96, 1e-12);
    EXPECT_NEAR(replica.seen[0].new_tokens, 250000.0 / 700.0, 1e-9);
    EXPECT_NEAR(replica.seen[0].count * replica.seen[0].logits, 1.0, 1e-12);
    EXPECT_EQ(replica.seen[1].count, 2.0);
    EXPECT_EQ(replica.seen[1].past, 800.0);
    EXPECT_EQ(replica.seen[2].count, 2.0);
    EXPECT_EQ(replica.seen[2].past, 5000.0);

    // Padded up to the next captured size, with sequences of no context; beyond the largest, not at all.
    policy.captured = usual_captured_sizes(24);
    EXPECT_EQ(policy.captured, (std::vector<double>{1, 2, 4, 8, 16, 24}));
    plan.clear();
    plan.decode(9, 100);
    plan.cost(replica, policy);
    ASSERT_EQ(replica.seen.size(), 2U);
    EXPECT_EQ(replica.seen[1].count, 7.0);
    EXPECT_EQ(replica.seen[1].past, 0.0);
    EXPECT_EQ(replica.seen[1].logits, 0.0);
    plan.clear();
    plan.decode(25, 100);
    plan.cost(replica, policy);
    EXPECT_EQ(replica.seen.size(), 1U);
}

TEST(StepPlan, AddsTheDraftAndTheHost) {
    ConstantReplica replica;
    ConstantReplica draft;
    draft.seconds = 0.001;
    Policy policy;
    policy.host_seconds_step = 0.0005;
    policy.speculation = {
        .tokens = 4, .acceptance = 0.8, .draft_fraction = 0.1, .draft_seconds = 0.002, .draft = &draft};
    StepPlan plan;
    plan.decode(3, 100);
    // 10 ms + 0.1 x 10 ms + 2 ms + 4 steps of 1 ms + 0.5 ms
    EXPECT_NEAR(plan.cost(replica, policy).latency, 0.0175, 1e-12);
    EXPECT_EQ(plan.tokens(policy), 15.0);
    // A prompt alone is drafted nothing, but the draft reads it too: 10 + 1 + 0.5 ms.
    plan.clear();
    plan.chunk(1, 50, 0, 1);
    EXPECT_NEAR(plan.cost(replica, policy).latency, 0.0115, 1e-12);
}

TEST(Policy, ThatMakesNoSenseIsNamed) {
    ConstantReplica replica;
    Policy policy;
    EXPECT_TRUE(check(replica, policy));
    policy.speculation.acceptance = 1.5;
    EXPECT_EQ(check(replica, policy).error().text, "acceptance: expected 0 to 1");
    policy = {};
    policy.samples = 5;
    EXPECT_EQ(check(replica, policy).error().text,
              "outputs of a request: expected a whole number from 1 to the sequences at once");
    policy = {};
    policy.prefix.hit_rate = std::nan("");
    EXPECT_FALSE(check(replica, policy));
    policy = {};
    replica.pool_bytes = 0.0;
    EXPECT_FALSE(check(replica, policy));
}

}  // namespace
}  // namespace roofline::serving
