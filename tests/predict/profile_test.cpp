// What a profile does to an operator: which rule counts, what launches cost, what rides along.
#include "roofline/predict/profile.hpp"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/devices.hpp"
#include "model/scenarios.hpp"
#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/predict/prepared.hpp"

namespace roofline::predict {
namespace {

using namespace testing;
using Rule = Profile::Rule;

Profile profile_with(std::vector<Rule> rules) {
    Profile profile;
    profile.rules = std::move(rules);
    return profile;
}

// ---- which rule

TEST(RuleFor, TwoLastPartsOfANameBeforeTheLastBeforeTheKind) {
    const Rule by_kind = {"elementwise", "", 1.0, 1.0};
    const Rule by_last = {"residual", "", 2.0, 1.0};
    const Rule by_two = {"attention.residual", "", 3.0, 1.0};
    const auto launches = [](const std::vector<Rule>& rules, std::string_view name) {
        return profile_with(rules).rule_for(name, Kind::elementwise, "decode").launches;
    };
    // Whatever order they are in.
    for (const std::vector<Rule>& rules : {std::vector<Rule>{by_kind, by_last, by_two}, {by_two, by_last, by_kind}}) {
        EXPECT_EQ(launches(rules, "layers.attention.residual"), 3.0);
        EXPECT_EQ(launches(rules, "attention.residual"), 3.0);
        EXPECT_EQ(launches(rules, "layers.ffn.residual"), 2.0);
        EXPECT_EQ(launches(rules, "residual"), 2.0);
        EXPECT_EQ(launches(rules, "layers.ffn.activation"), 1.0);
        EXPECT_EQ(launches(rules, "layers.attention.residual.more"), 1.0);
    }
}

TEST(RuleFor, PartsAreWhole) {
    const Profile profile = profile_with({{"norm", "", 5.0, 1.0}});
    EXPECT_EQ(profile.rule_for("layers.attention.qk_norm", Kind::elementwise, "decode").launches, 1.0);
    EXPECT_EQ(profile.rule_for("layers.norm.apply", Kind::elementwise, "decode").launches, 1.0);
    EXPECT_EQ(profile.rule_for("layers.attention.norm", Kind::elementwise, "decode").launches, 5.0);
}

TEST(RuleFor, BindsToAStage) {
    const Profile profile = profile_with({{"kv_write", "prefill", 0.0, 0.0}, {"kv_write", "decode", 2.0, 1.0}});
    EXPECT_EQ(profile.rule_for("layers.attention.kv_write", Kind::copy, "prefill").launches, 0.0);
    EXPECT_EQ(profile.rule_for("layers.attention.kv_write", Kind::copy, "decode").launches, 2.0);
    const Profile decode_only = profile_with({{"kv_write", "decode", 2.0, 1.0}});
    EXPECT_EQ(decode_only.rule_for("layers.attention.kv_write", Kind::copy, "prefill").launches, 1.0);
}

TEST(RuleFor, AStagesOwnRuleBeforeOneForBoth) {
    // As a file gives them, "kv_write" comes before "kv_write@decode".
    const Profile profile = profile_with({{"kv_write", "", 1.5, 1.0}, {"kv_write", "decode", 2.0, 1.0}});
    EXPECT_EQ(profile.rule_for("layers.attention.kv_write", Kind::copy, "decode").launches, 2.0);
    EXPECT_EQ(profile.rule_for("layers.attention.kv_write", Kind::copy, "prefill").launches, 1.5);
}

TEST(RuleFor, WhatIsNotNamedIsOneKernelThatMovesWhatItMust) {
    const Rule rule = Profile{}.rule_for("layers.attention.qkv", Kind::gemm, "decode");
    EXPECT_EQ(rule.launches, 1.0);
    EXPECT_EQ(rule.traffic, 1.0);
}

TEST(RuleFor, TheStyleOfAnOperatorIsTheMostExactName) {
    const Profile profile = profile_with({{"norm", "", 8.0, 9.0}, {"layer_norm", "", 1.0, 1.0}});
    EXPECT_EQ(profile.rule_for("layers.ffn.norm", Kind::norm, "decode").launches, 8.0);
    EXPECT_EQ(profile.rule_for("layers.ffn.norm", Kind::norm, "decode", "layer_norm").launches, 1.0);
    EXPECT_EQ(profile.rule_for("layers.ffn.norm", Kind::norm, "decode", "of another kind").launches, 8.0);
}

// ---- what it costs

/// One element-wise operator on a machine of which only the bandwidth is known: its time is the start-up and its bytes
/// at 0.8 of the bandwidth, the constants' start values.
Manner streaming(double launches, double traffic) {
    Manner manner;
    manner.decode.kernel_class = manner.prefill.kernel_class = kernel_class("elementwise");
    for (std::size_t i = 0; i < manner.decode.kernel_class->constants.size(); ++i)
        manner.decode.constants[i] = manner.prefill.constants[i] = manner.decode.kernel_class->constants[i].start;
    manner.machine.bandwidth = 1e9;
    manner.decode_rule = manner.prefill_rule = {"x", "", launches, traffic};
    return manner;
}

Kernel four_megabytes() {
    Kernel kernel;
    kernel.input_bytes = 2e6;
    kernel.output_bytes = 1e6;
    kernel.weight_bytes = 1e6;
    return kernel;
}

constexpr double startup = 2.5e-6;

TEST(Manner, OneLaunchByHand) {
    // 4 MB at 0.8 GB/s: 5 ms.
    EXPECT_NEAR(streaming(1.0, 1.0).seconds(four_megabytes(), model::Phase::decode), 5e-3 + startup, 1e-12);
}

TEST(Manner, SplittingIntoLaunchesAddsStartUpsAndNoBytes) {
    for (const double launches : {1.5, 2.0, 3.0, 10.0}) {
        EXPECT_NEAR(streaming(launches, 1.0).seconds(four_megabytes(), model::Phase::decode), 5e-3 + launches * startup,
                    1e-12);
    }
}

TEST(Manner, TrafficMultipliesTheBytes) {
    EXPECT_NEAR(streaming(1.0, 2.5).seconds(four_megabytes(), model::Phase::decode), 12.5e-3 + startup, 1e-12);
    EXPECT_NEAR(streaming(4.0, 2.5).seconds(four_megabytes(), model::Phase::decode), 12.5e-3 + 4.0 * startup, 1e-12);
}

TEST(Manner, ACacheThatIsCopiedCostsItsBytesAndOnlyThere) {
    Kernel kernel = four_megabytes();
    kernel.held_bytes = 100e6;
    EXPECT_NEAR(streaming(1.0, 1.0).seconds(kernel, model::Phase::decode), 5e-3 + startup, 1e-12);
    Manner copies = streaming(2.0, 0.0);
    copies.decode_rule.cache = 2.0;  // read and written: 200 MB at 0.8 GB/s
    EXPECT_NEAR(copies.seconds(kernel, model::Phase::decode), 250e-3 + 2.0 * startup, 1e-12);
    EXPECT_NEAR(copies.seconds(kernel, model::Phase::prefill), 2.0 * startup, 1e-12);
    EXPECT_EQ(copies.share(kernel, model::Phase::decode).weight_bytes, 100e6);
    EXPECT_EQ(copies.share(kernel, model::Phase::decode).held_bytes, 0.0) << "nothing is counted twice";
}

TEST(Manner, APaceSlowsWhatMultiprocessorsMoveAndNotMemory) {
    // 4 MB by ten multiprocessors of 35 GB/s: 11.43 us; memory alone would take 5 ms at 0.8 GB/s, 5 us at 800 GB/s.
    Manner manner = streaming(1.0, 1.0);
    manner.machine.units = 10.0;
    manner.machine.bandwidth = 1e12;
    manner.decode_rule.pace = 3.0;
    EXPECT_NEAR(manner.seconds(four_megabytes(), model::Phase::decode), 3.0 * 4e6 / 350e9 + startup, 1e-12);
    EXPECT_NEAR(manner.seconds(four_megabytes(), model::Phase::prefill), 4e6 / 350e9 + startup, 1e-12);
    manner.machine.bandwidth = 1e9;
    EXPECT_NEAR(manner.seconds(four_megabytes(), model::Phase::decode), 5e-3 + startup, 1e-12);
}

TEST(Manner, WhatRidesAlongCostsOnlyItsBytes) {
    EXPECT_NEAR(streaming(0.0, 1.0).seconds(four_megabytes(), model::Phase::decode), 5e-3, 1e-12);
    EXPECT_NEAR(streaming(0.0, 0.5).seconds(four_megabytes(), model::Phase::decode), 2.5e-3, 1e-12);
    EXPECT_EQ(streaming(0.0, 0.0).seconds(four_megabytes(), model::Phase::decode), 0.0);
}

TEST(Manner, WhatRidesAlongCostsOnlyItsBytesUnderEveryClass) {
    // Without bytes and flops nothing is left of it, however many tokens there are.
    for (const KernelClass* known : kernel_classes()) {
        Manner manner = streaming(0.0, 0.0);
        manner.decode.kernel_class = manner.prefill.kernel_class = known;
        for (std::size_t i = 0; i < known->constants.size(); ++i)
            manner.decode.constants[i] = manner.prefill.constants[i] = known->constants[i].start;
        for (const double tokens : {1.0, 64.0}) {
            Kernel kernel = four_megabytes();
            kernel.tokens = tokens;
            EXPECT_EQ(manner.seconds(kernel, model::Phase::decode), 0.0) << known->name << ", " << tokens << " tokens";
        }
    }
}

TEST(Manner, AProductSplitsItsColumns) {
    Kernel qkv;
    qkv.pattern = Pattern::product;
    qkv.rows = 16.0;
    qkv.inner = 4096.0;
    qkv.cols = 6144.0;
    qkv.flops = 2.0 * 16 * 4096 * 6144;
    qkv.weight_bytes = 2.0 * 4096 * 6144;
    const Kernel one = streaming(3.0, 1.0).share(qkv, model::Phase::decode);
    EXPECT_EQ(one.cols, 2048.0);
    EXPECT_EQ(one.rows, 16.0);
    EXPECT_EQ(one.inner, 4096.0);
    EXPECT_EQ(one.flops, 2.0 * 16 * 4096 * 2048);
    EXPECT_EQ(one.weight_bytes, 2.0 * 4096 * 2048);
}

TEST(Manner, APhaseFollowsItsOwnRule) {
    Manner manner = streaming(1.0, 1.0);
    manner.prefill_rule.launches = 3.0;
    EXPECT_NEAR(manner.seconds(four_megabytes(), model::Phase::prefill), 5e-3 + 3.0 * startup, 1e-12);
    EXPECT_NEAR(manner.seconds(four_megabytes(), model::Phase::decode), 5e-3 + startup, 1e-12);
}

// ---- a whole step

double decode_seconds(const Lowered& lowered, const Device& device, const Profile& profile, double batch,
                      double context) {
    Execution execution;
    execution.profile = profile;
    const Prepared prepared(lowered, device, execution);
    std::vector<OperatorTime> times(prepared.size());
    return prepared.evaluate(model::decode_step(batch, context), times).expected;
}

TEST(Profile, MoreLaunchesNeverMakeAStepFaster) {
    const Lowered model = lowered(llama_3_8b());
    const double before = decode_seconds(model, h100(), Profile{}, 1, 512);
    for (const std::string_view op : {"qkv", "core", "gate_up", "norm", "elementwise"}) {
        EXPECT_GT(decode_seconds(model, h100(), profile_with({{std::string(op), "", 3.0, 1.0}}), 1, 512), before) << op;
        EXPECT_GT(decode_seconds(model, h100(), profile_with({{std::string(op), "", 1.0, 3.0}}), 1, 512), before) << op;
    }
    EXPECT_LT(decode_seconds(model, h100(), profile_with({{"residual", "", 0.0, 1.0}}), 1, 512), before);
}

TEST(Profile, CountsTheLaunchesOfAStep) {
    const Lowered model = lowered(llama_3_8b());
    const auto launches = [&](const Profile& profile) {
        Execution execution;
        execution.profile = profile;
        const Prepared prepared(model, h100(), execution);
        std::vector<OperatorTime> times(prepared.size());
        return prepared.evaluate(model::decode_step(1, 512), times).launches;
    };
    const double before = launches(Profile{});
    EXPECT_EQ(launches(profile_with({{"qkv", "", 3.0, 1.0}})), before + 2.0 * 32);  // two more in each of 32 layers
    EXPECT_EQ(launches(profile_with({{"core", "", 0.0, 1.0}})), before - 32);
}

TEST(Profile, EagerIsNeverFasterThanAnEngineForSmallDecodes) {
    const auto engine = io::builtin_profile("engine");
    const auto eager = io::builtin_profile("eager");
    ASSERT_TRUE(engine && eager);
    for (const std::string_view model_name : {"llama-3.1-8b", "qwen3-0.6b", "mixtral-8x7b", "gpt2", "qwen3-30b-a3b"}) {
        const auto file = io::builtin_model(model_name);
        ASSERT_TRUE(file.has_value()) << file.error().text;
        const Lowered model = model::lower(file->architecture, file->types);
        for (const std::string_view device_name : {"h200-sxm", "h100-sxm", "a100-sxm-80gb", "l40s", "mi300x"}) {
            const auto device = io::builtin_device(device_name);
            ASSERT_TRUE(device.has_value()) << device.error().text;
            auto known = io::builtin_calibration(*device);
            ASSERT_TRUE(known.has_value()) << known.error().text;
            Execution execution;
            execution.calibration = std::make_shared<const Calibration>(std::move(*known));
            for (const double batch : {1.0, 4.0, 16.0}) {
                const auto seconds = [&](const Profile& profile) {
                    execution.profile = profile;
                    const Prepared prepared(model, *device, execution);
                    std::vector<OperatorTime> times(prepared.size());
                    return prepared.evaluate(model::decode_step(batch, 512), times).expected;
                };
                EXPECT_GE(seconds(*eager), seconds(*engine)) << model_name << " on " << device_name << ", " << batch;
            }
        }
    }
}

}  // namespace
}  // namespace roofline::predict
