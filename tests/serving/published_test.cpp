// Published rates of TensorRT-LLM at full load, 1,000 tokens in and 1,000 out, weights and cache in FP8: within a
// fifth.
#include <gtest/gtest.h>

#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/engine_file.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/predict/setup.hpp"
#include "roofline/serving/traffic.hpp"

namespace roofline::serving {
namespace {

struct Published {
    const char* model;
    const char* device;
    double tensor;
    double tokens_per_second;
};

class PublishedRates : public ::testing::TestWithParam<Published> {};

TEST_P(PublishedRates, AreMetWithinAFifth) {
    const Published& row = GetParam();
    auto file = io::builtin_model(row.model);
    ASSERT_TRUE(file.has_value());
    predict::Setup asked;
    asked.architecture = std::make_shared<const model::Architecture>(file->architecture);
    asked.checkpoint = std::make_shared<const model::TypePlan>(file->types);
    asked.types = {find_format("fp8"), find_format("fp8"), find_format("fp8")};
    asked.device = *io::builtin_device(row.device);
    asked.deployment().tensor = row.tensor;
    asked.memory.emplace().rules = *io::builtin_engine("trtllm");
    asked.memory->longest = 2000;
    asked.execution.profile = *io::builtin_profile("engine", asked.device);
    asked.execution.calibration = std::make_shared<const predict::Calibration>(*io::builtin_calibration(asked.device));
    const auto scenario = predict::realise(asked);
    ASSERT_TRUE(scenario.has_value());
    Traffic traffic;
    traffic.mix.prompt = Lengths::fixed(1000);
    traffic.mix.output = Lengths::fixed(1000);
    traffic.policy.admission = Admission::reserving;
    const auto found = answer(*scenario, traffic);
    ASSERT_TRUE(found.has_value());
    EXPECT_NEAR(found->metrics.output_tokens_per_second / row.tokens_per_second, 1.0, 0.2);
    // The order of the three times holds for rates too.
    EXPECT_GE(found->limit.flow.output_tokens, found->attainable.flow.output_tokens);
    EXPECT_GE(found->attainable.flow.output_tokens, found->expected.flow.output_tokens);
}

// NVIDIA's performance pages of TensorRT-LLM (0.17 and 1.0).
INSTANTIATE_TEST_SUITE_P(
    TensorRtLlm, PublishedRates,
    ::testing::Values(Published{"llama-3.1-8b", "h100-sxm", 1, 15220}, Published{"llama-3.1-70b", "h200-sxm", 2, 5165},
                      Published{"llama-3.1-70b", "h200-sxm", 4, 8911}, Published{"llama-3.1-70b", "h200-sxm", 8, 13181},
                      Published{"llama-3.1-405b", "h200-sxm", 8, 3330}),
    [](const auto& row) {
        std::string name = std::string(row.param.model) + "_tp" + std::to_string(static_cast<int>(row.param.tensor));
        for (char& c : name) {
            if (c == '-' || c == '.') c = '_';
        }
        return name;
    });

}  // namespace
}  // namespace roofline::serving
