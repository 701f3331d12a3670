// What a report of `bench` says besides times.
#include "roofline/bench/report.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "bench/scenarios.hpp"

namespace roofline::bench {
namespace {

/// A decode step (of Llama 3.1 8B in bf16) on an H100, nothing measured yet.
bench::Run predicted(const char* model = "llama-3.1-8b", double batch = 1.0) {
    const predict::Scenario scenario = testing::scenario(model, nullptr, batch);
    const predict::Report report = predict::predict(scenario);
    bench::Run run;
    run.account.device = scenario.device;
    run.roofs_known = true;
    for (const predict::StageReport& stage : report.stages) {
        if (stage.kind == predict::StageKind::decode) run.stages.push_back(start_stage(scenario, stage, ""));
    }
    return run;
}

std::size_t record_named(const StageRun& stage, std::string_view name) {
    const auto& records = stage.stage.records;
    const auto found =
        std::find_if(records.begin(), records.end(), [&](const Record& one) { return one.name == name; });
    EXPECT_NE(found, records.end()) << name;
    return static_cast<std::size_t>(found - records.begin());
}

Outcome timed(const StageRun& stage, std::size_t record, double of_limit, std::size_t buffers) {
    const Record& held = stage.stage.records[record];
    Outcome outcome;
    outcome.task = held.name;
    outcome.backend = "own";
    outcome.buffers = buffers;
    outcome.timing.median = outcome.timing.low = outcome.timing.high = held.times.limit.value / held.count / of_limit;
    outcome.timing.calls = 1;
    return outcome;
}

TEST(FasterThanLimit, SaysWhichCeilingToDoubtWhereWeightsWereCold) {
    const bench::Run run = predicted();
    const StageRun& stage = run.stages.front();
    const std::size_t gate_up = record_named(stage, "layers.ffn.gate_up");
    EXPECT_FALSE(faster_than_limit(run, stage, gate_up, timed(stage, gate_up, 0.93, 3)));
    const auto faster = faster_than_limit(run, stage, gate_up, timed(stage, gate_up, 1.25, 3));
    ASSERT_TRUE(faster);
    EXPECT_DOUBLE_EQ(faster->ratio, 1.25);
    EXPECT_NE(faster->because.find("memory bandwidth that h100-sxm gives"), std::string::npos) << faster->because;
}

TEST(FasterThanLimit, SaysCacheWhereNothingWasRotated) {
    const bench::Run run = predicted();
    const StageRun& stage = run.stages.front();
    const std::size_t gate_up = record_named(stage, "layers.ffn.gate_up");
    const auto faster = faster_than_limit(run, stage, gate_up, timed(stage, gate_up, 1.25, 1));
    ASSERT_TRUE(faster);
    EXPECT_NE(faster->because.find("stayed in a cache"), std::string::npos) << faster->because;
}

TEST(FasterThanLimit, SaysThatAStateIsWrittenToo) {
    const bench::Run run = predicted("mamba2-2.7b");
    const StageRun& stage = run.stages.front();
    const std::size_t states = record_named(stage, "layers.attention.core_recurrent");
    const auto faster = faster_than_limit(run, stage, states, timed(stage, states, 1.03, 3));
    ASSERT_TRUE(faster);
    EXPECT_NE(faster->because.find("half of its bytes are written"), std::string::npos) << faster->because;
}

TEST(FasterThanLimit, IsNotSaidOfUnknownRoofsOrWrongAnswers) {
    bench::Run run = predicted();
    const StageRun& stage = run.stages.front();
    Outcome wrong = timed(stage, 0, 2.0, 1);
    wrong.problem = "wrong";
    EXPECT_FALSE(faster_than_limit(run, stage, 0, wrong));
    run.roofs_known = false;
    EXPECT_FALSE(faster_than_limit(run, stage, 0, timed(stage, 0, 2.0, 1)));
}

TEST(Report, HoldsWholeExpertsAgainstTheirOwnBytes) {
    // Four tokens touch 8 (1 - (6/8)^4) = 5.47 experts of Mixtral 8x7B on the mean, and 5 are run: 28,672 x 4,096 in
    // bf16 each, in 32 layers, at 3.35 TB/s.
    const bench::Run run = predicted("mixtral-8x7b", 4.0);
    const StageRun& stage = run.stages.front();
    const std::size_t gate_up = record_named(stage, "layers.ffn.experts.gate_up");
    const Record& record = stage.stage.records[gate_up];
    const double weights = 5.0 * 28672.0 * 4096.0 * 2.0;
    EXPECT_EQ(stage.planned[gate_up].task->experts, 5);
    EXPECT_DOUBLE_EQ(record.weights.value, 32.0 * weights);
    EXPECT_NEAR(record.times.limit.value / (32.0 * weights / 3.35e12), 1.0, 0.01);
    EXPECT_LE(record.times.limit.value, record.times.attainable.value);
    EXPECT_LE(record.times.attainable.value, record.times.expected.value);
    EXPECT_DOUBLE_EQ(stage.planned[gate_up].task->rotated, weights);
}

TEST(Report, FewerExpertsAreNotFasterWhereArithmeticIsTheLimit) {
    // The same on a device that multiplies a ten-thousandth as fast: rows are as many, whoever multiplies them.
    predict::Scenario scenario = testing::scenario("mixtral-8x7b", nullptr, 4.0);
    scenario.device.rates[index(Engine::matrix)][index(DType::bf16)]->value /= 1e4;
    const predict::StageReport decode = predict::predict(scenario).stages[1];
    const StageRun stage = start_stage(scenario, decode, "");
    const std::size_t gate_up = record_named(stage, "layers.ffn.experts.gate_up");
    EXPECT_EQ(stage.planned[gate_up].task->experts, 5);
    EXPECT_DOUBLE_EQ(stage.stage.records[gate_up].times.limit.value, decode.records[gate_up].times.limit.value);
    EXPECT_LT(stage.stage.records[gate_up].weights.value, decode.details[gate_up].weight_bytes);
}

TEST(Report, NotesWhatWasFasterAndThatTheMachineWasBusy) {
    bench::Run run = predicted();
    StageRun& stage = run.stages.front();
    const std::size_t gate_up = record_named(stage, "layers.ffn.gate_up");
    stage.outcomes[gate_up].push_back(timed(stage, gate_up, 1.25, 3));
    StepOutcome step;
    step.backend = "own";
    step.timing.median = step.timing.low = step.timing.high = stage.stage.times.limit.value / 2.0;
    step.timing.calls = 1;
    stage.steps.push_back(step);
    run.busy_because = {"others kept 1.5 processors busy meanwhile"};
    settle(run);
    ASSERT_EQ(run.account.notes.size(), 2U);
    EXPECT_TRUE(run.account.notes[0].starts_with("faster than the limit: whole step, layers.ffn.gate_up ("))
        << run.account.notes[0];
    EXPECT_EQ(run.account.notes[1], "the machine was busy: others kept 1.5 processors busy meanwhile");
    const auto json = run_json(run, {});
    EXPECT_EQ(json["bench"]["busy"], true);
    const auto results = json["bench"]["stages"][0]["results"];
    const auto found = std::find_if(results.begin(), results.end(),
                                    [](const auto& one) { return one["name"] == "layers.ffn.gate_up"; });
    ASSERT_NE(found, results.end());
    EXPECT_EQ((*found)["faster_than_limit"]["ratio"], 1.25);
    EXPECT_EQ(json["bench"]["stages"][0]["steps"][0]["faster_than_limit"]["ratio"], 2.0);
}

// The ceiling of a run by hand is 100 GB/s: what was read around it says whether shares of it mean anything.
std::vector<std::string> notes_where_memory_was_read(double before, double after) {
    bench::Run run;
    run.account.device.levels[index(Level::memory)] = MemoryLevel{};
    run.account.device.levels[index(Level::memory)]->bandwidth = Figure{100e9, "measured", ""};
    run.memory_read = {before, after};
    settle(run);
    EXPECT_EQ(run_json(run, {})["bench"]["memory_read"]["after"], after);
    EXPECT_EQ(run_json(run, {})["bench"]["busy"], !run.busy_because.empty());
    return run.account.notes;
}

TEST(Report, SaysWhenMemoryIsNotWhatItsCeilingSays) {
    EXPECT_TRUE(notes_where_memory_was_read(86e9, 109e9).empty());
    EXPECT_EQ(
        notes_where_memory_was_read(84e9, 99e9),
        std::vector<std::string>{"the machine was busy: memory was read at 84.0 GB/s before the run and 99.0 after "
                                 "it, at 100.0 when its ceiling was measured"});
    EXPECT_EQ(notes_where_memory_was_read(97e9, 80e9).size(), 1U);
    EXPECT_EQ(
        notes_where_memory_was_read(97e9, 120e9),
        std::vector<std::string>{"memory was read at 97.0 GB/s before the run and 120.0 after it, at 100.0 when its "
                                 "ceiling was measured: `roofline measure` finds it anew"});
}

}  // namespace
}  // namespace roofline::bench
