// A deployment priced as one: pipelines, groups, overlap, offload.
#include "roofline/predict/replica.hpp"

#include <gtest/gtest.h>

#include "model/scenarios.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/predict/setup.hpp"

namespace roofline::predict {
namespace {

using namespace roofline::testing;

Setup setup_of(const Architecture& model, std::string_view device, const model::Deployment& deployment) {
    Setup setup;
    setup.architecture = std::make_shared<const Architecture>(model);
    setup.checkpoint = std::make_shared<const TypePlan>(plan_for(model));
    setup.device = *io::builtin_device(device);
    setup.lowering.deployment = deployment;
    setup.workload.batch = 8;
    return setup;
}

Scenario scenario_of(const Architecture& model, const model::Deployment& deployment) {
    auto scenario = realise(setup_of(model, "h100-sxm", deployment));
    EXPECT_TRUE(scenario.has_value());
    return *scenario;
}

StageTime price(const Scenario& scenario, const Step& step, Pace pace) {
    const Replica replica(scenario);
    std::vector<OperatorTime> times(replica.whole().size());
    return replica.evaluate(step, times, pace);
}

TEST(Replica, OfOneDeviceIsItsPreparedModel) {
    const Scenario scenario = scenario_of(llama_3_8b(), {});
    const Prepared prepared(scenario.lowered, scenario.device);
    std::vector<OperatorTime> times(prepared.size());
    const Step step = model::decode_step(8, 1000);
    const StageTime alone = prepared.evaluate(step, times);
    EXPECT_EQ(price(scenario, step, Pace::steady).expected, alone.expected);
    EXPECT_EQ(price(scenario, step, Pace::alone).limit, alone.limit);
}

TEST(Replica, APipelineDoesNotSpeedUpOneSequence) {
    const Step one = model::decode_step(1, 1000);
    const StageTime alone = price(scenario_of(llama_3_8b(), {}), one, Pace::steady);
    const StageTime four = price(scenario_of(llama_3_8b(), {.pipeline = 4}), one, Pace::steady);
    EXPECT_GE(four.expected, alone.expected);
    EXPECT_GE(four.limit, alone.limit);
}

TEST(Replica, APipelineRaisesThroughput) {
    // 64 sequences on one device, or in 4 micro-batches of 16 on four: the weights of a stage are a quarter.
    const StageTime alone = price(scenario_of(llama_3_8b(), {}), model::decode_step(64, 1000), Pace::steady);
    const StageTime four =
        price(scenario_of(llama_3_8b(), {.pipeline = 4}), model::decode_step(256, 1000), Pace::steady);
    EXPECT_GT(256 / four.expected, 2 * 64 / alone.expected);
}

TEST(Replica, FillingAPipelineTakesItsBubbles) {
    // m micro-batches through p equal stages of t: (p + m - 1) t alone, m t in a steady flow (m = p = 2).
    const Scenario two = scenario_of(llama_3_8b(), {.pipeline = 2});
    const Replica replica(two);
    std::vector<OperatorTime> times(replica.whole().size());
    const Step step = model::prefill_step(2, 512);
    const PipelineTime one = replica.micro_batch(replica.on_device(step), times);
    EXPECT_EQ(replica.micro_batches(step), 2.0);
    EXPECT_DOUBLE_EQ(replica.evaluate(step, times, Pace::alone).expected, one.pass.expected + one.interval.expected);
    EXPECT_DOUBLE_EQ(replica.evaluate(step, times, Pace::steady).expected,
                     std::max(one.pass.expected, 2 * one.interval.expected));
    EXPECT_LT(one.interval.expected, one.pass.expected);
}

TEST(Replica, GroupsShareTheSequences) {
    const Scenario four = scenario_of(mixtral_8x7b(), {.groups = 4, .experts = 4});
    const Replica replica(four);
    EXPECT_EQ(replica.on_device(model::decode_step(64, 100)).front().count, 16.0);
    EXPECT_EQ(replica.on_device(model::decode_step(2, 100)).front().count, 1.0);
}

TEST(Replica, HiddenCommunicationCostsNothingOnceItIsTheShorter) {
    const Step step = model::decode_step(16, 1000);
    const StageTime shown = price(scenario_of(llama_3_8b(), {.tensor = 4}), step, Pace::steady);
    const StageTime hidden = price(scenario_of(llama_3_8b(), {.tensor = 4, .overlap = 1.0}), step, Pace::steady);
    EXPECT_LT(hidden.expected, shown.expected);
    EXPECT_LE(hidden.limit, hidden.attainable);
    EXPECT_LE(hidden.attainable, hidden.expected);
    EXPECT_GT(shown.communicating, 0.0);
}

TEST(Replica, WeightsInHostMemoryCrossItsLinkInEveryStep) {
    // Half of the layers' weights of Llama 3 8B: 32 layers x 436,215,808 B / 2 over 64 GB/s.
    const double layer = 2.0 * (4096.0 * 6144 + 4096.0 * 4096 + 3 * 4096.0 * 14336 + 2 * 4096);
    const Scenario half = scenario_of(llama_3_8b(), {.host_weights = 0.5});
    const StageTime stage = price(half, model::decode_step(1, 1000), Pace::steady);
    EXPECT_NEAR(stage.limit, (32 * layer + 4096 * 2) / 2 / 64e9, 1e-9);
    EXPECT_EQ(stage.bound, Bound::link);
    EXPECT_LE(stage.limit, stage.attainable);
    EXPECT_LE(stage.attainable, stage.expected);
    // What crosses the link is what the device does not hold; embedding and head stay.
    EXPECT_NEAR(fit_deployment(half).weights.value,
                fit_deployment(scenario_of(llama_3_8b(), {})).weights.value - (32 * layer + 4096 * 2) / 2, 1.0);
}

TEST(Replica, TimesKeepTheirOrderUnderEveryDeployment) {
    for (const char* name : {"llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b", "gpt-oss-120b"}) {
        const auto file = io::builtin_model(name);
        ASSERT_TRUE(file.has_value());
        for (const model::Deployment& deployment :
             {model::Deployment{.tensor = 4}, model::Deployment{.groups = 8, .experts = 8},
              model::Deployment{.tensor = 2, .pipeline = 4}, model::Deployment{.tensor = 2, .context = 2},
              model::Deployment{.tensor = 8, .node = 4},
              model::Deployment{.groups = 8, .experts = 8, .two_batches = true},
              model::Deployment{.tensor = 4, .sequence_parallel = true, .overlap = 0.5}}) {
            auto setup = setup_of(file->architecture, "h200-sxm", deployment);
            setup.checkpoint = std::make_shared<const TypePlan>(file->types);
            const auto scenario = realise(setup);
            if (!scenario) continue;
            const Replica replica(*scenario);
            std::vector<OperatorTime> times(replica.whole().size());
            for (const Step& step : {model::decode_step(1, 100), model::decode_step(64, 5000),
                                     model::prefill_step(2, 3000), model::mixed_step(32, 1000, 512, 0, false)}) {
                for (const Pace pace : {Pace::alone, Pace::steady}) {
                    const StageTime stage = replica.evaluate(step, times, pace);
                    EXPECT_GT(stage.limit, 0.0);
                    EXPECT_LE(stage.limit, stage.attainable) << name << " " << describe(deployment);
                    EXPECT_LE(stage.attainable, stage.expected) << name << " " << describe(deployment);
                    EXPECT_LE(stage.expected_low, stage.expected) << name;
                    EXPECT_GE(stage.expected_high, stage.expected) << name;
                    for (const OperatorTime& time : times) EXPECT_LE(time.limit, time.attainable);
                }
            }
        }
    }
}

TEST(Replica, MoreTensorRanksNeverLowerTheBoundOnThroughput) {
    for (const double batch : {1.0, 64.0, 512.0}) {
        double last = 0.0;
        for (const double tensor : {1.0, 2.0, 4.0, 8.0}) {
            const StageTime stage =
                price(scenario_of(llama_3_8b(), {.tensor = tensor}), model::decode_step(batch, 2000), Pace::steady);
            EXPECT_GE(batch / stage.limit, last) << tensor;
            last = batch / stage.limit;
        }
    }
}

}  // namespace
}  // namespace roofline::predict
