#include "roofline/serving/simulation.hpp"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/replicas.hpp"

namespace roofline::serving {
namespace {

using testing::ConstantReplica;
using ::testing::HasSubstr;
using testing::random_case;

constexpr double tiny = 1e-9;

Mix fixed(double prompt, double output) {
    return {.prompt = Lengths::fixed(prompt), .output = Lengths::fixed(output), .trace = {}};
}

Outcome run(const Replica& replica, const Policy& policy, const Mix& mix, const Load& load,
            const Sampling& sampling = {}) {
    const auto outcome = simulate(replica, policy, mix, load, sampling);
    EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().text);
    return outcome ? *outcome : Outcome{};
}

TEST(Simulation, OfConstantStepsIsWhatPaperSays) {
    // Four slots, steps of 10 ms. A request takes one step for its prompt and first token and ten for the other ten
    // tokens: 4 requests every 110 ms, 36.36 a second, 400 tokens a second.
    const Outcome outcome = run(ConstantReplica(), {}, fixed(100, 11), Load::saturated(), {.requests = 4000});
    EXPECT_NEAR(outcome.flow.output_tokens, 400.0, 1.0);
    EXPECT_NEAR(outcome.flow.requests, 400.0 / 11.0, 0.1);
    EXPECT_NEAR(outcome.flow.prompt_tokens, 40000.0 / 11.0, 10.0);
    EXPECT_NEAR(outcome.ttft->p99, 0.010, tiny);
    EXPECT_NEAR(outcome.tpot->p50, 0.010, tiny);
    EXPECT_NEAR(outcome.itl->p99, 0.010, tiny);
    EXPECT_NEAR(outcome.request->mean, 0.110, tiny);
    EXPECT_NEAR(outcome.flow.decoding, 40.0 / 11.0, 0.01);
    EXPECT_EQ(outcome.flow.preemptions, 0.0);
}

TEST(Simulation, CutsAPromptIntoChunksOfTheBudget) {
    ConstantReplica replica;
    replica.max_step_tokens = 256;
    // 256 + 256 + 256 + 232 tokens: the first token after four steps.
    EXPECT_NEAR(run(replica, {}, fixed(1000, 2), Load::users(1)).ttft->p50, 0.040, tiny);

    // A writes a token a step from 10 ms on and leaves 255 tokens of budget. B comes at 5 ms, is seen at 10 ms and
    // needs two steps for 510 tokens, three for 511.
    Mix mix;
    mix.trace = {{0.0, 1, 100}, {0.005, 510, 1}};
    EXPECT_NEAR(run(replica, {}, mix, Load::trace()).served[1].first_token, 0.030, tiny);
    mix.trace[1].prompt = 511;
    EXPECT_NEAR(run(replica, {}, mix, Load::trace()).served[1].first_token, 0.040, tiny);
}

TEST(Simulation, HostTimeDelaysARequestAndLengthensAStep) {
    Policy policy;
    policy.host_seconds_request = 0.003;
    policy.host_seconds_step = 0.001;
    Mix mix;
    mix.trace = {{1.0, 10, 3}};
    const Outcome outcome = run(ConstantReplica(), policy, mix, Load::trace());
    EXPECT_NEAR(outcome.ttft->mean, 0.014, tiny);     // 3 ms + a step of 11 ms
    EXPECT_NEAR(outcome.request->mean, 0.036, tiny);  // and two more
}

TEST(Simulation, ThrowsOutTheYoungestAndComputesItAgain) {
    // A pool of 20 tokens, two requests of 8 + 5. Steps of 10 ms:
    //   1  both prompts, a token each      hold 8 + 8
    //   2  9 + 9     3  10 + 10, the pool is full, three tokens each
    //   4  A needs 11: B is thrown out     5  A's fifth token; 12 held, B's 8 + 3 tokens do not fit
    //   6  B computes its 11 tokens again and writes its fourth     7  its fifth
    ConstantReplica replica;
    replica.pool_bytes = 20;
    Policy policy;
    policy.watermark = 0.0;
    Mix mix;
    mix.trace = {{0.0, 8, 5}, {0.0, 8, 5}};
    const Outcome outcome = run(replica, policy, mix, Load::trace());
    EXPECT_NEAR(outcome.served[0].finished, 0.050, tiny);
    EXPECT_NEAR(outcome.served[1].finished, 0.070, tiny);
    EXPECT_EQ(outcome.flow.preemptions, 0.5);
    EXPECT_NEAR(outcome.flow.computed_tokens * outcome.seconds, 8 + 8 + 11, tiny);
    EXPECT_NEAR(outcome.flow.prompt_tokens * outcome.seconds, 16, tiny);
    EXPECT_EQ(outcome.most_pool_bytes, 20.0);
    // Eight gaps, seven of 10 ms and B's of 30: place 6.93 of 0 .. 7 is 10 + 0.93 x 20 ms.
    EXPECT_NEAR(outcome.itl->p99, 0.0286, 1e-12);

    policy.admission = Admission::reserving;  // 13 of 20: one after the other, five steps each
    const Outcome reserved = run(replica, policy, mix, Load::trace());
    EXPECT_NEAR(reserved.served[1].finished, 0.100, tiny);
    EXPECT_EQ(reserved.flow.preemptions, 0.0);
}

TEST(Simulation, SpeculationWritesSeveralTokensAStep) {
    Policy policy;
    policy.speculation = {.tokens = 4, .acceptance = 1.0};
    Mix mix;
    mix.trace = {{0.0, 10, 11}};
    const Outcome outcome = run(ConstantReplica(), policy, mix, Load::trace());  // 1 + 5 + 5 tokens
    EXPECT_NEAR(outcome.request->mean, 0.030, tiny);
    // At 0.8: 2.952 tokens a step (S2), 29,520 a second in a hundred steps of a hundred sequences.
    ConstantReplica replica;
    replica.max_sequences = 100;
    policy.speculation = {.tokens = 3, .acceptance = 0.8};
    const Outcome many = run(replica, policy, fixed(10, 2000), Load::saturated(), {.requests = 300});
    EXPECT_NEAR(many.flow.output_tokens / 29520.0, 1.0, 0.01);
}

TEST(Simulation, SamplesShareTheirPrompt) {
    Policy policy;
    policy.samples = 4;
    Mix mix;
    mix.trace = {{0.0, 16, 9}};
    const Outcome outcome = run(ConstantReplica(), policy, mix, Load::trace());
    EXPECT_EQ(outcome.tokens_written, 36.0);
    EXPECT_EQ(outcome.most_pool_bytes, 16.0 + 4 * 8);  // the last token is written and not cached
    EXPECT_EQ(outcome.most_sequences, 4.0);
}

TEST(Simulation, ACommonPrefixIsHeldOnceAndNotComputed) {
    ConstantReplica replica;
    replica.pool_bytes = 1000;
    Policy policy;
    policy.prefix.common = 100;
    Mix mix;
    mix.trace = {{0.0, 150, 2}, {0.0, 150, 2}};
    const Outcome outcome = run(replica, policy, mix, Load::trace());
    EXPECT_NEAR(outcome.flow.computed_tokens * outcome.seconds, 100.0, tiny);  // 50 each
    EXPECT_EQ(outcome.most_pool_bytes, 2.0 * 51);                              // 900 were left for them
}

TEST(Simulation, APipelineTakesTheNextStepBeforeTheLastIsThrough) {
    // Two stages of 5 ms: a request still takes 11 steps of 10 ms, but two groups of sequences alternate. Alone, half
    // of the pipeline is idle.
    ConstantReplica replica;
    replica.pipeline_stages = 2;
    Mix mix;
    mix.trace = {{0.0, 10, 11}};
    EXPECT_NEAR(run(replica, {}, mix, Load::trace()).request->mean, 0.110, tiny);
    replica.max_sequences = 2;
    const Outcome outcome = run(replica, {}, fixed(10, 11), Load::saturated(), {.requests = 1000});
    EXPECT_NEAR(outcome.flow.output_tokens, 200.0, 1.0);
    EXPECT_NEAR(outcome.flow.step_seconds, 0.005, 1e-5);
}

TEST(Simulation, RolesDoTheirPart) {
    Policy policy;
    Mix mix;
    mix.trace = {{0.0, 100, 11}, {0.0, 100, 1}};
    policy.role = Role::prefill;
    const Outcome prefill = run(ConstantReplica(), policy, mix, Load::trace());
    EXPECT_NEAR(prefill.served[0].finished, 0.010, tiny);
    EXPECT_EQ(prefill.tokens_written, 2.0);
    policy.role = Role::decode;
    const Outcome decode = run(ConstantReplica(), policy, mix, Load::trace());
    EXPECT_NEAR(decode.served[0].finished, 0.100, tiny);  // ten steps, nothing of the prompt
    EXPECT_EQ(decode.served[1].finished, 0.0);
    EXPECT_EQ(decode.tokens_written, 10.0);
    EXPECT_EQ(decode.flow.computed_tokens, 0.0);
}

TEST(Simulation, SaysOverloadAndGivesNoTimes) {
    // 36.36 requests a second is all that four slots do.
    const Outcome calm = run(ConstantReplica(), {}, fixed(100, 11), Load::rate(25));
    EXPECT_FALSE(calm.overloaded);
    EXPECT_TRUE(calm.ttft.has_value());
    EXPECT_NEAR(calm.flow.requests, 25.0, 1.5);
    const Outcome outcome = run(ConstantReplica(), {}, fixed(100, 11), Load::rate(45));
    EXPECT_TRUE(outcome.overloaded);
    EXPECT_FALSE(outcome.ttft.has_value());
    EXPECT_FALSE(outcome.request.has_value());
    EXPECT_GT(outcome.waiting, 100.0);
    EXPECT_NEAR(outcome.flow.requests, 400.0 / 11.0, 0.5);  // it still serves what it can
}

TEST(Simulation, ARequestThatNeverFitsIsRefused) {
    ConstantReplica replica;
    replica.pool_bytes = 50;
    const auto outcome = simulate(replica, {}, fixed(48, 8), Load::saturated());
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().text, HasSubstr("a request of 48 + 8 tokens needs 57 bytes of cache, the pool has 50"));
    EXPECT_FALSE(simulate(replica, {}, fixed(8, 8), Load::rate(0)));
    EXPECT_FALSE(simulate(replica, {}, fixed(8, 8), Load::trace()));
    Policy policy;
    policy.role = Role::decode;
    EXPECT_FALSE(simulate(replica, policy, fixed(8, 1), Load::saturated()));
}

/// All that an outcome says, as bytes.
std::string bytes_of(const Outcome& outcome) {
    std::string text(sizeof(Flow), '\0');
    std::memcpy(text.data(), &outcome.flow, sizeof(Flow));
    for (const auto& values : {outcome.wait, outcome.ttft, outcome.tpot, outcome.itl, outcome.request}) {
        if (!values) continue;
        const std::size_t at = text.size();
        text.resize(at + sizeof(Percentiles));
        std::memcpy(text.data() + at, &*values, sizeof(Percentiles));
    }
    return text;
}

TEST(Simulation, ASeedGivesTheSameBytesAgainAndAnotherSeedOthers) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const auto the = random_case(seed, seed % 2 == 0 ? 1 : 3);
        const Load load = seed % 3 == 0 ? Load::users(20) : Load::saturated();
        const auto first = bytes_of(run(the.replica, the.policy, the.mix, load, {.seed = 5, .requests = 200}));
        EXPECT_EQ(first, bytes_of(run(the.replica, the.policy, the.mix, load, {.seed = 5, .requests = 200})));
        if (the.mix.output.shape == Lengths::Shape::fixed && the.mix.prompt.shape == Lengths::Shape::fixed) continue;
        EXPECT_NE(first, bytes_of(run(the.replica, the.policy, the.mix, load, {.seed = 6, .requests = 200})));
    }
}

TEST(Simulation, NothingIsLostAndNoLimitIsPassed) {
    for (std::uint64_t seed = 100; seed < 140; ++seed) {
        auto the = random_case(seed, seed % 3 == 0 ? 4 : 1);
        const Load load = seed % 4 == 0 ? Load::users(30) : seed % 4 == 1 ? Load::rate(0.5) : Load::saturated();
        if (seed % 5 == 0) the.policy.samples = 2;
        const Outcome outcome = run(the.replica, the.policy, the.mix, load, {.requests = 200});
        EXPECT_EQ(outcome.tokens_written + outcome.tokens_at_start,
                  outcome.tokens_of_finished + outcome.tokens_of_unfinished)
            << seed;
        EXPECT_EQ(outcome.arrived, outcome.finished + outcome.unfinished) << seed;
        EXPECT_LE(outcome.most_pool_bytes, the.replica.pool_bytes) << seed;
        EXPECT_LE(outcome.most_step_tokens, the.replica.max_step_tokens) << seed;
        EXPECT_LE(outcome.most_sequences, the.replica.max_sequences) << seed;
        EXPECT_GT(outcome.flow.output_tokens, 0.0) << seed;
        if (!outcome.ttft) continue;
        EXPECT_LE(outcome.ttft->p50, outcome.ttft->p90) << seed;
        EXPECT_LE(outcome.ttft->p90, outcome.ttft->p99) << seed;
        EXPECT_LE(outcome.ttft->mean, outcome.request->mean) << seed;
    }
}

TEST(Simulation, AWholeTraceIsWrittenToItsLastToken) {
    auto the = random_case(3);
    double tokens = 0.0;
    Random random(8);
    for (int i = 0; i < 300; ++i) {
        Request request = the.mix.draw(0, random);
        request.arrival = 0.05 * i;
        tokens += request.output;
        the.mix.trace.push_back(request);
    }
    const Outcome outcome = run(the.replica, the.policy, the.mix, Load::trace());
    EXPECT_EQ(outcome.tokens_written, tokens);
    EXPECT_EQ(outcome.finished, 300.0);
    EXPECT_EQ(outcome.requests, 300.0);
    EXPECT_EQ(outcome.served.size(), 300U);
}

TEST(Simulation, MorePoolIsNotSlower) {
    for (std::uint64_t seed = 200; seed < 215; ++seed) {
        auto the = random_case(seed);
        // Alike ones march in step in the smaller pool or the larger as it happens; those are left out.
        if (the.mix.output.shape == Lengths::Shape::fixed) continue;
        const Outcome small = run(the.replica, the.policy, the.mix, Load::saturated(), {.requests = 1500});
        the.replica.pool_bytes *= 2.0;
        const Outcome large = run(the.replica, the.policy, the.mix, Load::saturated(), {.requests = 1500});
        EXPECT_GT(large.flow.output_tokens, 0.97 * small.flow.output_tokens) << seed;
    }
}

TEST(Percentiles, AreThoseOfTheWholeRow) {
    const auto plain = percentiles({{4, 1}, {1, 1}, {3, 1}, {2, 1}, {5, 1}});
    EXPECT_EQ(plain->p50, 3.0);
    EXPECT_NEAR(plain->p90, 4.6, tiny);  // place 3.6 of 0 .. 4
    EXPECT_EQ(plain->mean, 3.0);
    const auto weighted = percentiles({{1, 99}, {7, 1}});
    EXPECT_EQ(weighted->p90, 1.0);
    EXPECT_NEAR(weighted->p99, 1.06, tiny);  // place 98.01: a hundredth of the way from the last 1 to the 7
    EXPECT_FALSE(percentiles({}).has_value());
}

}  // namespace
}  // namespace roofline::serving
