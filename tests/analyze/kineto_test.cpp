// PyTorch traces: real ones (data/README.md) and small ones written here.
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/analyze/format.hpp"
#include "roofline/analyze/text.hpp"
#include "roofline/io/catalog.hpp"

namespace roofline::analyze {
namespace {

Analysis analysis_of(const std::string& file, const Options& options = {}) {
    auto input = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/" + file);
    EXPECT_TRUE(input) << (input ? "" : input.error().text);
    if (!input) return {};
    auto analysis = analyze(*input, options);
    EXPECT_TRUE(analysis) << (analysis ? "" : analysis.error().text);
    return analysis ? std::move(*analysis) : Analysis{};
}

Result<Analysis> of_text(std::string text) {
    Input input = Input::from_memory("made.json", std::move(text));
    return analyze(input, {});
}

const Record* find(const AccountStage& stage, const std::string& name) {
    for (const Record& record : stage.records) {
        if (record.name == name) return &record;
    }
    return nullptr;
}

const AccountStage& stage(const Analysis& analysis, const std::string& name) {
    for (const AccountStage& one : analysis.account.stages) {
        if (one.name == name) return one;
    }
    ADD_FAILURE() << "no stage " << name;
    static const AccountStage none_such;
    return none_such;
}

const std::vector<std::string>& real_traces() {
    static const std::vector<std::string> files = {"hf_llama_1b_h200_torch_profiler.json.gz",
                                                   "mixtral_like.json.gz",
                                                   "gpt2_eager.json.gz",
                                                   "gemma2_eager.json.gz",
                                                   "llama_fp16_math.json.gz",
                                                   "llama_unannotated.json.gz",
                                                   "llama_compiled.json.gz",
                                                   "two_streams.json.gz"};
    return files;
}

// The sum of "dur" over the events of category "kernel" in the file, by a JSON library: 17,776.416 us in 2,748 kernels.
TEST(Kineto, KernelTimeIsThatOfTheFileToTheNanosecond) {
    const Analysis llama = analysis_of("hf_llama_1b_h200_torch_profiler.json.gz");
    EXPECT_EQ(std::llround(llama.kernel_time.value * 1e9), 17'776'416);
    ASSERT_EQ(llama.streams.size(), 1U);
    EXPECT_EQ(llama.streams[0].kernels, 2748.0);
    // Stages hold all of it: records are means over the repetitions.
    double sum = 0.0;
    for (const AccountStage& one : llama.account.stages) {
        for (const Record& record : one.records) {
            if (record.kind != Kind::idle && record.kind != Kind::copy)
                sum += record.times.measured->value * one.repetitions;
        }
    }
    // Some copies are operators (aten::copy_, aten::cat): only memcpy and memset are named so.
    for (const AccountStage& one : llama.account.stages) {
        for (const Record& record : one.records) {
            if (record.kind == Kind::copy && !record.name.starts_with("fill:") && !record.name.starts_with("copy:"))
                sum += record.times.measured->value * one.repetitions;
        }
    }
    EXPECT_NEAR(sum * 1e6, 17776.416, 1e-3);
}

TEST(Kineto, NearlyAllKernelTimeHasAnOperatorWithWork) {
    for (const std::string& file : real_traces()) {
        const Analysis analysis = analysis_of(file);
        EXPECT_GE(analysis.explained_time / analysis.kernel_time, 0.97) << file;
    }
}

TEST(Kineto, AttributedUnattributedAndIdleAddUpToTheWallTimeOfEveryStream) {
    auto files = real_traces();
    files.push_back("llama_compiled_graphs.json.gz");
    for (const std::string& file : files) {
        const Analysis analysis = analysis_of(file);
        ASSERT_FALSE(analysis.streams.empty()) << file;
        for (const StreamTime& stream : analysis.streams) {
            EXPECT_GT(stream.wall.value, 0.0);
            EXPECT_EQ(std::llround(stream.wall.value * 1e9), std::llround(stream.attributed.value * 1e9) +
                                                                 std::llround(stream.unattributed.value * 1e9) +
                                                                 std::llround(stream.idle.value * 1e9))
                << file << " " << stream.name;
        }
        const WhereTimeWent& whole = analysis.whole;
        EXPECT_NEAR(whole.wall.value, (whole.computing + whole.communicating + whole.copying + whole.idle).value, 1e-9);
        double stages = 0.0;  // and the stages, each as often as it ran, are the whole
        for (std::size_t i = 0; i < analysis.time_went.size(); ++i)
            stages += analysis.time_went[i].wall.value * analysis.account.stages[i].repetitions;
        ASSERT_EQ(analysis.time_went.size(), analysis.account.stages.size());
        const std::string& last = analysis.account.stages.back().name;
        EXPECT_LE(stages, whole.wall.value + 1e-9) << file;
        if (last == "all" || last == "outside steps") {
            EXPECT_NEAR(stages, whole.wall.value, 1e-9) << file;
        }
    }
}

TEST(Kineto, FindsThePrefillAndThreeDecodeSteps) {
    const Analysis llama = analysis_of("hf_llama_1b_h200_torch_profiler.json.gz");
    ASSERT_EQ(llama.steps.size(), 4U);
    EXPECT_EQ(llama.steps[0].stage, "prefill");
    EXPECT_EQ(llama.steps[0].tokens, 2048.0);
    for (std::size_t i = 1; i < 4; ++i) {
        EXPECT_EQ(llama.steps[i].stage, "decode");
        EXPECT_EQ(llama.steps[i].batch, 4.0);
        EXPECT_EQ(llama.steps[i].context, 512.0 + static_cast<double>(i));
    }
    EXPECT_EQ(llama.layers, 16.0);
    // 644 kernels of the layers of a decode in 1.911 ms, as its table has them: an average of 16.
    EXPECT_NE(analysis_text(llama, {}).find("one of 16 layers on average: 119.4 us in 40.25 operators"),
              std::string::npos);
    EXPECT_EQ(stage(llama, "decode").repetitions, 3.0);
    EXPECT_EQ(stage(llama, "decode").produced, 4.0);
    EXPECT_EQ(llama.account.device.name, "h200-sxm");
}

TEST(Kineto, KeepsTheLastStepOfEachStageKernelByKernel) {
    const Analysis analysis = analysis_of("hf_llama_1b_h200_torch_profiler.json.gz");
    ASSERT_EQ(analysis.timelines.size(), 2U);
    for (const StepEvents& shown : analysis.timelines) {
        const StepTime* step = nullptr;
        for (const StepTime& each : analysis.steps) {
            if (each.stage == shown.stage) step = &each;  // the last one
        }
        ASSERT_NE(step, nullptr);
        EXPECT_EQ(shown.step, step->name);
        double busy = 0.0;
        for (const RanInStep& event : shown.events) {
            busy += event.end_s - event.begin_s;
            EXPECT_GE(event.begin_s, 0.0);
            EXPECT_LT(event.stream, shown.streams.size());
        }
        EXPECT_NEAR(busy, step->busy.value, 1e-12);
    }
}

TEST(Kineto, FindsStepsWithoutNamedRanges) {
    const Analysis llama = analysis_of("llama_unannotated.json.gz");
    ASSERT_EQ(llama.steps.size(), 4U);
    EXPECT_EQ(llama.steps[0].name, "prefill 1");
    EXPECT_EQ(llama.steps[3].name, "decode 3");
    EXPECT_EQ(llama.steps[3].context, 131.0);  // 128 of the prompt and three tokens
}

// Products of 4 x 512 = 2048 tokens; weights q and o 2048 x 2048, k and v 2048 x 512, gate, up and down 2048 x 8192.
//   qkv       2 * 2048 * 2048 * (2048 + 512 + 512) * 16 layers = 412,316,860,416
//   out       2 * 2048 * 2048 * 2048 * 16                      = 274,877,906,944
//   gate, up  2 * 2048 * 2048 * 8192 * 2 * 16                  = 2,199,023,255,552
//   down      half of that                                     = 1,099,511,627,776
//   head      2 * 2048 * 2048 * 128256: logits of all tokens   = 1,075,889,307,648 (and 4 rows when decoding)
//   core      2 * 4 * 32 heads * 512 * 513 / 2 pairs * (64 + 64) * 16 = 68,853,694,464
TEST(Kineto, FlopsOfProductsFollowFromTheirShapesExactly) {
    const Analysis llama = analysis_of("hf_llama_1b_h200_torch_profiler.json.gz");
    const AccountStage& prefill = stage(llama, "prefill");
    const auto flops = [&](const AccountStage& in, const char* name) {
        const Record* record = find(in, name);
        return record == nullptr ? -1.0 : record->work.flops.value;
    };
    EXPECT_EQ(flops(prefill, "layers.attention.qkv"), 412'316'860'416.0);
    EXPECT_EQ(flops(prefill, "layers.attention.out"), 274'877'906'944.0);
    EXPECT_EQ(flops(prefill, "layers.ffn.gate_up"), 2'199'023'255'552.0);
    EXPECT_EQ(flops(prefill, "layers.ffn.down"), 1'099'511'627'776.0);
    EXPECT_EQ(flops(prefill, "layers.attention.core"), 68'853'694'464.0);
    EXPECT_EQ(flops(prefill, "head"), 1'075'889'307'648.0);
    const AccountStage& decode = stage(llama, "decode");
    EXPECT_EQ(flops(decode, "head"), 2.0 * 4 * 2048 * 128256);
    EXPECT_EQ(flops(decode, "layers.ffn.down"), 2.0 * 4 * 2048 * 8192 * 16);
    EXPECT_EQ(find(decode, "layers.ffn.down")->count, 16.0);
    EXPECT_EQ(find(decode, "layers.attention.qkv")->count, 48.0);
    // Weights of two bytes, read once; keys and values of 513 to 515 tokens, 514 on average.
    EXPECT_EQ(find(decode, "layers.ffn.down")->weights.value, 2.0 * 2048 * 8192 * 16);
    EXPECT_NEAR(find(decode, "layers.attention.core")->kv.value, 2.0 * 2 * 4 * 8 * 514 * 64 * 16, 1.0);
}

TEST(Kineto, TheSameWorkHoweverItIsCut) {
    const Analysis llama = analysis_of("hf_llama_1b_h200_torch_profiler.json.gz");
    for (const char* by : {"operator", "kernel", "group"}) {
        const auto other = cut(llama, by);
        ASSERT_EQ(other.size(), llama.account.stages.size());
        for (std::size_t i = 0; i < other.size(); ++i) {
            double flops[2] = {};
            double time[2] = {};
            for (const Record& record : llama.account.stages[i].records) {
                flops[0] += record.work.flops.value;
                time[0] += record.kind == Kind::idle ? 0.0 : record.times.measured->value;
            }
            for (const Record& record : other[i].records) {
                flops[1] += record.work.flops.value;
                time[1] += record.kind == Kind::idle ? 0.0 : record.times.measured->value;
            }
            EXPECT_NEAR(flops[1], flops[0], flops[0] * 1e-9) << by;
            EXPECT_NEAR(time[1], time[0], 1e-12 + time[0] * 1e-9) << by;
        }
    }
}

// Mixtral: hidden 1024, experts of 3584, two of eight for each of 2 x 128 tokens; three layers.
//   gate and up  2 * 512 rows * 1024 * 7168 * 3 = 22,548,578,304;  down half;  router 2 * 256 * 1024 * 8 * 3 =
//   12,582,912
TEST(Kineto, FindsRouterAndExperts) {
    const Analysis mixtral = analysis_of("mixtral_like.json.gz");
    const AccountStage& prefill = stage(mixtral, "prefill");
    ASSERT_NE(find(prefill, "layers.ffn.experts.gate_up"), nullptr);
    EXPECT_EQ(find(prefill, "layers.ffn.experts.gate_up")->work.flops.value, 22'548'578'304.0);
    EXPECT_EQ(find(prefill, "layers.ffn.experts.down")->work.flops.value, 11'274'289'152.0);
    EXPECT_EQ(find(prefill, "layers.ffn.router")->work.flops.value, 12'582'912.0);
    EXPECT_EQ(find(prefill, "layers.ffn.experts.down")->group, Group::moe);
    EXPECT_EQ(mixtral.layers, 3.0);
}

// GPT-2: one product for queries, keys and values (768 x 2304), up 768 x 3072 and down, all with a bias; four layers.
TEST(Kineto, FindsAttentionThatIsWrittenOut) {
    const Analysis gpt2 = analysis_of("gpt2_eager.json.gz");
    EXPECT_EQ(gpt2.layers, 4.0);
    ASSERT_EQ(gpt2.steps.size(), 3U);
    EXPECT_EQ(gpt2.steps[0].tokens, 256.0);
    EXPECT_EQ(gpt2.steps[2].context, 130.0);
    const AccountStage& prefill = stage(gpt2, "prefill");
    ASSERT_NE(find(prefill, "layers.attention.qkv"), nullptr);
    EXPECT_EQ(find(prefill, "layers.attention.qkv")->work.flops.value, 2.0 * 256 * 768 * 2304 * 4);
    EXPECT_EQ(find(prefill, "layers.ffn.up")->work.flops.value, 2.0 * 256 * 768 * 3072 * 4);
    EXPECT_EQ(find(prefill, "layers.ffn.down")->count, 4.0);
    EXPECT_EQ(find(prefill, "layers.attention.core")->kind, Kind::attention);
    EXPECT_EQ(find(prefill, "head")->work.flops.value, 2.0 * 256 * 768 * 50257);
}

TEST(Kineto, TellsNormsBehindBlocksFromThoseBefore) {
    const Analysis gemma = analysis_of("gemma2_eager.json.gz");
    EXPECT_EQ(gemma.layers, 2.0);
    const AccountStage& prefill = stage(gemma, "prefill");
    for (const char* name :
         {"layers.attention.post_norm", "layers.ffn.post_norm", "layers.attention.norm", "final_norm"})
        EXPECT_NE(find(prefill, name), nullptr) << name;
    // A residual adds 2 x 128 x 1024 numbers in each of two layers.
    EXPECT_EQ(find(prefill, "layers.ffn.residual")->work.flops.value, 2.0 * 128 * 1024 * 2);
}

TEST(Kineto, CompiledKernelsKeepTheirPlaceInTheLayer) {
    const Analysis compiled = analysis_of("llama_compiled.json.gz");
    EXPECT_EQ(compiled.layers, 2.0);
    const AccountStage& prefill = stage(compiled, "prefill");
    EXPECT_EQ(prefill.repetitions, 2.0);
    // Two layers of hidden 1024: q 1024, k and v 256 wide, 2 x 128 tokens.
    ASSERT_NE(find(prefill, "layers.attention.qkv"), nullptr);
    EXPECT_EQ(find(prefill, "layers.attention.qkv")->work.flops.value, 2.0 * 256 * 1024 * 1536 * 2);
    EXPECT_EQ(find(prefill, "layers.ffn.down")->work.flops.value, 2.0 * 256 * 1024 * 2816 * 2);
}

TEST(Kineto, KernelsInGraphsAreListedAsUnexplained) {
    const Analysis graphs = analysis_of("llama_compiled_graphs.json.gz");
    EXPECT_LT(graphs.explained_time / graphs.kernel_time, 0.05);
    ASSERT_FALSE(graphs.unattributed.empty());
    EXPECT_NE(graphs.unattributed.front().why.find("graph"), std::string::npos);
    EXPECT_EQ(graphs.layers, 2.0);  // seen in the names of kernels alone
    EXPECT_TRUE(std::any_of(graphs.account.notes.begin(), graphs.account.notes.end(),
                            [](const std::string& note) { return note.find("--model") != std::string::npos; }));
}

TEST(Kineto, SaysThatDecodeIsLaunchBound) {
    const Analysis llama = analysis_of("hf_llama_1b_h200_torch_profiler.json.gz");
    ASSERT_FALSE(llama.diagnoses.empty());
    const Diagnosis& first = llama.diagnoses.front();
    EXPECT_EQ(first.stage, "decode");
    EXPECT_EQ(first.move, "launch");
    EXPECT_NE(first.words.find("launch-bound"), std::string::npos);
    EXPECT_GT(first.gain, 5.0);
    // Never more than the step holds.
    for (const Diagnosis& diagnosis : llama.diagnoses)
        EXPECT_LT(diagnosis.saved, *stage(llama, diagnosis.stage).times.measured);
}

TEST(Kineto, LimitNeverExceedsAttainable) {
    for (const std::string& file : real_traces()) {
        for (const AccountStage& one : analysis_of(file).account.stages) {
            EXPECT_LE(one.times.limit, one.times.attainable);
            for (const Record& record : one.records)
                EXPECT_LE(record.times.limit.value, record.times.attainable.value * (1 + 1e-12));
        }
    }
}

// ---- small traces ----

std::string event(const std::string& category, const std::string& name, double begin, double duration,
                  const std::string& arguments) {
    return fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": 1, "ts": {}, "dur": {}, "args": {{{}}}}})",
        category, name, begin, duration, arguments);
}

std::string product_at(int id, double time) {
    return event("cpu_op", "aten::mm", time, 5,
                 fmt::format(R"("External id": {}, "Input Dims": [[4, 8], [8, 16]], "Input type": ["float", "float"])",
                             id)) +
           "," + event("cuda_runtime", "cudaLaunchKernel", time + 1, 2, fmt::format(R"("correlation": {})", id)) + "," +
           event("kernel", "gemm", time + 10, 3.5, fmt::format(R"("device": 0, "stream": 7, "correlation": {})", id));
}

TEST(Kineto, TiesAKernelToItsOperatorByTheCallWhenItCarriesNoNumber) {
    const auto analysis = of_text(R"({"traceEvents": [)" + product_at(1, 0) + "," + product_at(2, 100) + "]}");
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(analysis->explained_time.value, analysis->kernel_time.value);
    EXPECT_EQ(std::llround(analysis->kernel_time.value * 1e9), 7000);
    ASSERT_EQ(analysis->account.stages.size(), 1U);
    // 2 * 4 * 8 * 16, twice; 4 bytes for each of 4 x 8 + 8 x 16 + 4 x 16 numbers.
    EXPECT_EQ(analysis->account.stages[0].records.front().work.flops.value, 2048.0);
    EXPECT_EQ(analysis->account.stages[0].records.front().work.at(Level::memory).value, 2.0 * 4 * (32 + 128 + 64));
    EXPECT_FALSE(analysis->device_known);
    // Idle from the end of the first kernel (13.5) to the beginning of the second (110).
    EXPECT_EQ(std::llround(analysis->whole.idle.value * 1e9), 96'500);
}

TEST(Kineto, ReadsTheListOfEventsAloneAndCategoriesOfOldFiles) {
    const std::string old =
        R"([{"ph": "X", "cat": "Operator", "name": "aten::relu", "pid": 1, "tid": 2, "ts": 1, "dur": 4, "args": {"External id": 3, "Input dims": [[10]], "Input type": ["float"]}},
            {"ph": "X", "cat": "Kernel", "name": "relu", "pid": 0, "tid": 7, "ts": 6, "dur": 2, "args": {"external id": 3}}])";
    const auto analysis = of_text(old);
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_DOUBLE_EQ(analysis->explained_time.value, 2e-6);
    EXPECT_FALSE(analysis->partial);
}

TEST(Kineto, ReadsFilesFromBeforeCategoriesAndSaysWhatIsMissing) {
    const auto analysis = of_text(
        R"([{"name": "addmm", "ph": "X", "ts": 1, "dur": 9, "tid": 0, "pid": "CPU functions", "args": {}},
            {"name": "gemm", "ph": "X", "ts": 5, "dur": 2, "tid": 0, "pid": "CUDA functions", "args": {}}])");
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_DOUBLE_EQ(analysis->kernel_time.value, 2e-6);
    EXPECT_EQ(analysis->explained_time.value, 0.0);
    EXPECT_EQ(analysis->unattributed.size(), 1U);
    ASSERT_GE(analysis->account.notes.size(), 2U);
}

TEST(Kineto, AFileThatStopsGivesWhatThereIsAndSaysSo) {
    const std::string whole = R"({"traceEvents": [)" + product_at(1, 0) + "," + product_at(2, 100) + "]}";
    const std::size_t first = whole.find("\"kernel\"");
    const std::size_t second = whole.find("\"kernel\"", first + 1);
    for (std::size_t cut_at = second - 100; cut_at < whole.size() - 2; ++cut_at) {
        const auto analysis = of_text(whole.substr(0, cut_at));
        ASSERT_TRUE(analysis) << cut_at << ": " << analysis.error().text;
        EXPECT_TRUE(analysis->partial) << cut_at;
        EXPECT_NE(analysis->account.notes.front().find("stops in the middle"), std::string::npos);
    }
}

TEST(Kineto, WhatIsNoJsonIsOneLineWithTheByte) {
    const auto broken = of_text(R"({"traceEvents": [{"ph": "X" "name": 3}]})");
    ASSERT_FALSE(broken);
    // {"traceEvents": [ is 17 bytes, {"ph": "X" and a blank 11 more; counted from zero.
    EXPECT_EQ(broken.error().text, "made.json: byte 28: expected a comma or a closing brace, found '\"'");
    EXPECT_NE(of_text(R"({"traceEvents": [1, 2]})").error().text.find("byte 17: expected an object"),
              std::string::npos);
    EXPECT_NE(of_text(R"({"traceEvents": [{"args": [}]})").error().text.find("expected a closing bracket"),
              std::string::npos);
}

TEST(Kineto, HostileFilesAreRefusedOrReadButNeverCrash) {
    const std::string deep = R"({"traceEvents": [{"args": {"a": )" + std::string(100'000, '[');
    ASSERT_FALSE(of_text(deep));
    EXPECT_NE(of_text(deep).error().text.find("256 levels"), std::string::npos);
    const std::vector<std::string> files = {
        R"({"traceEvents": []})",
        R"({"traceEvents": [{}]})",
        R"({"traceEvents": null})",
        R"({"traceEvents": [)",
        "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"\xff\xfe\x1b[31m\", \"ts\": 1e999, "
        "\"dur\": 1}]}",
        R"({"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 99999999999999999999999999, "dur": -5}]})",
        R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 1, "args": {"Input Dims": [[999999999999999999999, -5], "x", {}, [[1], 2]], "Input type": [1, 2]}}]})",
        R"({"traceEvents": [{"ph": "X", "ph": "X", "cat": "kernel", "cat": "kernel", "name": "a", "name": "b", "ts": 1, "dur": 1, "args": {"stream": "x", "stream": 3}}]})",
    };
    for (const std::string& file : files) {
        const auto analysis = of_text(file);
        if (!analysis) {
            EXPECT_EQ(analysis.error().text.find('\n'), std::string::npos);
        } else {
            const std::string text = analysis_text(*analysis, {});
            EXPECT_EQ(text.find('\x1b'), std::string::npos) << "control characters must not reach a terminal";
        }
    }
}

}  // namespace
}  // namespace roofline::analyze
