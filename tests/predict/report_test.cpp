// What a user reads: the numbers of the issue, request metrics, notes.
#include "roofline/predict/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/devices.hpp"
#include "model/scenarios.hpp"
#include "roofline/model/parameters_only.hpp"

namespace roofline::predict {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Scenario scenario_of(Lowered lowered, const Device& device, double batch, double context) {
    Scenario scenario;
    scenario.lowered = std::move(lowered);
    scenario.device = device;
    scenario.workload.batch = batch;
    scenario.workload.prompt = context;
    scenario.workload.generate = 1;
    return scenario;
}

Lowered parameters_only(double parameters) {
    return model::lower_parameters_only(parameters,
                                        model::uniform_plan(1, format("fp16"), DType::fp16, format("fp16")));
}

const StageReport& stage_of(const Report& report, StageKind kind) {
    for (const StageReport& stage : report.stages) {
        if (stage.kind == kind) return stage;
    }
    ADD_FAILURE() << "no such stage";
    return report.stages.front();
}

TEST(Issue, EightBillionParametersInFp16Take4776MicrosecondsAToken) {
    // 16e9 B / 3.35e12 B/s = 4.7761 ms, 209.375 tokens/s
    const Report report = predict(scenario_of(parameters_only(8e9), h100(), 1, 100));
    const StageReport& decode = stage_of(report, StageKind::decode);
    EXPECT_NEAR(decode.times.limit.value, 4.7761e-3, 0.0001e-3);
    EXPECT_NEAR(decode.tokens_per_second(decode.times.limit), 209.375, 0.001);
    EXPECT_EQ(decode.totals.bound, Bound::memory);
}

TEST(Issue, ThirtyBillionParametersAre60GigabytesAnd60GigaflopsAToken) {
    const Report report = predict(scenario_of(parameters_only(30e9), h100(), 1, 100));
    const StageReport& decode = stage_of(report, StageKind::decode);
    EXPECT_EQ(decode.totals.memory_bytes, 60e9);
    EXPECT_EQ(decode.totals.flops, 60e9);
    EXPECT_EQ(decode.totals.intensity, 1.0);
}

TEST(Issue, Llama3DecodesWith4480MicrosecondsOfWeightsAnd160OfKv) {
    const Report report = predict(scenario_of(lowered(llama_3_8b()), h100(), 1, 4096));
    const StageReport& decode = stage_of(report, StageKind::decode);
    double matrices = 0.0;
    double kv_read = 0.0;
    for (std::size_t i = 0; i < decode.records.size(); ++i) {
        if (decode.records[i].kind == Kind::gemm) matrices += decode.details[i].weight_bytes;
        if (decode.records[i].kind == Kind::attention) kv_read += decode.details[i].kv_bytes;
    }
    EXPECT_NEAR(matrices / 3.35e12, 4.4804e-3, 0.00005e-3);  // 15,009,316,864 B
    EXPECT_NEAR(kv_read / 3.35e12, 0.1603e-3, 0.00005e-3);   // 536,870,912 B
    EXPECT_GE(decode.times.limit.value, (matrices + kv_read) / 3.35e12);
    EXPECT_EQ(decode.totals.bound, Bound::memory);
}

TEST(Issue, APrefillOf512IsComputeBoundAndTakes7294Microseconds) {
    // matrix flops: 512 x 2 x 6,979,321,856 + 2 x 525,336,576 + 32 x 2,151,677,952 = 7,216,729,948,160
    // over 989.4e12 flop/s = 7.2940 ms
    const Report report = predict(scenario_of(lowered(llama_3_8b()), h100(), 1, 512));
    const StageReport& prefill = stage_of(report, StageKind::prefill);
    EXPECT_EQ(prefill.totals.bound, Bound::compute);
    EXPECT_NEAR(prefill.times.limit.value, 7.2940e-3, 0.0001e-3);
    EXPECT_NEAR(prefill.tokens_per_second(prefill.times.limit), 70194.0, 5.0);  // 512 / 7.2940 ms
    EXPECT_NEAR(prefill.ridge.value, 295.34, 0.01);                             // 989.4 / 3.35
}

TEST(StageReport, CountsPromptTokensInPrefillAndWrittenOnesInDecode) {
    Scenario scenario = scenario_of(lowered(llama_3_8b()), h100(), 3, 100);
    scenario.workload.cached = 20;
    scenario.workload.chunk = 64;
    scenario.workload.stages = {StageKind::prefill, StageKind::decode, StageKind::mixed};
    const Report report = predict(scenario);
    EXPECT_EQ(stage_of(report, StageKind::prefill).tokens, 300.0);
    EXPECT_EQ(stage_of(report, StageKind::prefill).produced(), 300.0);
    EXPECT_EQ(stage_of(report, StageKind::prefill).context, 120.0);
    EXPECT_EQ(stage_of(report, StageKind::decode).produced(), 3.0);
    EXPECT_EQ(stage_of(report, StageKind::decode).context, 120.0);
    EXPECT_EQ(stage_of(report, StageKind::mixed).tokens, 67.0);
}

TEST(StageReport, LeavesOutOperatorsThatDoNothing) {
    Scenario scenario = scenario_of(lowered(llama_3_8b()), h100(), 1, 100);
    const Report report = predict(scenario);
    EXPECT_EQ(stage_of(report, StageKind::decode).records.size(), 16U) << "all 16 of Llama do something";
}

TEST(RequestMetrics, TpotIsTheMeanOverAGrowingContext) {
    Scenario scenario = scenario_of(lowered(llama_3_8b()), h100(), 2, 1000);
    scenario.workload.generate = 4;  // one token from the prefill, three decode steps at 1001, 1002, 1003
    scenario.device.power = Figure{700.0, "test", ""};
    const Report report = predict(scenario);
    const Prepared prepared(scenario.lowered, scenario.device);
    std::vector<OperatorTime> times(prepared.size());
    double sum = 0.0;
    for (const double context : {1001.0, 1002.0, 1003.0}) {
        sum += prepared.evaluate(model::decode_step(2, context), times).limit;
    }
    const double prefill = prepared.evaluate(model::prefill_step(2, 1000), times).limit;
    EXPECT_DOUBLE_EQ(report.metrics.tpot.limit.value, sum / 3.0);
    EXPECT_DOUBLE_EQ(report.metrics.ttft.limit.value, prefill);
    EXPECT_DOUBLE_EQ(report.metrics.request.limit.value, prefill + sum);
    // 700 W for the time of a step, shared by the two tokens it writes
    EXPECT_DOUBLE_EQ(*report.metrics.joules_per_token, 700.0 * report.metrics.tpot.expected.value / 2.0);
}

TEST(RequestMetrics, MoneyIsTheHoursOfAllDevicesOverTheTokens) {
    Scenario scenario = scenario_of(lowered(llama_3_8b()), h100(), 6, 1000);
    scenario.workload.generate = 4;
    scenario.deployment.replicas = 3;  // of one device each: each has two of the six sequences
    scenario.price = 7.2;              // 7.2 x 3 / 3600 s = 0.006 a second
    const RequestMetrics metrics = predict(scenario).metrics;
    ASSERT_TRUE(metrics.money.has_value());
    EXPECT_DOUBLE_EQ(*metrics.money->prompt, 1e6 * 0.006 * metrics.ttft.expected.value / 6000.0);
    EXPECT_DOUBLE_EQ(*metrics.money->decode, 1e6 * 0.006 * metrics.tpot.expected.value / 6.0);
    EXPECT_DOUBLE_EQ(*metrics.money->output, 1e6 * 0.006 * metrics.request.expected.value / 24.0);
    // The whole is its parts: 1000 prompt tokens and three decoded ones for every four written.
    EXPECT_NEAR(*metrics.money->output, (1000.0 * *metrics.money->prompt + 3.0 * *metrics.money->decode) / 4.0,
                1e-9 * *metrics.money->output);
    scenario.workload.chunk = 100.0;  // beside tokens of others: what is whose cannot be told
    const RequestMetrics chunked = predict(scenario).metrics;
    EXPECT_TRUE(chunked.money->decode.has_value());
    EXPECT_FALSE(chunked.money->prompt.has_value());
    EXPECT_FALSE(chunked.money->output.has_value());
    scenario.price.reset();
    EXPECT_FALSE(predict(scenario).metrics.money.has_value()) << "no price is invented";
}

TEST(RequestMetrics, OneTokenNeedsNoDecodeStep) {
    const Report report = predict(scenario_of(lowered(llama_3_8b()), h100(), 1, 100));
    EXPECT_EQ(report.metrics.tpot.limit.value, 0.0);
    EXPECT_EQ(report.metrics.request.limit.value, report.metrics.ttft.limit.value);
    EXPECT_FALSE(report.metrics.joules_per_token.has_value());
}

TEST(RequestMetrics, LongAnswersAreSampledWithoutMovingTheMean) {
    // Under full attention in one regime a step's time is linear in its context, so the mean is that of the middle.
    Scenario scenario = scenario_of(lowered(llama_3_8b()), h100(), 1, 1000);
    scenario.workload.generate = 40'002;  // 40,001 steps: 1001 ... 41,001, the middle one at 21,001
    const Prepared prepared(scenario.lowered, scenario.device);
    std::vector<OperatorTime> times(prepared.size());
    const double middle = prepared.evaluate(model::decode_step(1, 21'001), times).limit;
    EXPECT_NEAR(predict(scenario).metrics.tpot.limit.value / middle, 1.0, 1e-4);
}

TEST(Notes, SayWhichTypesAreStoodInFor) {
    Device device = exact_device();  // bf16 only
    Scenario scenario = scenario_of(lowered(llama_3_8b(), {}, "fp8", DType::fp8), device, 1, 10);
    EXPECT_THAT(predict(scenario).notes, Contains(HasSubstr("no fp8 engine")));
    scenario.lowered = lowered(llama_3_8b());
    EXPECT_THAT(predict(scenario).notes, Not(Contains(HasSubstr("engine:"))));
}

TEST(Notes, SayWhenNoComputeRateIsKnown) {
    Device device;
    device.name = "mystery";
    set_bandwidth(device, Level::memory, 1e12);
    EXPECT_THAT(predict(scenario_of(lowered(llama_3_8b()), device, 1, 10)).notes,
                Contains(AllOf(HasSubstr("mystery"), HasSubstr("no compute rate"))));
}

TEST(Notes, SayWhenTheContextIsLongerThanTheModelWasMadeFor) {
    Scenario scenario = scenario_of(lowered(llama_3_8b()), h100(), 1, 8192);
    scenario.longest_context = 8192;
    EXPECT_THAT(predict(scenario).notes, Contains(HasSubstr("longer than the 8192 tokens"))) << "8192 + 1 generated";
    scenario.workload.prompt = 8191;
    EXPECT_THAT(predict(scenario).notes, Not(Contains(HasSubstr("longer than"))));
}

TEST(Notes, SayWhetherCeilingsWereMeasured) {
    Scenario scenario = scenario_of(lowered(llama_3_8b()), h100(), 1, 10);
    EXPECT_THAT(predict(scenario).notes, Contains(HasSubstr("no measured ceilings")));
    EXPECT_FALSE(predict(scenario).measured_ceilings);
    scenario.device.sources["relative"] = {SourceKind::assumed, "measured on a relative", ""};
    scenario.device.ceilings["cache.bandwidth"] = Figure{9e12, "relative", ""};
    EXPECT_THAT(predict(scenario).notes, Contains(HasSubstr("datasheet figures and the assumed cache.bandwidth,")));
    EXPECT_FALSE(predict(scenario).measured_ceilings);
    scenario.device.ceilings["memory.bandwidth"] = Figure{3e12, "bench", ""};
    EXPECT_THAT(predict(scenario).notes, Not(Contains(HasSubstr("no measured ceilings"))));
    const Report report = predict(scenario);
    EXPECT_TRUE(report.measured_ceilings);
    EXPECT_GT(stage_of(report, StageKind::decode).times.attainable.value,
              stage_of(report, StageKind::decode).times.limit.value * 1.1);  // 3.35 / 3
}

}  // namespace
}  // namespace roofline::predict
