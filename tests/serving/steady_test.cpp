#include "roofline/serving/steady.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "roofline/serving/backlog.hpp"
#include "serving/replicas.hpp"

namespace roofline::serving {
namespace {

using testing::ConstantReplica;
using ::testing::HasSubstr;
using testing::PreparedReplica;
using testing::random_case;
using testing::Which;

Mix fixed(double prompt, double output) {
    return {.prompt = Lengths::fixed(prompt), .output = Lengths::fixed(output), .trace = {}};
}

Steady solve(const Replica& replica, const Policy& policy, const Mix& mix, const Load& load) {
    const auto result = steady(replica, policy, mix, load);
    EXPECT_TRUE(result) << (result ? "" : result.error().text);
    return result ? *result : Steady{};
}

TEST(Steady, OfConstantStepsIsWhatPaperSays) {
    // As in the simulation: 4 requests every 11 steps of 10 ms.
    const Steady state = solve(ConstantReplica(), {}, fixed(100, 11), Load::saturated());
    EXPECT_NEAR(state.flow.requests, 400.0 / 11.0, 1e-6);
    EXPECT_NEAR(state.flow.output_tokens, 400.0, 1e-5);
    EXPECT_NEAR(state.flow.prompt_tokens, 40000.0 / 11.0, 1e-3);
    EXPECT_NEAR(state.flow.decoding, 40.0 / 11.0, 1e-6);
    EXPECT_NEAR(state.ttft, 0.010, 1e-9);
    EXPECT_NEAR(state.tpot, 0.010, 1e-9);
    EXPECT_NEAR(state.request, 0.110, 1e-9);
    EXPECT_EQ(state.limit, Limit::sequences);
    EXPECT_EQ(state.capacity, state.flow.requests);

    // One user: a request every 110 ms. Ten users: four in, six waiting, 1.65 slots' worth of time each.
    const Steady alone = solve(ConstantReplica(), {}, fixed(100, 11), Load::users(1));
    EXPECT_NEAR(alone.flow.requests, 1.0 / 0.110, 1e-6);
    EXPECT_EQ(alone.limit, Limit::users);
    const Steady ten = solve(ConstantReplica(), {}, fixed(100, 11), Load::users(10));
    EXPECT_NEAR(ten.wait, 6.0 / (400.0 / 11.0), 1e-6);  // Little: 6 waiting over requests per second = 165 ms
    EXPECT_NEAR(ten.request, 0.165 + 0.110, 1e-6);      // = 10 users / requests per second
}

TEST(Steady, ThePoolLimitsTheBatch) {
    // 100 + 11 tokens, a byte each, reserved with the step's own: nine fit 1,000 bytes, and 256 sequences could run.
    ConstantReplica replica;
    replica.max_sequences = 256;
    replica.pool_bytes = 1000;
    Policy policy;
    policy.admission = Admission::reserving;
    const Steady state = solve(replica, policy, fixed(100, 11), Load::saturated());
    EXPECT_EQ(state.limit, Limit::pool);
    EXPECT_NEAR(state.running, 9.0, 0.01);
    EXPECT_NEAR(state.flow.output_tokens, 900.0, 1.0);
}

TEST(Steady, WhatDoesNotFitLeavesMoreFreeThanHalfARequest) {
    // Prompts of 100 or 300 bytes, alike often, that write nothing but their first token: E[h^2] / (2 E[h]) = 50,000 /
    // 400 = 125 bytes are free on average of 10,101; one byte of each is its output. (10,101 - 125.5) / 201 = 49.6.
    ConstantReplica replica;
    replica.max_sequences = 256;
    replica.pool_bytes = 10101;
    Policy policy;
    policy.admission = Admission::reserving;
    const Mix mix{.prompt = *parse_lengths("100*1,300*1", "prompt"), .output = Lengths::fixed(1), .trace = {}};
    EXPECT_NEAR(solve(replica, policy, mix, Load::saturated()).running, 49.6, 0.1);
}

TEST(Steady, AThirdRequestEntersWhileTheOthersAreYoung) {
    // 1,000 + 101 tokens, a byte each, in 3,150 bytes: two others hold 2,000 to 2,202, and the third enters when they
    // hold at most 2,150. So between two and three are inside, and one is thrown out when all have grown by 50.
    ConstantReplica replica;
    replica.max_sequences = 256;
    replica.pool_bytes = 3150;
    Policy policy;
    policy.watermark = 0.0;
    const Steady state = solve(replica, policy, fixed(1000, 102), Load::saturated());
    EXPECT_EQ(state.limit, Limit::pool);
    EXPECT_GT(state.running, 2.0);
    EXPECT_LT(state.running, 3.0);
    EXPECT_GT(state.flow.preemptions, 0.0);
    const auto outcome = simulate(replica, policy, fixed(1000, 102), Load::saturated());
    ASSERT_TRUE(outcome);
    EXPECT_NEAR(state.flow.decoding, outcome->flow.decoding, 0.03 * outcome->flow.decoding);
    EXPECT_NEAR(state.flow.preemptions, outcome->flow.preemptions, 0.1);
}

TEST(Steady, PromptsOfRequestsThatStayEquallyLongDoNotMeet) {
    // Three at once, four steps of prompt and ten of writing each: nobody waits, so 3 x 10 / 14 write in a step.
    ConstantReplica replica;
    replica.max_sequences = 3;
    replica.max_step_tokens = 503;
    const Steady state = solve(replica, {}, fixed(2000, 11), Load::saturated());
    EXPECT_NEAR(state.flow.decoding, 30.0 / 14.0, 0.02);
    const auto outcome = simulate(replica, {}, fixed(2000, 11), Load::saturated());
    ASSERT_TRUE(outcome);
    EXPECT_NEAR(outcome->flow.decoding, 30.0 / 14.0, 0.1);
}

TEST(Steady, TheBudgetOfAStepLimitsLongPrompts) {
    // A request puts 1,000 prompt tokens and 9 written ones through steps of 500: 500 / 1,009 requests a step at most.
    ConstantReplica replica;
    replica.max_sequences = 256;
    replica.max_step_tokens = 500;
    const Steady state = solve(replica, {}, fixed(1000, 10), Load::saturated());
    EXPECT_EQ(state.limit, Limit::step_tokens);
    EXPECT_NEAR(state.flow.requests, 100.0 * 500.0 / 1009.0, 0.1);
}

TEST(Steady, SpeculationPrefixesAndSamplesCount) {
    // k = 4, all accepted, 11 tokens: the first from the prompt's step, then (10 + 2) / 5 = 2.4 steps. The 2 is half
    // the tokens that the last step throws away on average; here the ten fit exactly and simulation needs 2 steps.
    Policy policy;
    policy.speculation = {.tokens = 4, .acceptance = 1.0};
    EXPECT_NEAR(solve(ConstantReplica(), policy, fixed(100, 11), Load::saturated()).flow.requests, 4.0 / 0.034, 1e-4);
    // Two samples of two sequences each use the four slots: two requests at a time, the tokens as before.
    policy = {};
    policy.samples = 2;
    const Steady two = solve(ConstantReplica(), policy, fixed(100, 11), Load::saturated());
    EXPECT_NEAR(two.flow.requests, 200.0 / 11.0, 1e-6);
    EXPECT_NEAR(two.flow.output_tokens, 400.0, 1e-5);
    // Half of 1,000 tokens found: 500 / (500 + 9) requests a step at most.
    ConstantReplica replica;
    replica.max_sequences = 256;
    replica.max_step_tokens = 500;
    policy = {};
    policy.prefix.hit_rate = 0.5;
    EXPECT_NEAR(solve(replica, policy, fixed(1000, 10), Load::saturated()).flow.requests, 100.0 * 500.0 / 509.0, 0.1);
}

TEST(Steady, APipelineIsFasterForManyAndNotForOne) {
    ConstantReplica replica;
    replica.pipeline_stages = 2;  // of 5 ms
    EXPECT_NEAR(solve(replica, {}, fixed(10, 11), Load::users(1)).request, 0.110, 0.002);
    replica.max_sequences = 2;
    EXPECT_NEAR(solve(replica, {}, fixed(10, 11), Load::saturated()).flow.output_tokens, 200.0, 10.0);
}

/// Time in proportion to what is in a step: no batch gains anything, so that the work of a request can be added up.
class ProportionalReplica : public Replica {
  public:
    StepCost price(std::span<const model::Sequences> step) const override {
        double seconds = 0.0;
        for (const model::Sequences& group : step)
            seconds += group.count * (group.phase == model::Phase::prefill ? 1e-5 * group.new_tokens : 1e-4);
        return {seconds, seconds / pipeline_stages, 0.0, 0.0};
    }
    double sequence_bytes(double context) const override { return context; }
};

TEST(Steady, AtTheLimitNoStepOfAPipelineHoldsUpAnother) {
    // 1,000 tokens of prompt at 10 us and 99 further ones at 100 us: 19.9 ms of work, a quarter of it on each of four
    // stages. All of them busy all the time: 4 / 19.9 ms = 201 requests a second.
    ProportionalReplica replica;
    replica.pipeline_stages = 4;
    replica.max_sequences = 64;
    const double waiting = solve(replica, {}, fixed(1000, 100), Load::saturated()).flow.requests;
    replica.holds_up = false;
    const double bound = solve(replica, {}, fixed(1000, 100), Load::saturated()).flow.requests;
    EXPECT_NEAR(bound, 4.0 / 0.0199, 0.02 * 4.0 / 0.0199);
    EXPECT_LT(waiting, bound);
    // Prompts are shared among the steps under way: little is lost.
    EXPECT_GT(waiting, 0.85 * bound);
}

TEST(Steady, SaysOverload) {
    const Steady over = solve(ConstantReplica(), {}, fixed(100, 11), Load::rate(37));  // 36.36 is all
    EXPECT_TRUE(over.overloaded);
    EXPECT_TRUE(std::isinf(over.ttft));
    EXPECT_TRUE(std::isinf(over.request));
    EXPECT_NEAR(over.flow.requests, 400.0 / 11.0, 1e-6);
    const Steady calm = solve(ConstantReplica(), {}, fixed(100, 11), Load::rate(20));
    EXPECT_FALSE(calm.overloaded);
    EXPECT_EQ(calm.flow.requests, 20.0);
    EXPECT_NEAR(calm.tpot, 0.010, 1e-6);
    // Far below capacity: half a step until the next one starts, if one is under way, and the prompt's own step.
    const Steady idle = solve(ConstantReplica(), {}, fixed(100, 11), Load::rate(0.1));
    EXPECT_NEAR(idle.flow.busy, 1.0 - std::exp(-0.1 * 0.110), 1e-4);
    EXPECT_NEAR(idle.ttft, 0.010 + idle.flow.busy * 0.005, 1e-4);
}

TEST(Steady, RefusesWhatNeverFits) {
    ConstantReplica replica;
    replica.pool_bytes = 50;
    const auto state = steady(replica, {}, fixed(48, 8), Load::saturated());
    ASSERT_FALSE(state);
    EXPECT_THAT(state.error().text, HasSubstr("a request of 48 + 8 tokens needs 57 bytes of cache, the pool has 50"));
}

TEST(Backlog, OfSinglePromptsIsPoissonAndKeepsItsMean) {
    // A quarter of a prompt a step, each half a step's room: no prompt in exp(-0.25) = 77.9% of steps.
    const BacklogInput input{.sizes = {{512, 1.0}}, .arrivals = 0.25, .room = 1024};
    const BacklogGrid grid = backlog_grid(input);
    const Backlog chain = backlog(input, grid);
    EXPECT_NEAR(chain.level.front(), std::exp(-0.25), 0.01);
    double sum = 0.0;
    double tokens = 0.0;
    for (std::size_t i = 0; i < chain.level.size(); ++i) {
        sum += chain.level[i];
        tokens += chain.level[i] * static_cast<double>(i) * grid.cell;
    }
    EXPECT_NEAR(sum, 1.0, 1e-12);
    EXPECT_NEAR(tokens, 128.0, 1e-9);
    // More than a step takes: every step is full.
    const BacklogInput flood{.sizes = {{512, 1.0}}, .arrivals = 3.0, .room = 1024};
    EXPECT_EQ(backlog(flood, backlog_grid(flood)).level.back(), 1.0);
    // Prompts longer than a step: busy steps are full but for the last of each.
    const BacklogInput longer{.sizes = {{4096, 1.0}}, .arrivals = 0.1, .room = 1024};
    const Backlog busy = backlog(longer, backlog_grid(longer));
    EXPECT_NEAR(busy.level.front(), 0.6, 0.02);
    EXPECT_NEAR(busy.level.back(), 0.4, 0.02);
}

struct Comparison {
    std::vector<double> errors;  // of the closed form over the simulation, sorted by size
    double at(double fraction) const {
        return errors[static_cast<std::size_t>(fraction * (double(errors.size()) - 1))];
    }
};

/// Requests that are all alike stay as the start has spread them, and a long tail needs many: the mean of several
/// starts.
double simulated_tokens(const testing::RandomCase& the, double running) {
    constexpr std::uint64_t starts = 2;
    double sum = 0.0;
    for (std::uint64_t start = 1; start <= starts; ++start) {
        const auto outcome = simulate(the.replica, the.policy, the.mix, Load::saturated(),
                                      {.seed = start, .requests = std::max(4000.0, 20.0 * running)});
        if (!outcome) return 0.0;  // the longest request drawn does not fit
        sum += outcome->flow.output_tokens;
    }
    return sum / starts;
}

Comparison compare(std::uint64_t first, int count, int stages) {
    Comparison result;
    for (int i = 0; i < count; ++i) {
        const auto the = random_case(first + static_cast<std::uint64_t>(i), stages);
        const auto state = steady(the.replica, the.policy, the.mix, Load::saturated());
        if (!state) continue;
        const double tokens = simulated_tokens(the, state->running);
        if (tokens > 0.0) result.errors.push_back(std::abs(state->flow.output_tokens / tokens - 1.0));
    }
    std::sort(result.errors.begin(), result.errors.end());
    return result;
}

// Mixes that nothing was chosen by.
TEST(Steady, AgreesWithTheSimulationWhenSaturated) {
    const Comparison comparison = compare(51000, 50, 1);
    ASSERT_GT(comparison.errors.size(), 40U);
    EXPECT_LT(comparison.at(0.5), 0.01);
    EXPECT_LT(comparison.at(0.9), 0.03);
    EXPECT_LT(comparison.at(1.0), 0.10);
}

TEST(Steady, AgreesWithTheSimulationOfPipelines) {
    for (const int stages : {2, 4, 8}) {
        const Comparison comparison = compare(52000, 15, stages);
        ASSERT_GT(comparison.errors.size(), 10U);
        EXPECT_LT(comparison.at(0.5), 0.01) << stages;
        EXPECT_LT(comparison.at(0.9), 0.04) << stages;
        EXPECT_LT(comparison.at(1.0), 0.10) << stages;
    }
}

TEST(Steady, StepsAtTheEndOfLongPromptsHoldUpThoseAtTheHead) {
    // Every step is full of one prompt's tokens; they differ by what those look at. The longest of the eight under way
    // sets the pace of all.
    testing::RoofReplica replica;
    replica.parameters = 1e9;
    replica.token_bytes = 32768;
    replica.overlaps = false;
    replica.pipeline_stages = 8;
    replica.max_sequences = 256;
    replica.max_step_tokens = 512;
    const Steady state = solve(replica, {}, fixed(2530, 24), Load::saturated());
    const auto outcome = simulate(replica, {}, fixed(2530, 24), Load::saturated(), {.requests = 1500});
    ASSERT_TRUE(outcome);
    EXPECT_NEAR(state.flow.output_tokens / outcome->flow.output_tokens, 1.0, 0.02);
}

TEST(Steady, AgreesWithTheSimulationOfPipelinesWhoseRequestsAreAllAlike) {
    // Those of one age end in one step, and so their prompts come in one: bubbles that no chain of single steps knows.
    // How they are spread at the start lasts, as all stay equally long: seeds are up to 5% apart.
    for (const int stages : {2, 4, 8}) {
        testing::RoofReplica replica;
        replica.parameters = 8e9;
        replica.token_bytes = 131072;
        replica.pipeline_stages = stages;
        replica.max_sequences = 64;
        replica.max_step_tokens = 8192;
        for (const auto& [prompt, output] :
             {std::pair{2048.0, 128.0}, std::pair{128.0, 128.0}, std::pair{512.0, 24.0}}) {
            const Steady state = solve(replica, {}, fixed(prompt, output), Load::saturated());
            const auto outcome = simulate(replica, {}, fixed(prompt, output), Load::saturated(), {.requests = 1500});
            ASSERT_TRUE(outcome);
            EXPECT_NEAR(state.flow.output_tokens / outcome->flow.output_tokens, 1.0, 0.1)
                << stages << " stages, " << prompt << " + " << output;
            EXPECT_NEAR(state.ttft / outcome->ttft->mean, 1.0, 0.25)
                << stages << " stages, " << prompt << " + " << output;
        }
    }
}

TEST(Steady, ASingleUserMeetsNobody) {
    const PreparedReplica replica("llama-3.1-8b", "h100-sxm", Which::expected);
    const std::array<model::Sequences, 1> prompt = {{{model::Phase::prefill, 1.0, 1000.0, 0.0, 1.0}}};
    const Steady state = solve(replica, {}, fixed(1000, 100), Load::users(1));
    EXPECT_NEAR(state.ttft, replica.price(prompt).latency, 1e-9);
}

TEST(Steady, WhereFewAreServedFasterThanManyNobodyWaitsForAPlace) {
    // 1,024 places, of which compute fills some 150 at 95% of capacity: the running set is never full, and a request
    // waits for the step under way to end, no longer.
    const PreparedReplica replica("llama-3.1-8b", "h100-sxm", Which::expected);
    const Mix mix = fixed(1000, 300);
    const Steady full = solve(replica, {}, mix, Load::saturated());
    const Steady state = solve(replica, {}, mix, Load::rate(0.95 * full.capacity));
    EXPECT_LT(state.running, 0.8 * full.running);
    EXPECT_LT(state.wait, state.itl);
}

TEST(Steady, AgreesWithTheSimulationAtARate) {
    // At a third of capacity, where neither waiting nor crowding rules: means of all three times.
    std::vector<double> ttft;
    std::vector<double> tpot;
    for (std::uint64_t seed = 3000; seed < 3025; ++seed) {
        auto the = random_case(seed);
        const auto full = steady(the.replica, the.policy, the.mix, Load::saturated());
        if (!full) continue;
        const Load load = Load::rate(full->capacity / 3.0);
        const auto state = steady(the.replica, the.policy, the.mix, load);
        const auto outcome = simulate(the.replica, the.policy, the.mix, load, {.seed = 7, .requests = 1500});
        if (!state || !outcome || !outcome->ttft || !outcome->tpot) continue;
        EXPECT_NEAR(outcome->flow.requests / state->flow.requests, 1.0, 0.1) << seed;
        ttft.push_back(std::abs(state->ttft / outcome->ttft->mean - 1.0));
        tpot.push_back(std::abs(state->itl / outcome->itl->mean - 1.0));
    }
    std::sort(ttft.begin(), ttft.end());
    std::sort(tpot.begin(), tpot.end());
    ASSERT_GT(ttft.size(), 15U);
    EXPECT_LT(ttft[ttft.size() / 2], 0.05);
    EXPECT_LT(tpot[tpot.size() / 2], 0.03);
    EXPECT_LT(tpot[tpot.size() * 9 / 10], 0.15);
}

TEST(Steady, PromptsWaitForThoseBeforeThem) {
    // A prompt fills a step of 10 ms and is all there is of a request; 50 a second at random keep half of the steps
    // busy. A queue with a constant service time: 0.5 / (1 - 0.5) x 10 ms / 2 = 5 ms until it starts, and 10 ms for
    // itself.
    ConstantReplica replica;
    replica.max_step_tokens = 500;
    replica.max_sequences = 256;
    const Steady state = solve(replica, {}, fixed(500, 1), Load::rate(50));
    EXPECT_NEAR(state.ttft, 0.015, 0.0005);
    const auto outcome = simulate(replica, {}, fixed(500, 1), Load::rate(50), {.requests = 20000});
    ASSERT_TRUE(outcome && outcome->ttft);
    EXPECT_NEAR(outcome->ttft->mean, 0.015, 0.0005);
}

TEST(Steady, ARealModelIsOrderedAndAgrees) {
    const PreparedReplica limit("llama-3.1-8b", "h100-sxm", Which::limit);
    const PreparedReplica attainable("llama-3.1-8b", "h100-sxm", Which::attainable);
    const PreparedReplica expected("llama-3.1-8b", "h100-sxm", Which::expected);
    Policy policy;
    policy.captured = usual_captured_sizes(512);
    const Mix mix{.prompt = Lengths::lognormal(800, 0.8), .output = Lengths::lognormal(250, 0.8), .trace = {}};
    for (const Load& load : {Load::saturated(), Load::users(16), Load::rate(2.0)}) {
        const Steady first = solve(limit, policy, mix, load);
        const Steady second = solve(attainable, policy, mix, load);
        const Steady third = solve(expected, policy, mix, load);
        EXPECT_GE(first.flow.requests, second.flow.requests);
        EXPECT_GE(second.flow.requests, third.flow.requests);
        EXPECT_LE(first.tpot, second.tpot);
        EXPECT_LE(second.tpot, third.tpot);
        EXPECT_LE(first.ttft, second.ttft);
        EXPECT_LE(second.ttft, third.ttft);
        const auto outcome = simulate(expected, policy, mix, load, {.requests = 1000});
        ASSERT_TRUE(outcome);
        EXPECT_NEAR(third.flow.output_tokens / outcome->flow.output_tokens, 1.0, 0.06);
        EXPECT_NEAR(third.itl / outcome->itl->mean, 1.0, 0.06);
    }
}

}  // namespace
}  // namespace roofline::serving
