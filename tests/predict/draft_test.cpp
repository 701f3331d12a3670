// A model that guesses ahead lies in the memory of the model it guesses for.
#include <gtest/gtest.h>

#include "decide/questions.hpp"
#include "roofline/io/engine_file.hpp"
#include "roofline/predict/setup.hpp"

namespace roofline::testing {
namespace {

// Llama 3.2 1B in bf16: 1,235,814,400 parameters of 2 B, the table of 128,256 x 2,048 shared by embedding and head.
// KV: 16 layers x 2 x 8 heads x 64 x 2 B = 32,768 B a token.
constexpr double draft_weights = 2.0 * 1'235'814'400.0;
constexpr double draft_table = 2.0 * 128'256.0 * 2'048.0;
constexpr double draft_layer = (draft_weights - draft_table - 2.0 * 2'048.0) / 16.0;
constexpr double draft_token = 32'768.0;

predict::Setup with_draft(const std::string& model = "llama-3.1-8b", const std::string& device = "h100-sxm") {
    predict::Setup setup = question(model, device).setup;
    setup.draft = std::make_shared<const predict::Setup>(question("llama-3.2-1b", device).setup);
    setup.workload.batch = 4.0;
    setup.workload.prompt = 1024.0;
    setup.workload.generate = 128.0;
    return setup;
}

TEST(Draft, ItsWeightsAndCacheAreInTheFit) {
    const auto scenario = predict::realise(with_draft());
    ASSERT_TRUE(scenario) << scenario.error().text;
    const predict::Fit fit = predict::fit_deployment(*scenario);
    EXPECT_EQ(fit.draft_weights.value, draft_weights);
    EXPECT_EQ(fit.weights.value, 16'060'522'496.0 + draft_weights);
    EXPECT_EQ(fit.draft_kv.value, 4.0 * 1152.0 * draft_token);
    EXPECT_EQ(fit.kv.value, 4.0 * 1152.0 * (131'072.0 + draft_token));
    // (80e9 - 18,532,151,296) / (1,152 x 163,840 + 1,024 x 86,016 + 256,512) = 61,467,848,704 / 277,080,576 = 221.8
    EXPECT_EQ(fit.largest_batch, 221.0);
    // What is asked about the model itself is not changed by who guesses for it.
    EXPECT_EQ(scenario->parameters->total, 8'030'261'248.0);
    EXPECT_EQ(*scenario->kv_bytes_per_token, 131'072.0);
}

TEST(Draft, TakesNoPartInTheStepsOfTheModel) {
    predict::Setup setup = with_draft();
    const predict::Report guessed = predict::predict(*predict::realise(setup));
    setup.draft.reset();
    const predict::Report alone = predict::predict(*predict::realise(setup));
    for (std::size_t stage = 0; stage < alone.stages.size(); ++stage) {
        EXPECT_EQ(guessed.stages[stage].times.expected.value, alone.stages[stage].times.expected.value);
        EXPECT_EQ(guessed.stages[stage].totals.memory_bytes, alone.stages[stage].totals.memory_bytes);
    }
}

TEST(Draft, AnEnginesPoolIsSmallerByItsWeightsAndATokenLargerByItsCache) {
    predict::Setup setup = with_draft();
    predict::MemoryOptions options;
    options.rules = *io::builtin_engine("vllm");
    setup.memory = options;
    const predict::Fit guessed = predict::fit_deployment(*predict::realise(setup));
    setup.draft.reset();
    const predict::Fit alone = predict::fit_deployment(*predict::realise(setup));
    ASSERT_TRUE(guessed.engine && alone.engine);
    EXPECT_NEAR(alone.engine->pool.value - guessed.engine->pool.value, draft_weights, 1.0);
    EXPECT_EQ(guessed.engine->cache.bytes(16.0), 16.0 * (131'072.0 + draft_token));
    EXPECT_LT(*guessed.largest_batch, *alone.largest_batch);
}

TEST(Draft, IsCutAsTheModelIs) {
    predict::Setup setup = with_draft();
    setup.deployment().tensor = 2.0;
    const predict::Fit half = predict::fit_deployment(*predict::realise(setup));
    // All matrices and the table in halves; the norms (33 of 2,048) whole.
    const double norms = 33.0 * 2048.0 * 2.0;
    EXPECT_EQ(half.draft_weights.value, (draft_weights - norms) / 2.0 + norms);
    EXPECT_EQ(half.draft_kv.value, 4.0 * 1152.0 * draft_token / 2.0);

    setup.deployment() = {.pipeline = 2.0};
    const auto scenario = predict::realise(setup);
    ASSERT_EQ(scenario->stages.size(), 2U);
    // Eight layers of it on either stage, and the table on both: the head reads what the embedding holds elsewhere.
    EXPECT_EQ(scenario->stages[0].lowered.draft_weights, 8.0 * draft_layer + draft_table);
    EXPECT_EQ(scenario->stages[1].lowered.draft_weights, 8.0 * draft_layer + draft_table + 2.0 * 2048.0);

    setup.deployment() = {.pipeline = 17.0};
    const auto refused = predict::realise(setup);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().text.find("the draft model llama-3.2-1b"), std::string::npos) << refused.error().text;
    EXPECT_NE(refused.error().text.find("expected 1 to 16"), std::string::npos) << refused.error().text;
}

TEST(Draft, OtherWaysToFitCountItToo) {
    // 16.06 GB of weights fit 17 GB alone, but not with a draft of 2.47 GB: fp8 for the model makes room.
    predict::Setup setup = with_draft();
    setup.workload.batch = 1.0;
    setup.device.levels[index(Level::memory)]->capacity->value = 17e9;
    const auto scenario = predict::realise(setup);
    EXPECT_FALSE(predict::fit_deployment(*scenario, predict::Advice::left_out).fits);
    for (const predict::Candidate& way : predict::other_ways(setup, *scenario))
        EXPECT_GT(way.lowered.draft_weights, 0.0) << way.change;
    setup.draft.reset();
    EXPECT_TRUE(predict::fit_deployment(*predict::realise(setup)).fits);
}

}  // namespace
}  // namespace roofline::testing
