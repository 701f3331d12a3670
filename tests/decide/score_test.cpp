// Scores against numbers worked out by hand, and against `predict`.
#include "roofline/decide/score.hpp"

#include <gtest/gtest.h>

#include "decide/questions.hpp"
#include "roofline/decide/compute_bound.hpp"

namespace roofline::testing {
namespace {

using decide::Candidate;
using decide::Goal;
using decide::Score;
using decide::Speculation;

TEST(Speculation, CountsTheGuessesUpToTheFirstWrongOneAndTheTokenTheModelAdds) {
    // 1 + 0.7 + 0.49 + 0.343
    EXPECT_NEAR((Speculation{3, 0.7, 0.05}.tokens_per_step()), 2.533, 1e-12);
    // Nothing guessed: the model's own token. Every guess right: all of them and its own.
    EXPECT_EQ((Speculation{0, 0.7, 0.05}.tokens_per_step()), 1.0);
    EXPECT_EQ((Speculation{4, 1.0, 0.05}.tokens_per_step()), 5.0);
}

TEST(Score, DeviceTimeIsTheWholeRequestOverItsTokens) {
    // F31's example: a request of 1,024 + 128 tokens takes at least 589.2 ms on an H100; over 128 tokens.
    const auto score = decide::score(question("llama-3.1-8b", "h100-sxm"));
    ASSERT_TRUE(score);
    EXPECT_NEAR(score->device_time.limit.value, 589.2e-3 / 128.0, 0.0005e-3);
    EXPECT_NEAR(score->ttft.limit.value, 14.73e-3, 0.005e-3);
    EXPECT_NEAR(score->tpot.limit.value, 4.523e-3, 0.0005e-3);
    EXPECT_EQ(score->bound(Goal::tpot), Bound::memory);
    EXPECT_EQ(score->bound(Goal::ttft), Bound::compute);
    EXPECT_EQ(score->bound(Goal::throughput), Bound::memory);
}

TEST(Score, SpeculationChecksAllGuessesForOneReadingOfTheWeights) {
    // Four tokens of one sequence read the weights once. Bytes as in F31's example at a mean context of 1,088, with the
    // three further tokens written to the cache: (15,009,849,344 + 1,092 x 131,072) / 3.35e12 = 4.523 ms. Three guesses
    // at 5% of a step of 4.523 ms each add 15%. 2.533 tokens come of it: 4.523 x 1.15 / 2.533 = 2.0535 ms.
    Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    candidate.speculation = Speculation{};
    const auto score = decide::score(candidate);
    ASSERT_TRUE(score);
    EXPECT_NEAR(score->tpot.limit.value, 2.0535e-3, 0.002e-3);
    EXPECT_EQ(score->ttft.limit.value, decide::score(question("llama-3.1-8b", "h100-sxm"))->ttft.limit.value);
}

TEST(Score, ADraftModelReadsThePromptToo) {
    // 1,024 tokens through the layers of Llama 3.2 1B, 973,078,528 weights, and one through its head, 2,048 x 128,256:
    // 2 x (1,024 x 973,078,528 + 262,668,288) = 1.9934e12 FLOPs; 16 layers of 32 heads of 64 over 1,024 x 1,025 / 2
    // pairs, 4 FLOPs each: 0.0688e12. At 989.4e12 a second, 2.084 ms more until the first token.
    const Candidate plain = question("llama-3.1-8b", "h100-sxm");
    Candidate candidate = plain;
    candidate.speculation = Speculation{};
    candidate.setup.draft = std::make_shared<const predict::Setup>(question("llama-3.2-1b", "h100-sxm").setup);
    const auto drafted = decide::score(candidate);
    const auto alone = decide::score(plain);
    ASSERT_TRUE(drafted && alone);
    EXPECT_NEAR(drafted->ttft.limit.value - alone->ttft.limit.value, 2.084e-3, 0.005e-3);
    EXPECT_GT(drafted->ttft.expected, alone->ttft.expected);
}

TEST(Score, ADraftModelCostsItsOwnStepsAndMemory) {
    // Three steps of Llama 3.2 1B in place of 15% of a step of Llama 3.1 8B. A step of it reads its layers and the
    // table that is its head, 2,471,628,800 B, one row of that table, and 32,768 B for each of 1,088 tokens and the one
    // it writes: 2,507,317,248 B / 3.35e12 = 0.7485 ms. (4.5233 + 3 x 0.7485) / 2.533 = 2.672 ms a token.
    Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    const auto plain = decide::score(candidate);
    candidate.speculation = Speculation{};
    candidate.setup.draft = std::make_shared<const predict::Setup>(question("llama-3.2-1b", "h100-sxm").setup);
    const auto score = decide::score(candidate);
    ASSERT_TRUE(plain && score);
    EXPECT_NEAR(score->tpot.limit.value, 2.672e-3, 0.004e-3);
    EXPECT_EQ(score->fit.weights.value - plain->fit.weights.value, 2.0 * 1'235'814'400.0);
}

TEST(Score, SpeculationDoesNotPayWhereComputeHoldsDecodingBack) {
    // 1,024 short sequences are beyond the ridge (354, see below): checking four tokens takes four times the flops of
    // one, and guessing three 15% of a step, for 2.533 tokens: 4.15 / 2.533 = 1.638 times as long a token.
    Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    candidate.setup.workload.batch = 1024.0;
    candidate.setup.workload.context = 64.0;
    const auto plain = decide::score(candidate);
    candidate.speculation = Speculation{};
    const auto guessing = decide::score(candidate);
    ASSERT_TRUE(plain && guessing);
    EXPECT_EQ(plain->bound(Goal::tpot), Bound::compute);
    EXPECT_NEAR(guessing->tpot.limit.value / plain->tpot.limit.value, 1.638, 0.01);
}

TEST(Score, SpeculationThatGuessesNothingRightOnlyCosts) {
    Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    const auto plain = decide::score(candidate);
    candidate.speculation = Speculation{3, 1e-9, 0.05};
    const auto hopeless = decide::score(candidate);
    ASSERT_TRUE(plain && hopeless);
    EXPECT_GT(hopeless->tpot.expected.value, 1.14 * plain->tpot.expected.value);
}

TEST(Score, ANamedContextIsWhereTokensArePriced) {
    Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    candidate.setup.workload.context = 32768.0;
    const auto score = decide::score(candidate);
    ASSERT_TRUE(score);
    // The step of method.md's fit: (15,009,849,344 + 8,192 + 32,769 x 131,072) / 3.35e12 = 5.763 ms; the cache of the
    // token itself is written and read.
    EXPECT_NEAR(score->tpot.limit.value, 5.763e-3, 0.002e-3);
}

TEST(Score, WithChunksSomeStepsCarryOneAndTheRestDoNot) {
    // Two sequences, prompts of two chunks each: four of the 127 steps carry a chunk until both were replaced.
    Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    candidate.setup.workload.batch = 2.0;
    candidate.setup.workload.chunk = 512.0;
    const auto score = decide::score(candidate);
    ASSERT_TRUE(score);
    const auto metrics = predict::predict(*predict::realise(candidate.setup)).metrics;
    const double mixed = metrics.ttft.expected.value / 2.0;
    const double step = metrics.tpot.expected.value;
    EXPECT_NEAR(score->device_time.expected.value, (4.0 * mixed + 123.0 * step) / (2.0 * 128.0), 1e-9);
    EXPECT_NEAR(score->tpot.expected.value, (4.0 * mixed + 123.0 * step) / 127.0, 1e-9);
    // Elsewhere, prompts disturb nobody, and are computed alone.
    candidate.prompts_elsewhere = true;
    const auto apart = decide::score(candidate);
    ASSERT_TRUE(apart);
    // Its keys and values, 131,072 B for each of 1,024 tokens, pass NVLink at 450 GB/s before the second of 128 tokens.
    EXPECT_NEAR(apart->tpot.expected.value, step + 131072.0 * 1024.0 / 450e9 / 127.0, 1e-12);
    EXPECT_LT(apart->tpot.expected.value, score->tpot.expected.value);
    // One whole prompt, as `predict` prices it for a batch of one.
    candidate.setup.workload.batch = 1.0;
    candidate.setup.workload.chunk = 0.0;
    const auto alone = predict::predict(*predict::realise(candidate.setup)).metrics.ttft.expected.value;
    EXPECT_EQ(apart->ttft.expected.value, alone);
    EXPECT_NEAR(apart->device_time.expected.value, (2.0 * alone + 127.0 * step) / (2.0 * 128.0), 1e-9);
}

TEST(Score, DevicesThatShareNothingChangeNoTokenOfTheirOwn) {
    // Two replicas with a sequence each: the same times, twice the devices, twice the tokens.
    Candidate one = question("llama-3.1-8b", "h100-sxm");
    Candidate two = one;
    two.setup.workload.batch = 2.0;
    two.setup.deployment().replicas = 2.0;
    const auto first = decide::score(one);
    const auto second = decide::score(two);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->tpot.expected.value, second->tpot.expected.value);
    EXPECT_NEAR(first->device_time.expected.value, second->device_time.expected.value, 1e-15);
    EXPECT_EQ(second->devices, 2.0);
}

TEST(Score, IsRefusedWhereTheModelCannotBeCut) {
    Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    candidate.setup.deployment().tensor = 3.0;
    const auto score = decide::score(candidate);
    ASSERT_FALSE(score);
    EXPECT_NE(score.error().text.find("can be"), std::string::npos) << score.error().text;
}

TEST(ComputeBoundBatch, OfWeightsAloneIsTheRidge) {
    // n tokens take 2 n P flops and 2 P bytes in bf16: compute-bound from n = 989.4e12 / 3.35e12 = 295.3 on, so 296.
    Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    predict::Setup& asked = candidate.setup;
    asked.architecture = nullptr;
    asked.parameters = 8e9;
    asked.checkpoint = std::make_shared<const model::TypePlan>(
        model::uniform_plan(1, plain_format(DType::bf16), DType::bf16, plain_format(DType::bf16)));
    const auto bound = decide::compute_bound_batch(candidate);
    ASSERT_TRUE(bound);
    ASSERT_TRUE(bound->batch);
    EXPECT_EQ(*bound->batch, 296.0);
}

TEST(ComputeBoundBatch, IsNeverReachedWhereEachSequencesCacheOutweighsItsWork) {
    // At a context of 1,024 each sequence adds 134 MB of cache, 40 us at 3.35 TB/s, and 16 GFLOP, 16 us at 989 TFLOP/s.
    const auto long_context = decide::compute_bound_batch(question("llama-3.1-8b", "h100-sxm"));
    ASSERT_TRUE(long_context);
    EXPECT_FALSE(long_context->batch);
    EXPECT_FALSE(long_context->fits());
    // At 64 tokens it adds 8.4 MB, 2.5 us: the weights' 4.5 ms are made up for by 4.5 ms / (15.2 - 2.5) us = 354.
    Candidate candidate = question("llama-3.1-8b", "h100-sxm");
    candidate.setup.workload.context = 64.0;
    const auto near = decide::compute_bound_batch(candidate);
    ASSERT_TRUE(near && near->batch);
    EXPECT_NEAR(*near->batch, 354.0, 20.0);
}

}  // namespace
}  // namespace roofline::testing
