// A deployment behind the scheduler's interface.
#include "roofline/serving/deployed.hpp"

#include <gtest/gtest.h>

#include "model/scenarios.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/predict/setup.hpp"

namespace roofline::serving {
namespace {

TEST(Deployed, AStepWithNobodyInItCostsNothing) {
    predict::Setup asked;
    const model::Architecture model = testing::llama_3_8b();
    asked.architecture = std::make_shared<const model::Architecture>(model);
    asked.checkpoint = std::make_shared<const model::TypePlan>(testing::plan_for(model));
    asked.device = *io::builtin_device("h100-sxm");
    asked.lowering.deployment.tensor = 2.0;  // collectives look at the sequences of a step
    const auto scenario = predict::realise(asked);
    ASSERT_TRUE(scenario.has_value());
    const Deployed deployed(*scenario, Price::expected);
    EXPECT_EQ(deployed.price({}).latency, 0.0);
    EXPECT_EQ(deployed.price({}).flops, 0.0);
    EXPECT_GT(deployed.price(model::decode_step(1, 100)).latency, 0.0);
}

}  // namespace
}  // namespace roofline::serving
