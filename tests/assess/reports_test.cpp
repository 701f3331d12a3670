// Reports of `bench` and `analyze`, and device files of `measure`, as measured rows.
#include "roofline/assess/reports.hpp"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "roofline/assess/calibrate.hpp"
#include "roofline/assess/expect.hpp"
#include "roofline/io/account_json.hpp"
#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/device_file.hpp"

namespace roofline::assess {
namespace {

using io::OrderedJson;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Record record(std::string name, double count, double measured, double expected) {
    Record result;
    result.name = std::move(name);
    result.count = count;
    result.times.limit = Seconds(expected / 2.0);
    result.times.attainable = Seconds(expected / 1.5);
    result.times.expected = Seconds(expected);
    result.times.expected_low = Seconds(0.9 * expected);
    result.times.expected_high = Seconds(1.1 * expected);
    result.times.measured = Seconds(measured);
    return result;
}

/// One decode step of eight sequences on an H100.
Account account(const std::string& model) {
    Account result;
    result.title = model + " on h100-sxm";
    result.verb = "bench";
    result.device = *io::builtin_device("h100-sxm");
    result.model = model;
    AccountStage& stage = result.stages.emplace_back();
    stage.name = "decode";
    stage.batch = stage.tokens = 8.0;
    stage.context = 1024.0;
    stage.times = record("", 1.0, 7e-3, 7.5e-3).times;
    stage.records = {record("layers.attention.qkv", 32.0, 32 * 20e-6, 32 * 22e-6),
                     record("layers.attention.core", 32.0, 32 * 30e-6, 32 * 25e-6),
                     record("layers.attention.norm", 32.0, 32 * 2e-6, 32 * 2.2e-6)};
    return result;
}

OrderedJson json_of(const Account& account) {
    return io::account_json(account, {.command = "roofline bench", .time = "2026-11-15T16:04:21Z"});
}

OrderedJson with_backends(const Account& account) {
    OrderedJson json = json_of(account);
    json["bench"]["stages"] = {
        {{"stage", "decode"},
         {"dtype", "bf16"},
         {"steps",
          {{{"backend", "cublaslt"}, {"launch", "graph"}, {"time_s", 7e-3}},
           {{"backend", "own"}, {"launch", "eager"}, {"time_s", 8e-3}},
           {{"backend", "cudnn"}, {"problem", "out of memory"}}}},
         {"results",
          {{{"name", "layers.attention.qkv"}, {"backend", "cublaslt"}, {"time_s", 20e-6}},
           {{"name", "layers.attention.qkv"}, {"backend", "own"}, {"time_s", 19e-6}},
           {{"name", "layers.attention.core"}, {"backend", "cudnn"}, {"time_s", 30e-6}},
           {{"name", "layers.attention.norm"}, {"backend", "own"}, {"time_s", 2e-6}},
           {{"name", "layers.attention.norm"}, {"backend", "cudnn"}, {"problem", "cuDNN has no such operator"}}}}}};
    return json;
}

Measurements read(const OrderedJson& json) {
    Measurements measured;
    const auto done = read_measured(json.dump(), "report.json", measured);
    EXPECT_TRUE(done.has_value()) << (done ? "" : done.error().text);
    return measured;
}

std::string problem_of(const OrderedJson& json) {
    Measurements measured;
    const auto done = read_measured(json.dump(), "report.json", measured);
    EXPECT_FALSE(done.has_value());
    return done ? "" : done.error().text;
}

TEST(Reports, WhatEachBackendTookBecomesKernelsAndSteps) {
    const Measurements measured = read(with_backends(account("llama-3.1-8b")));
    EXPECT_TRUE(measured.refused.empty());
    ASSERT_EQ(measured.rows.size(), 6U);
    std::vector<std::string> kinds;
    std::vector<std::string> stacks;
    for (const Measurement& row : measured.rows) {
        kinds.push_back(row.kind);
        stacks.push_back(row.stack);
        EXPECT_EQ(row.device->name, "h100-sxm");
        EXPECT_EQ(row.type, "bf16") << row.label;
        EXPECT_GE(row.attainable, row.limit) << row.label;
        EXPECT_GE(row.seconds, row.limit) << row.label;
    }
    EXPECT_THAT(kinds, ElementsAre("step", "step_eager", "gemm", "gemm", "attention_decode", "elementwise:norm"));
    // cuBLAS and cuDNN were timed under PyTorch, where bf16 products are of one library for all.
    EXPECT_THAT(stacks, ElementsAre("cublaslt", "own", "", "own", "cudnn_attention", "own"));
    EXPECT_THAT(measured.notes, ElementsAre(HasSubstr("2 entries have no time")));

    // q, k and v of Llama 3.1 8B: 4,096 to (32 + 8 + 8) x 128 = 6,144, for eight tokens. One of the 32.
    const predict::Kernel& qkv = measured.rows[2].calls.front().kernel;
    EXPECT_EQ(qkv.rows, 8.0);
    EXPECT_EQ(qkv.inner, 4096.0);
    EXPECT_EQ(qkv.cols, 6144.0);
    EXPECT_EQ(qkv.flops, 2.0 * 8.0 * 4096.0 * 6144.0);
    EXPECT_EQ(qkv.weight_bytes, 2.0 * 4096.0 * 6144.0);
    EXPECT_EQ(measured.rows[2].family, "6144x4096") << "left out with the tables' rows of the same shape";
    EXPECT_DOUBLE_EQ(measured.rows[2].limit, 2.0 * 4096.0 * 6144.0 / 3.35e12);
    // Keys and values of one layer: 8 x 1,024 x 8 heads x 2 x 128 x 2 bytes.
    const predict::Kernel& core = measured.rows[4].calls.front().kernel;
    EXPECT_EQ(core.weight_bytes, 8.0 * 1024.0 * 8.0 * 512.0);
    EXPECT_EQ(core.sequences, 8.0);
    EXPECT_EQ(core.keys, 1024.0);
    EXPECT_EQ(measured.rows[4].family, "32/8x128");

    EXPECT_EQ(measured.rows[0].stage, "decode");
    ASSERT_NE(measured.rows[0].step, nullptr);
    EXPECT_EQ(measured.rows[0].step->profile, "bench");
}

TEST(Reports, AStepOfFewerLayersIsNoStepOfTheModel) {
    // `bench --layers 31`: just fast enough to pass for a good step of all 32. Its operators are what they are.
    Account cut = account("llama-3.1-8b");
    for (Record& each : cut.stages[0].records) each.count = 31.0;
    const Measurements measured = read(with_backends(cut));
    ASSERT_EQ(measured.refused.size(), 2U);
    EXPECT_EQ(measured.refused[0].reason, "a step of fewer layers than the model has");
    EXPECT_EQ(measured.rows.size(), 4U);
}

TEST(Reports, WithoutBackendsTheRecordsThemselvesCount) {
    Account traced = account("llama-3.1-8b");
    traced.verb = "analyze";
    traced.stages.front().records.back().times.measured.reset();
    const Measurements measured = read(json_of(traced));
    ASSERT_EQ(measured.rows.size(), 3U) << "the step, and the two operators with a time";
    EXPECT_DOUBLE_EQ(measured.rows[1].seconds, 20e-6) << "of one of the 32";
    EXPECT_EQ(measured.rows[0].step->profile, "engine");
}

TEST(Reports, NumberTypesAreThoseOfTheStage) {
    Account both = account("llama-3.1-8b");
    both.stages.front().name = "decode fp8";
    const Measurements measured = read(json_of(both));
    ASSERT_EQ(measured.rows.size(), 4U);
    EXPECT_EQ(measured.rows[1].type, "fp8");
    EXPECT_EQ(measured.rows[1].calls.front().kernel.weight_bytes, 4096.0 * 6144.0);
    EXPECT_EQ(measured.rows[1].calls.front().type, DType::fp8);
}

TEST(Reports, APromptIsCutIntoItsSequences) {
    Account prompt = account("llama-3.1-8b");
    AccountStage& stage = prompt.stages.front();
    stage.name = "prefill";
    stage.tokens = 8.0 * 1024.0;  // of all eight
    stage.records = {record("layers.attention.core", 32.0, 32 * 900e-6, 32 * 800e-6)};
    stage.times.measured = Seconds(0.3);
    const Measurements measured = read(json_of(prompt));
    ASSERT_EQ(measured.rows.size(), 2U);
    const predict::Kernel& core = measured.rows[1].calls.front().kernel;
    EXPECT_EQ(measured.rows[1].kind, "attention_prefill");
    EXPECT_EQ(core.sequences, 8.0);
    EXPECT_EQ(core.queries, 1024.0);
    // 32 heads, 1,024 x 1,025 / 2 pairs for each of eight prompts, 4 x 128 flop a pair.
    EXPECT_EQ(core.flops, 8.0 * 32.0 * 1024.0 * 1025.0 / 2.0 * 512.0);
}

TEST(Reports, AModelThatIsNotKnownIsTakenAsItsReportExpectedIt) {
    const Measurements measured = read(with_backends(account("nobodys-model")));
    EXPECT_TRUE(measured.refused.empty());
    ASSERT_EQ(measured.rows.size(), 6U);
    const auto calibration = std::make_shared<const predict::Calibration>();
    const Expected step = expect(measured.rows[0], calibration);
    EXPECT_DOUBLE_EQ(step.seconds, 7.5e-3);
    EXPECT_DOUBLE_EQ(step.low, 0.9 * 7.5e-3);
    EXPECT_EQ(step.source, "as the report expected it");
    const Expected qkv = expect(measured.rows[2], calibration);
    EXPECT_DOUBLE_EQ(qkv.seconds, 22e-6) << "of one of the 32";
    EXPECT_DOUBLE_EQ(measured.rows[2].limit, 11e-6);
    EXPECT_TRUE(calibrate(measured.rows).all().empty()) << "nothing to fit a formula to";
}

TEST(Reports, WhatCannotBeUsedIsRefusedByName) {
    OrderedJson json = with_backends(account("llama-3.1-8b"));
    json["bench"]["stages"][0]["results"] = {
        {{"name", "layers.attention.teleport"}, {"backend", "own"}, {"time_s", 20e-6}},
        {{"name", "layers.attention.qkv"}, {"backend", "own"}, {"time_s", 1e-6}}};
    const Measurements measured = read(json);
    ASSERT_EQ(measured.refused.size(), 2U);
    EXPECT_EQ(measured.refused[0].reason, "no such operator in the model");
    EXPECT_EQ(measured.refused[0].kind, "layers.attention.teleport");
    EXPECT_EQ(measured.refused[1].reason, "faster than the limit");

    Account mixed = account("llama-3.1-8b");
    mixed.stages.front().name = "mixed";
    const Measurements several = read(json_of(mixed));
    EXPECT_TRUE(several.rows.empty());
    ASSERT_FALSE(several.refused.empty());
    EXPECT_EQ(several.refused[0].reason, "neither prefill nor decode");
}

TEST(Reports, ADeviceWithoutFiguresIsLookedUpOrRefused) {
    OrderedJson named = json_of(account("llama-3.1-8b"));
    named["device"] = {{"name", "h100-sxm"}};
    EXPECT_EQ(read(named).rows.size(), 4U);
    named["device"] = {{"name", "warp-drive"}};
    const Measurements unknown = read(named);
    EXPECT_TRUE(unknown.rows.empty());
    ASSERT_EQ(unknown.refused.size(), 4U);
    EXPECT_EQ(unknown.refused[0].reason, "nothing is known about the device");
}

TEST(Reports, BadOnesAreNamedWithWhatWasExpected) {
    Account predicted = account("llama-3.1-8b");
    predicted.stages.front().times.measured.reset();
    for (Record& one : predicted.stages.front().records) one.times.measured.reset();
    EXPECT_EQ(problem_of(json_of(predicted)),
              "report.json: found a report without measured times, expected one of bench or analyze");

    OrderedJson fewer = with_backends(account("llama-3.1-8b"));
    fewer["bench"]["stages"].push_back(fewer["bench"]["stages"][0]);
    EXPECT_THAT(problem_of(fewer), HasSubstr("bench.stages: found 2, expected 1"));

    OrderedJson negative = with_backends(account("llama-3.1-8b"));
    negative["bench"]["stages"][0]["results"][0]["time_s"] = -1.0;
    EXPECT_THAT(problem_of(negative), HasSubstr("time_s"));
}

TEST(Reports, ConstantsCanBeFittedToThem) {
    // The same product at many batches, by a backend that nobody has timed: a fit of its own.
    Account many = account("llama-3.1-8b");
    const AccountStage stage = many.stages.front();
    many.stages.clear();
    OrderedJson runs = OrderedJson::array();
    for (const double batch : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0}) {
        AccountStage& one = many.stages.emplace_back(stage);
        one.batch = one.tokens = batch;
        runs.push_back({{"stage", "decode"},
                        {"dtype", "bf16"},
                        {"steps", OrderedJson::array()},
                        {"results", {{{"name", "layers.ffn.gate_up"}, {"backend", "own"}, {"time_s", 90e-6}}}}});
    }
    OrderedJson json = json_of(many);
    json["bench"]["stages"] = runs;
    const Measurements measured = read(json);
    ASSERT_EQ(measured.rows.size(), 9U);
    const predict::Calibration fitted = calibrate(measured.rows);
    const auto all = fitted.all();
    EXPECT_TRUE(std::ranges::any_of(all, [](const predict::Fitted& fit) {
        return fit.stack == "own" && fit.kernel_class->name == "gemm" && fit.scope == predict::Scope::device;
    }));
}

TEST(Ceilings, AreHeldAgainstTheBuiltInOnes) {
    Device device = *io::builtin_device("h200-sxm");
    const double before = device.ceilings.at("matrix.bf16").value;
    device.ceilings.at("matrix.bf16").value = 0.98 * before;
    device.ceilings.at("cache.bandwidth").value *= 1.1;   // no datasheet says what it could be
    device.ceilings.at("memory.bandwidth").value = 6e12;  // beyond the datasheet's 4.8
    device.ceilings["matrix.fp4"] = device.ceilings.at("matrix.bf16");
    const Measurements measured = read(io::write_device(device));
    EXPECT_EQ(measured.rows.size() + measured.refused.size(), device.ceilings.size());
    const auto row = std::ranges::find(measured.rows, "ceiling:matrix.bf16", &Measurement::kind);
    ASSERT_NE(row, measured.rows.end());
    EXPECT_DOUBLE_EQ(row->seconds, 1.0 / (0.98 * before));
    EXPECT_DOUBLE_EQ(row->limit, 1.0 / 989.4e12);
    const Expected expected = expect(*row, std::make_shared<const predict::Calibration>());
    EXPECT_DOUBLE_EQ(expected.seconds, 1.0 / before);
    EXPECT_NEAR(signed_error(*row, expected.seconds), -0.02, 1e-12) << "this machine is slower than we say";
    const auto cache = std::ranges::find(measured.rows, "ceiling:cache.bandwidth", &Measurement::kind);
    ASSERT_NE(cache, measured.rows.end());
    EXPECT_NEAR(signed_error(*cache, cache->attainable), 0.1, 1e-12);
    std::set<std::string> reasons;
    for (const Refusal& refusal : measured.refused) reasons.insert(refusal.kind + ": " + refusal.reason);
    EXPECT_THAT(reasons, ElementsAre("ceiling:matrix.fp4: the built-in device has no such figure",
                                     "ceiling:memory.bandwidth: faster than the limit"));
    EXPECT_TRUE(calibrate(measured.rows).all().empty()) << "no constant is fitted to a ceiling";
}

TEST(Ceilings, OfADeviceNobodyKnowsAreRefused) {
    Device device = *io::builtin_device("h200-sxm");
    device.name = "warp-drive";
    device.aliases.clear();
    const Measurements measured = read(io::write_device(device));
    EXPECT_TRUE(measured.rows.empty());
    ASSERT_FALSE(measured.refused.empty());
    EXPECT_EQ(measured.refused[0].reason, "unknown device");
    device.ceilings.clear();
    EXPECT_THAT(problem_of(io::write_device(device)), HasSubstr("found a device without ceilings"));
}

}  // namespace
}  // namespace roofline::assess
