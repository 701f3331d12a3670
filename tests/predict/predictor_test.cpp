// Layers that predict further tokens (F49): counted in memory and time where they guess, and nowhere else.
#include "roofline/model/predictor.hpp"

#include <gtest/gtest.h>

#include "decide/questions.hpp"
#include "roofline/predict/setup.hpp"

namespace roofline::testing {
namespace {

double parameters_of_module(const std::string& model) {
    const auto file = io::builtin_model(model);
    EXPECT_TRUE(file) << model;
    const auto module = model::predictor_of(file->architecture);
    EXPECT_TRUE(module) << model;
    const auto types = model::predictor_types(file->architecture, file->types);
    return model::count_parameters(model::lower(*module, types)).total;
}

predict::Setup guessing(const std::string& model, const std::string& device = "h200-sxm") {
    predict::Setup setup = question(model, device).setup;
    const auto own = predict::own_draft(setup);
    EXPECT_TRUE(own) << own.error().text;
    setup.draft = *own;
    return setup;
}

// DeepSeek V3's module: MLA 7168 x 1536 + 1536 x 24576 + 7168 x 576 + 512 x 32768 + 16384 x 7168 + norms 2048
// = 187,107,328; 257 experts of 3 x 7168 x 2048 = 11,318,329,344; router 256 x 7168 + 256 = 1,835,264; two norms
// 14,336; joining 14336 x 7168 = 102,760,448; three norms 21,504.
constexpr double deepseek_module = 11'610'068'224.0;

TEST(Predictor, HasThePublishedParametersOfDeepSeekV3) {
    EXPECT_EQ(parameters_of_module("deepseek-v3"), deepseek_module);
    // "11.5B unique parameters, excluding the shared 0.9B embedding and 0.9B output head" (README_WEIGHTS.md). With its
    // copies of both, the checkpoint has the 685B that its card shows.
    EXPECT_NEAR(deepseek_module / 11.5e9, 1.0, 0.01);
    EXPECT_NEAR((671'026'419'200.0 + deepseek_module + 2.0 * 129'280.0 * 7168.0) / 685e9, 1.0, 0.001);
}

TEST(Predictor, IsWhatTwoCheckpointsOfQwen3NextDifferBy) {
    // Safetensors totals with the module (Qwen3-Next 80B-A3B) and without (Qwen3-Coder-Next, the same shapes).
    EXPECT_EQ(parameters_of_module("qwen3-next-80b-a3b"), 81'324'862'720.0 - 79'674'391'296.0);
}

TEST(Predictor, OfNemotronIsAnAttentionLayerAndAnExpertLayer) {
    const auto file = io::builtin_model("nemotron-3-super-120b-a12b");
    ASSERT_TRUE(file);
    const auto module = model::predictor_of(file->architecture);
    ASSERT_TRUE(module);
    ASSERT_EQ(module->layers.size(), 2U);
    EXPECT_EQ(module->kinds[static_cast<std::size_t>(module->layers[0])].label, "attention");
    EXPECT_EQ(module->kinds[static_cast<std::size_t>(module->layers[1])].label, "moe");
}

TEST(Predictor, OfDeepSeekV4HasAWindowAsItsListOfRatiosSays) {
    const auto file = io::builtin_model("deepseek-v4-flash-fp8");
    ASSERT_TRUE(file);
    const auto module = model::predictor_of(file->architecture);
    ASSERT_TRUE(module);
    EXPECT_EQ(file->architecture.layers.size(), 43U);
    EXPECT_EQ(module->kinds[static_cast<std::size_t>(module->layers[0])].label, "window");
}

TEST(Predictor, ModulesThatAListLeavesOutStayPlain) {
    // "mtp.layers.0*" is among the modules that the 4-bit checkpoint of Qwen3.5 does not quantise.
    const auto file = io::builtin_model("qwen3.5-397b-a17b-nvfp4");
    ASSERT_TRUE(file);
    const auto types = model::predictor_types(file->architecture, file->types);
    EXPECT_EQ(types.of(0, model::Role::expert_down).format.name, "bf16");
    EXPECT_EQ(file->types.of(59, model::Role::expert_down).format.name, "nvfp4");
    const auto deepseek = io::builtin_model("deepseek-v3");
    EXPECT_EQ(
        model::predictor_types(deepseek->architecture, deepseek->types).of(0, model::Role::expert_down).format.name,
        "fp8_block");
}

TEST(Predictor, CountsInTheFitOnlyWhereItGuesses) {
    predict::Setup setup = guessing("deepseek-v3");
    setup.deployment().tensor = 8.0;
    setup.workload.batch = 4.0;
    setup.workload.prompt = 1024.0;
    setup.workload.generate = 128.0;
    const predict::Fit with = predict::fit_deployment(*predict::realise(setup));
    // Of one device of eight. In 8 bits and a scale for 128 x 128: what is cut, an eighth of 37,748,736 + 16,777,216 +
    // 117,440,512 + 11,318,329,344, and what is not, 11,010,048 + 4,128,768. In 16: router, joining, norms 104,633,600.
    const double in_8_bits = 11'490'295'808.0 / 8.0 + 15'138'816.0;
    EXPECT_NEAR(with.draft_weights.value, in_8_bits * (1.0 + 4.0 / 16384.0) + 2.0 * 104'633'600.0, 1e5);
    // One MLA layer: 576 x 2 B a token, on every device.
    EXPECT_EQ(with.draft_kv.value, 4.0 * 1152.0 * 1152.0);
    setup.draft.reset();
    const predict::Fit without = predict::fit_deployment(*predict::realise(setup));
    EXPECT_EQ(without.draft_weights.value, 0.0);
    EXPECT_EQ(with.weights.value - without.weights.value, with.draft_weights.value);
}

TEST(Predictor, AGuessReadsOneLayerTheJoiningAndTheHead) {
    const predict::Setup setup = guessing("deepseek-v3");
    const auto scenario = predict::realise(predict::draft_of(setup));
    ASSERT_TRUE(scenario) << scenario.error().text;
    const predict::Replica replica(*scenario);
    std::vector<predict::OperatorTime> times(replica.whole().size());
    const double found = replica.evaluate(model::decode_step(1.0, 1024.0), times, predict::Pace::alone).limit;
    // 187.1 M of attention and 9 experts of 44.04 M in 8 bits; router, joining and 926.7 M of the head in 16; 1,152 B
    // of each of 1,024 tokens: 2.646 GB at 4.8 TB/s.
    const double bytes = (187.1e6 + 9.0 * 44.04e6) + 2.0 * (1.8e6 + 102.8e6 + 926.7e6) + 1.2e6;
    EXPECT_NEAR(found / (bytes / 4.8e12), 1.0, 0.005);
}

TEST(Predictor, LiesOnTheLastStageOfAPipelineWithATableOfItsOwn) {
    predict::Setup setup = guessing("mimo-7b");
    setup.deployment().pipeline = 4.0;
    const auto scenario = predict::realise(setup);
    ASSERT_TRUE(scenario) << scenario.error().text;
    // MiMo 7B: a layer of 4096 x 6144 + 6144 + 4096 x 4096 + 3 x 4096 x 11008 + 8192, joining 8192 x 4096, three norms
    // 12,288, and the table of 151,680 x 4096, all in bf16.
    const double layer = 4096.0 * 6144.0 + 6144.0 + 4096.0 * 4096.0 + 3.0 * 4096.0 * 11008.0 + 8192.0;
    const double module = layer + 8192.0 * 4096.0 + 12'288.0 + 151'680.0 * 4096.0;
    double seated = 0.0;
    for (const predict::PipelineStage& stage : scenario->stages) seated += stage.count * stage.lowered.draft_weights;
    EXPECT_EQ(seated, 2.0 * module);
    EXPECT_EQ(scenario->stages.back().lowered.draft_weights, 2.0 * module);
}

TEST(Predictor, OfAModelWithoutOneIsRefused) {
    const auto own = predict::own_draft(question("llama-3.1-8b", "h100-sxm").setup);
    ASSERT_FALSE(own);
    EXPECT_EQ(own.error().text, "llama-3.1-8b has no layers that predict further tokens (MTP)");
    // MiniMax names modules that its published checkpoints do not hold.
    EXPECT_FALSE(predict::own_draft(question("minimax-m2.5", "h100-sxm").setup));
}

}  // namespace
}  // namespace roofline::testing
