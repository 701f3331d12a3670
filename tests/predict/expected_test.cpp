// Expected times of whole models on whole devices, with the constants the program carries: their order, their sums, and
// how they move with the workload. Nothing here knows a measured number; docs and `validate` are for those.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::predict {
namespace {

using ::testing::HasSubstr;

constexpr double tiny = 1e-9;

// Dense, sliding windows, experts, latent attention, recurrences; bf16, fp8, 4 bits.
const std::vector<std::string_view> model_names = {
    "llama-3.1-8b", "qwen3-0.6b",        "gpt2",        "gemma-2-2b", "mixtral-8x7b", "qwen3-30b-a3b",
    "deepseek-v3",  "llama-3.1-70b-fp8", "gpt-oss-20b", "jamba-v0.1", "mamba2-1.3b",  "nemotron-3-nano-30b-a3b-nvfp4"};
// Timed ones, relatives of them, and such that nobody has timed: no matrix engine, no multiprocessors, no cache ...
const std::vector<std::string_view> device_names = {"h200-sxm", "h100-sxm", "gh200",     "b200-sxm",
                                                    "l40s",     "gb10",     "rtx-3090",  "mi300x",
                                                    "tpu-v5e",  "m4-max",   "xeon-8480", "groq-lpu"};

const model::Lowered& lowered(std::string_view name) {
    static std::map<std::string, model::Lowered, std::less<>> cache;
    const auto found = cache.find(name);
    if (found != cache.end()) return found->second;
    const auto file = io::builtin_model(name);
    EXPECT_TRUE(file.has_value()) << (file ? "" : file.error().text);
    return cache[std::string(name)] = file ? model::lower(file->architecture, file->types) : model::Lowered{};
}

bool has_experts(const model::Lowered& model) {
    return std::any_of(model.operators.begin(), model.operators.end(),
                       [](const model::Operator& op) { return op.extent.pattern == Pattern::experts; });
}

Device device_of(std::string_view name) {
    const auto device = io::builtin_device(name);
    EXPECT_TRUE(device.has_value()) << (device ? "" : device.error().text);
    return device ? *device : Device{};
}

Execution execution_on(const Device& device, std::string_view profile = "engine") {
    Execution execution;
    auto loaded = io::builtin_profile(profile, device);
    EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error().text);
    if (loaded) execution.profile = std::move(*loaded);
    static std::map<std::string, std::shared_ptr<const Calibration>> known;
    auto& calibration = known[device.name];
    if (!calibration) {
        auto read = io::builtin_calibration(device);
        EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().text);
        if (read) calibration = std::make_shared<const Calibration>(std::move(*read));
    }
    execution.calibration = calibration;
    return execution;
}

Scenario scenario_of(std::string_view model, std::string_view device, std::string_view profile = "engine") {
    Scenario scenario;
    scenario.lowered = lowered(model);
    scenario.device = device_of(device);
    scenario.execution = execution_on(scenario.device, profile);
    return scenario;
}

StageTime evaluate(const Prepared& prepared, const model::Step& step) {
    std::vector<OperatorTime> times(prepared.size());
    return prepared.evaluate(step, times);
}

void expect_order(const Times& times, const std::string& what) {
    const double limit = times.limit.value;
    const double attainable = times.attainable.value;
    const double expected = times.expected.value;
    EXPECT_TRUE(std::isfinite(limit) && std::isfinite(attainable) && std::isfinite(expected)) << what;
    EXPECT_TRUE(std::isfinite(times.expected_low.value) && std::isfinite(times.expected_high.value)) << what;
    EXPECT_LE(limit, attainable * (1.0 + tiny)) << what;
    EXPECT_LE(attainable, expected * (1.0 + tiny)) << what;
    EXPECT_LE(times.expected_low.value, expected * (1.0 + tiny)) << what;
    EXPECT_LE(expected, times.expected_high.value * (1.0 + tiny)) << what;
    EXPECT_LE(attainable, times.expected_low.value * (1.0 + tiny)) << what;
}

class Everywhere : public ::testing::TestWithParam<std::string_view> {};

TEST_P(Everywhere, ThreeTimesAreInOrderAndOperatorsAddUp) {
    const std::string_view device_name = GetParam();
    for (const std::string_view profile : {"engine", "eager", "llama.cpp"}) {
        for (const std::string_view model_name : model_names) {
            Scenario scenario = scenario_of(model_name, device_name, profile);
            scenario.workload.stages = {StageKind::prefill, StageKind::decode, StageKind::mixed};
            scenario.workload.generate = 4.0;
            for (const auto& [batch, prompt] : {std::pair{1.0, 1.0}, {1.0, 1000.0}, {7.0, 130.0}, {256.0, 2048.0}}) {
                scenario.workload.batch = batch;
                scenario.workload.prompt = prompt;
                scenario.workload.chunk = std::min(prompt, 512.0);
                const Report report = predict(scenario);
                const std::string where = std::string(model_name) + " on " + std::string(device_name) + " under " +
                                          std::string(profile) + ", batch " + std::to_string(batch) + ", prompt " +
                                          std::to_string(prompt) + ", ";
                for (const StageReport& stage : report.stages) {
                    const std::string step = where + std::string(name(stage.kind));
                    expect_order(stage.times, step);
                    EXPECT_GT(stage.times.expected.value, 0.0) << step;
                    double sum = 0.0;
                    double shares = 0.0;
                    for (const Record& record : stage.records) {
                        expect_order(record.times, step + ", " + record.name);
                        sum += record.times.expected.value;
                    }
                    for (const GroupShare& group : stage.groups) shares += group.share;
                    EXPECT_NEAR(sum / stage.times.expected.value, 1.0, tiny) << step;
                    EXPECT_NEAR(shares, 1.0, tiny) << step;
                }
                expect_order(report.metrics.ttft, where + "ttft");
                expect_order(report.metrics.tpot, where + "tpot");
                expect_order(report.metrics.request, where + "request");
                double from = 0.0;
                for (const CalibrationShare& share : report.calibration) from += share.share;
                EXPECT_GT(from, 0.95) << where << "sources below half a percent are left out";
                EXPECT_LT(from, 1.0 + tiny) << where;
                if (HasFailure()) return;  // one workload shows it
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, Everywhere, ::testing::ValuesIn(device_names), [](const auto& test) {
    std::string name(test.param);
    for (char& c : name) c = c == '-' ? '_' : c;
    return name;
});

TEST(Expected, AMixedStepTakesAtLeastAsLongAsEachOfItsParts) {
    for (const std::string_view profile : {"engine", "eager", "llama.cpp"}) {
        for (const std::string_view model_name : model_names) {
            for (const std::string_view device_name : {"h200-sxm", "gh200", "l40s", "mi300x", "m4-max", "tpu-v5e"}) {
                const Device device = device_of(device_name);
                const Prepared prepared(lowered(model_name), device, execution_on(device, profile));
                // llama.cpp on Apple devices has up to 31 tokens read the experts of each one by one; more of them are
                // grouped, which is faster.
                if (prepared.step_choice().kernel_class->name == "ggml_metal" && has_experts(lowered(model_name)))
                    continue;
                for (const double batch : {1.0, 16.0, 200.0}) {
                    for (const double chunk : {2.0, 100.0, 1024.0}) {
                        const model::Step step = model::mixed_step(batch, 1500, chunk, 300, true);
                        const double both = evaluate(prepared, step).expected;
                        const std::string where = std::string(model_name) + " on " + std::string(device_name) +
                                                  " under " + std::string(profile) + ", " + std::to_string(batch) +
                                                  " beside " + std::to_string(chunk);
                        EXPECT_GE(both, 0.99 * evaluate(prepared, {step[0]}).expected) << where << ": prompt";
                        EXPECT_GE(both, 0.99 * evaluate(prepared, {step[1]}).expected) << where << ": decode";
                    }
                }
            }
        }
    }
}

TEST(Expected, CuttingABatchIntoGroupsDoesNotMakeItFaster) {
    // A ragged batch may take longer, as attention then comes in several kernels.
    for (const std::string_view profile : {"engine", "llama.cpp"}) {
        for (const std::string_view model_name : {"llama-3.1-8b", "qwen3-0.6b", "mixtral-8x7b"}) {
            const Device device = device_of("rtx-3090");
            const Prepared prepared(lowered(model_name), device, execution_on(device, profile));
            for (const double batch : {2.0, 16.0}) {
                const double together = evaluate(prepared, model::decode_step(batch, 500)).expected;
                const double apart = evaluate(prepared, {model::decode_step(1.0, 500).front(),
                                                         model::decode_step(batch - 1.0, 500).front()})
                                         .expected;
                EXPECT_GE(apart, together * (1.0 - tiny)) << model_name << " under " << profile << ", " << batch;
            }
        }
    }
}

TEST(Expected, DecodingGrowsWithTheBatch) {
    for (const std::string_view model_name : model_names) {
        for (const std::string_view device_name : device_names) {
            const Device device = device_of(device_name);
            const Prepared prepared(lowered(model_name), device, execution_on(device));
            for (const double context : {100.0, 4000.0}) {
                double before = 0.0;
                for (double batch = 1.0; batch <= 512.0; batch *= 2.0) {
                    const double now = evaluate(prepared, model::decode_step(batch, context)).expected;
                    EXPECT_GE(now, 0.99 * before)
                        << model_name << " on " << device_name << ", batch " << batch << ", context " << context;
                    before = now;
                }
            }
        }
    }
}

TEST(Expected, DecodingGrowsWithTheContext) {
    for (const std::string_view model_name : model_names) {
        for (const std::string_view device_name : device_names) {
            const Device device = device_of(device_name);
            const Prepared prepared(lowered(model_name), device, execution_on(device));
            for (const double batch : {1.0, 32.0}) {
                double before = 0.0;
                // In whole tiles: a context that is none takes some kernels longer than the next that is (E4).
                for (double context = 64.0; context <= 65536.0; context *= 2.0) {
                    const double now = evaluate(prepared, model::decode_step(batch, context)).expected;
                    EXPECT_GE(now, before * (1.0 - tiny))
                        << model_name << " on " << device_name << ", batch " << batch << ", context " << context;
                    before = now;
                }
            }
        }
    }
}

TEST(Expected, PrefillGrowsWithThePrompt) {
    for (const std::string_view model_name : model_names) {
        for (const std::string_view device_name : device_names) {
            const Device device = device_of(device_name);
            const Prepared prepared(lowered(model_name), device, execution_on(device));
            double before = 0.0;
            for (double prompt = 2.0; prompt <= 65536.0; prompt *= 2.0) {
                const double now = evaluate(prepared, model::prefill_step(1, prompt)).expected;
                EXPECT_GE(now, 0.99 * before) << model_name << " on " << device_name << ", prompt " << prompt;
                before = now;
            }
        }
    }
}

TEST(Expected, ATimedDeviceRestsOnItsOwnMeasurements) {
    const Report report = predict(scenario_of("llama-3.1-8b", "h200-sxm"));
    ASSERT_FALSE(report.calibration.empty());
    for (const CalibrationShare& share : report.calibration) EXPECT_THAT(share.source, HasSubstr("h200-sxm"));
}

TEST(Expected, AFormatThatWasTimedOnADeviceIsTakenFromThere) {
    // All of these have been timed on this device, under the very format of the model.
    const Device device = device_of("h200-sxm");
    for (const std::string_view model_name : {"llama-3.1-70b-fp8", "deepseek-v3", "mixtral-8x7b", "gpt-oss-20b"}) {
        const model::Lowered& model = lowered(model_name);
        const Prepared prepared(model, device, execution_on(device));
        for (std::size_t i = 0; i < prepared.size(); ++i) {
            if (model.operators[i].kind != Kind::gemm) continue;
            EXPECT_TRUE(prepared.manner(i).decode.own)
                << model_name << ", " << model.operators[i].name << ": " << prepared.manner(i).decode.source;
            if (HasFailure()) return;
        }
    }
}

TEST(Expected, ARelativeSaysSoAndHasAWiderRange) {
    const Report own = predict(scenario_of("llama-3.1-8b", "h200-sxm"));
    const Report relative = predict(scenario_of("llama-3.1-8b", "gh200"));
    ASSERT_FALSE(relative.calibration.empty());
    for (const CalibrationShare& share : relative.calibration)
        EXPECT_THAT(share.source, HasSubstr("hopper, transferred"));
    const Report stranger = predict(scenario_of("llama-3.1-8b", "mi300x"));
    ASSERT_FALSE(stranger.calibration.empty());
    for (const CalibrationShare& share : stranger.calibration)
        EXPECT_THAT(share.source, HasSubstr("all devices, transferred"));
    for (std::size_t stage = 0; stage < own.stages.size(); ++stage) {
        const auto width = [&](const Report& report) {
            const Times& times = report.stages[stage].times;
            return times.expected_high.value / times.expected_low.value;
        };
        EXPECT_LT(width(own), width(relative)) << name(own.stages[stage].kind);
        EXPECT_LT(width(relative), width(stranger)) << name(own.stages[stage].kind);
    }
    const auto request_width = [](const Report& report) {
        return report.metrics.request.expected_high.value / report.metrics.request.expected_low.value;
    };
    EXPECT_LT(request_width(own), request_width(relative));
}

TEST(Expected, WithoutACalibrationEverythingIsAssumed) {
    Scenario scenario = scenario_of("llama-3.1-8b", "h200-sxm");
    scenario.execution.calibration = nullptr;
    const Report report = predict(scenario);
    ASSERT_EQ(report.calibration.size(), 1u);
    EXPECT_EQ(report.calibration.front().source, "assumed");
    EXPECT_NEAR(report.calibration.front().share, 1.0, tiny);
}

TEST(Expected, AOneTokenStepOfARecurrenceIsNoScan) {
    // Its state streams through once; there are no chunks that wait for each other.
    const model::Lowered& model = lowered("mamba2-1.3b");
    const Device device = device_of("h200-sxm");
    const Prepared prepared(model, device, execution_on(device));
    for (std::size_t i = 0; i < prepared.size(); ++i) {
        if (model.operators[i].name.ends_with("core_recurrent")) {
            EXPECT_EQ(prepared.manner(i).decode.kernel_class->name, "elementwise");
        }
        if (model.operators[i].name.ends_with("core_chunked")) {
            EXPECT_EQ(prepared.manner(i).prefill.kernel_class->name, "scan");
        }
    }
}

TEST(Expected, ARaggedBatchOfDecodingSequencesIsOneLaunch) {
    const Device device = device_of("h100-sxm");
    const Prepared prepared(lowered("llama-3.1-8b"), device, execution_on(device));
    std::vector<OperatorTime> times(prepared.size());
    const auto seconds = [&](const model::Step& step) { return prepared.evaluate(step, times).expected; };
    const auto group = [](double count, double past) {
        return model::Sequences{.phase = model::Phase::decode, .count = count, .past = past};
    };
    // 32 sequences cut into groups in any way, and 16 + 16 around the same mean: the same keys, the same kernels.
    const double together = seconds({group(32, 4000)});
    EXPECT_NEAR(seconds({group(1, 4000), group(30, 4000), group(1, 4000)}), together, tiny * together);
    EXPECT_NEAR(seconds({group(16, 3000), group(16, 5000)}), together, tiny * together);
    // Beside a prompt they are one more launch, whatever their groups.
    const model::Sequences chunk{.phase = model::Phase::prefill, .count = 1, .new_tokens = 512};
    const double mixed = seconds({chunk, group(32, 4000)});
    EXPECT_NEAR(seconds({chunk, group(16, 3000), group(16, 5000)}), mixed, tiny * mixed);
}

TEST(Expected, AttentionWithItsScoresInMemoryIsNeverTheFasterOne) {
    // Two products, each with a launch of its own, and scores that are written and read again.
    for (const std::string_view name : {"llama-3.1-8b", "gpt2", "gemma-2-2b"}) {
        const auto file = io::builtin_model(name);
        ASSERT_TRUE(file.has_value());
        const model::Lowered& flash = lowered(name);
        const model::Lowered unfused =
            model::lower(file->architecture, file->types, {.scores = model::AttentionScores::in_memory});
        for (const std::string_view device_name : device_names) {
            const Device device = device_of(device_name);
            const Prepared fused(flash, device, execution_on(device));
            const Prepared apart(unfused, device, execution_on(device));
            std::vector<OperatorTime> times(std::max(fused.size(), apart.size()));
            for (const double batch : {1.0, 16.0}) {
                for (const double context : {128.0, 1024.0, 1024.0 * 16.0}) {
                    const model::Step decode = model::decode_step(batch, context);
                    EXPECT_LE(fused.evaluate(decode, times).expected, apart.evaluate(decode, times).expected)
                        << name << " on " << device_name << ", batch " << batch << ", context " << context;
                }
                const model::Step prefill = model::prefill_step(batch, 1024.0);
                EXPECT_LE(fused.evaluate(prefill, times).expected, apart.evaluate(prefill, times).expected)
                    << name << " on " << device_name;
            }
        }
    }
}

}  // namespace
}  // namespace roofline::predict
