// Advice as a whole: what it may say, and what it may not.
#include "roofline/decide/advise.hpp"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/questions.hpp"

namespace roofline::testing {
namespace {

using decide::Advice;
using decide::Candidate;
using decide::Goal;
using decide::Outcome;
using decide::Verdict;

constexpr Goal all_goals[] = {Goal::tpot, Goal::ttft, Goal::throughput, Goal::cost};

Advice advice_on(const Candidate& candidate, Goal goal) {
    auto advice = decide::advise(candidate, goal, surroundings(candidate));
    EXPECT_TRUE(advice);
    return advice ? *advice : Advice{};
}

void expect_ordered(const Times& times) {
    EXPECT_LE(times.limit, times.attainable);
    EXPECT_LE(times.attainable.value, times.expected.value * (1.0 + 1e-12));
    EXPECT_LE(times.expected_low.value, times.expected.value * (1.0 + 1e-12));
    EXPECT_LE(times.expected, times.expected_high);
}

/// What holds of any advice.
void expect_sound(const Advice& advice) {
    double last_gain = 1e300;
    Verdict last = Verdict::helps;
    std::set<std::string> names;
    for (const Outcome& outcome : advice.outcomes) {
        SCOPED_TRACE(outcome.variant);
        EXPECT_TRUE(names.insert(outcome.variant).second) << "said twice";
        EXPECT_GE(outcome.verdict, last);
        if (outcome.verdict != last) last_gain = 1e300;
        last = outcome.verdict;
        EXPECT_EQ(outcome.verdict == Verdict::does_not_apply, !outcome.reason.empty());
        if (outcome.verdict == Verdict::does_not_apply) continue;
        EXPECT_FALSE(outcome.costs.empty());
        EXPECT_EQ(outcome.verdict != Verdict::does_not_fit, outcome.score.fit.fits);
        expect_ordered(outcome.score.ttft);
        expect_ordered(outcome.score.tpot);
        expect_ordered(outcome.score.device_time);
        if (outcome.verdict == Verdict::does_not_fit) continue;
        EXPECT_LE(outcome.gain, last_gain);
        last_gain = outcome.gain;
        if (advice.asked.fit.fits) {
            EXPECT_EQ(outcome.verdict == Verdict::helps, outcome.gain >= 1.01);
        }
    }
    for (const decide::Combination& combination : advice.combinations) {
        SCOPED_TRACE(combination.title);
        EXPECT_TRUE(combination.score.fit.fits);
        EXPECT_TRUE(std::is_sorted(combination.gains.begin(), combination.gains.end()));
        EXPECT_EQ(combination.gains.size(), combination.parts.size());
        for (const std::string& part : combination.parts) {
            const Outcome* alone = find(advice, part);
            ASSERT_NE(alone, nullptr) << part;
            EXPECT_FALSE(alone->what_if) << part;
            if (alone->verdict <= Verdict::hurts) {
                EXPECT_GE(combination.gain, alone->gain) << part;
            }
        }
    }
}

TEST(Advice, IsSoundForEveryGoalAndKindOfModel) {
    const char* models[] = {"llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite", "mamba2-2.7b"};
    for (std::size_t i = 0; i < 4; ++i) {
        for (std::size_t turn = 0; turn < 2; ++turn) {
            const Goal goal = all_goals[(i + 2 * turn) % 4];
            SCOPED_TRACE(std::string(models[i]) + " " + std::string(name(goal)));
            Candidate candidate = question(models[i], "h100-sxm");
            if (turn == 1) {
                candidate.setup.workload.batch = 16.0;
                candidate.setup.workload.chunk = 256.0;
                candidate.setup.deployment().tensor = 2.0;
            }
            expect_sound(advice_on(candidate, goal));
        }
    }
}

TEST(Advice, TheGainOfFp8IsTheRatioOfTwoPredictions) {
    const Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    const Advice advice = advice_on(candidate, Goal::tpot);
    const Outcome* fp8 = find(advice, "fp8 weights and activations");
    ASSERT_NE(fp8, nullptr);
    predict::Setup changed = candidate.setup;
    changed.types.weights = changed.types.activations = find_format("fp8");
    const auto before = predict::predict(*predict::realise(candidate.setup)).metrics.tpot.expected;
    const auto after = predict::predict(*predict::realise(changed)).metrics.tpot.expected;
    EXPECT_EQ(fp8->gain, before.value / after.value);
    EXPECT_LT(fp8->gain, 2.0);  // half the bytes do not make a step twice as fast
}

TEST(Advice, WeightsAreOnlyMultipliedInTypesTheDeviceHas) {
    // An A100 has no fp8: the weights are narrower, the products are not.
    const Advice on_a100 = advice_on(question("llama-3.1-8b", "a100-sxm-80gb"), Goal::ttft);
    ASSERT_NE(find(on_a100, "fp8 weights"), nullptr);
    EXPECT_EQ(find(on_a100, "fp8 weights")->flags, "--weight-dtype fp8");
    EXPECT_EQ(find(on_a100, "fp8 weights and activations"), nullptr);
    const Advice on_h100 = advice_on(question("llama-3.1-8b", "h100-sxm"), Goal::ttft);
    EXPECT_EQ(find(on_h100, "fp8 weights and activations")->flags, "-q fp8");
    EXPECT_GT(find(on_h100, "fp8 weights and activations")->gain, 1.1);
}

TEST(Advice, AMoveThatDoesNotApplySaysWhy) {
    const Advice dense = advice_on(question("llama-3.1-8b", "h100-sxm"), Goal::tpot);
    const auto reason = [](const Advice& advice, std::string_view variant) {
        const Outcome* outcome = find(advice, variant);
        return outcome != nullptr ? outcome->reason : "it is not there";
    };
    EXPECT_EQ(reason(dense, "expert parallelism"), "the model has no experts");
    EXPECT_EQ(reason(dense, "flash attention"), "scores stay on the chip already");
    EXPECT_EQ(reason(dense, "graphs and fused kernels of a serving engine"), "profile engine has them already");
    EXPECT_EQ(reason(dense, "batch halved"), "the batch is a single sequence already");
    EXPECT_THAT(reason(dense, "prompts on devices of their own"), ::testing::HasSubstr("--chunk"));
    Candidate chunked = question("llama-3.1-8b", "h100-sxm");
    chunked.setup.workload.chunk = 512.0;
    chunked.setup.workload.batch = 8.0;
    EXPECT_EQ(find(advice_on(chunked, Goal::tpot), "prompts on devices of their own")->verdict, Verdict::helps);
    EXPECT_EQ(reason(advice_on(chunked, Goal::throughput), "prompts on devices of their own"),
              "a prompt takes devices' time wherever it is computed");
    const Advice quantised = advice_on(question("gpt-oss-20b", "h100-sxm"), Goal::tpot);
    EXPECT_THAT(reason(quantised, "fp8 weights and activations"), ::testing::HasSubstr("bits each already"));
    const Advice recurrent = advice_on(question("mamba2-2.7b", "h100-sxm"), Goal::tpot);
    EXPECT_THAT(reason(recurrent, "KV cache in fewer bits"), ::testing::HasSubstr("no keys and values"));
}

TEST(Advice, SeesWhatFusionGraphsAndFlashAttentionBuy) {
    Candidate candidate = question("llama-3.2-1b", "h100-sxm", "eager");
    candidate.setup.lowering.scores = model::AttentionScores::in_memory;
    candidate.setup.workload.prompt = 4096.0;
    const Advice decode = advice_on(candidate, Goal::tpot);
    EXPECT_GT(find(decode, "graphs and fused kernels of a serving engine")->gain, 2.0);
    const Advice prefill = advice_on(candidate, Goal::ttft);
    EXPECT_GT(find(prefill, "flash attention")->gain, 1.1);
}

TEST(Advice, NeverListsWhatDoesNotFitAsAGainAndSaysHowToMakeItFit) {
    // 141 GB of weights on 80 GB.
    const Advice advice = advice_on(question("llama-3.1-70b", "h100-sxm"), Goal::tpot);
    EXPECT_FALSE(advice.asked.fit.fits);
    expect_sound(advice);
    EXPECT_EQ(find(advice, "fp8 KV cache")->verdict, Verdict::does_not_fit);
    EXPECT_EQ(find(advice, "int4 weights")->verdict, Verdict::helps);
    EXPECT_EQ(find(advice, "tensor parallelism of 4")->verdict, Verdict::helps);
    EXPECT_EQ(find(advice, "weights in the host's memory")->verdict, Verdict::helps);
    for (const Outcome& outcome : advice.outcomes) EXPECT_EQ(outcome.gain, 1.0) << outcome.variant;
    EXPECT_FALSE(advice.combinations.empty());
}

TEST(Advice, TheLargestBatchIsTheLargestThatFits) {
    const Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    const Advice advice = advice_on(candidate, Goal::throughput);
    const Outcome* largest = find(advice, "largest batch that fits");
    ASSERT_NE(largest, nullptr);
    EXPECT_EQ(largest->score.batch, *advice.asked.fit.largest_batch);
    EXPECT_GT(largest->gain, 4.0);
    Candidate beyond = candidate;
    beyond.setup.workload.batch = largest->score.batch + 1.0;
    EXPECT_FALSE(decide::score(beyond)->fit.fits);
}

TEST(Advice, InACombinationTheLargestBatchUsesTheMemoryThatOthersFreed) {
    const Advice advice = advice_on(question("llama-3.1-8b", "h100-sxm"), Goal::throughput);
    const Outcome* alone = find(advice, "largest batch that fits");
    bool seen = false;
    for (const decide::Combination& combination : advice.combinations) {
        const auto& parts = combination.parts;
        if (std::find(parts.begin(), parts.end(), "fp8 KV cache") == parts.end()) continue;
        if (std::find(parts.begin(), parts.end(), alone->variant) == parts.end()) continue;
        EXPECT_GT(combination.score.batch, 1.5 * alone->score.batch);
        seen = true;
    }
    EXPECT_TRUE(seen);
}

TEST(Advice, OneIsAskedForOnTheSameDevicesWithAnswersUnchanged) {
    const Advice advice = advice_on(question("llama-3.1-8b", "h100-sxm"), Goal::tpot);
    ASSERT_FALSE(advice.combinations.empty());
    const decide::Combination& first = advice.combinations.front();
    EXPECT_EQ(first.machines, decide::Machines::same);
    for (const std::string& part : first.parts) EXPECT_EQ(find(advice, part)->answers, decide::Answers::same);
}

TEST(Advice, CombinationsForLatencyServeAsManyAtOnceAndCountDevicesForPrompts) {
    Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    candidate.setup.workload.batch = 8.0;
    candidate.setup.workload.chunk = 512.0;
    const Advice advice = advice_on(candidate, Goal::tpot);
    EXPECT_EQ(find(advice, "prompts on devices of their own")->machines, decide::Machines::more);
    ASSERT_FALSE(advice.combinations.empty());
    for (const decide::Combination& combination : advice.combinations) {
        EXPECT_EQ(combination.score.batch, 8.0);
        const auto& parts = combination.parts;
        if (std::find(parts.begin(), parts.end(), "prompts on devices of their own") != parts.end()) {
            EXPECT_EQ(combination.machines, decide::Machines::more);
        }
    }
}

TEST(Advice, CostNeedsThePriceOfEveryDeviceOrOfNone) {
    const Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    decide::Surroundings around = surroundings(candidate);
    const auto free = decide::advise(candidate, Goal::cost, around);
    ASSERT_TRUE(free);
    EXPECT_EQ(find(*free, "h200-sxm instead")->verdict, Verdict::helps);
    around.prices["h100-sxm"] = 2.0;
    const auto half_known = decide::advise(candidate, Goal::cost, around);
    ASSERT_TRUE(half_known);
    EXPECT_EQ(find(*half_known, "h200-sxm instead")->verdict, Verdict::does_not_apply);
    // The same speed at ten times the price is ten times as dear.
    around.prices["h200-sxm"] = 20.0;
    const auto known = decide::advise(candidate, Goal::cost, around);
    ASSERT_TRUE(known);
    EXPECT_NEAR(find(*known, "h200-sxm instead")->gain, find(*free, "h200-sxm instead")->gain / 10.0, 1e-12);
}

TEST(Advice, StaysWithinTheDevicesThatAreThere) {
    const Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    decide::Surroundings around = surroundings(candidate);
    around.most_devices = 2.0;
    const auto advice = decide::advise(candidate, Goal::tpot, around);
    ASSERT_TRUE(advice);
    for (const Outcome& outcome : advice->outcomes) EXPECT_LE(outcome.score.devices, 2.0) << outcome.variant;
    for (const decide::Combination& combination : advice->combinations) EXPECT_LE(combination.score.devices, 2.0);
    EXPECT_NE(find(*advice, "tensor parallelism of 2"), nullptr);
    EXPECT_EQ(find(*advice, "tensor parallelism of 4"), nullptr);
}

TEST(Advice, WindowsHelpWhereTheContextIsLongAndCostAnotherModel) {
    Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    candidate.setup.workload.context = 65536.0;
    const Advice advice = advice_on(candidate, Goal::tpot);
    const Outcome* windows = find(advice, "a window of 1024 in 3 of 4 layers");
    ASSERT_NE(windows, nullptr);
    EXPECT_TRUE(windows->what_if);
    EXPECT_EQ(windows->answers, decide::Answers::another_model);
    // Of 32 layers 24 read 1,024 instead of 65,536 entries of 4,096 B: 24 x 64,512 x 4,096 B = 6.342 GB less, 1.893 ms.
    EXPECT_NEAR(advice.asked.tpot.limit.value - windows->score.tpot.limit.value, 1.893e-3, 0.002e-3);
}

TEST(Advice, IsTheSameTwice) {
    const Candidate candidate = question("qwen3-30b-a3b", "h100-sxm");
    const Advice first = advice_on(candidate, Goal::throughput);
    const Advice second = advice_on(candidate, Goal::throughput);
    ASSERT_EQ(first.outcomes.size(), second.outcomes.size());
    for (std::size_t i = 0; i < first.outcomes.size(); ++i) {
        EXPECT_EQ(first.outcomes[i].variant, second.outcomes[i].variant);
        EXPECT_EQ(first.outcomes[i].gain, second.outcomes[i].gain);
    }
    ASSERT_EQ(first.combinations.size(), second.combinations.size());
    for (std::size_t i = 0; i < first.combinations.size(); ++i)
        EXPECT_EQ(first.combinations[i].parts, second.combinations[i].parts);
}

}  // namespace
}  // namespace roofline::testing
