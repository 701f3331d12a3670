// Benchmarks of engines, our own CSV and Google Benchmark: what each file becomes, and what broken ones get.
#include <cmath>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/analyze/format.hpp"
#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/profile_file.hpp"

namespace roofline::analyze {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

Result<Analysis> analyzed(std::string text, const Options& options = {}) {
    Input input = Input::from_memory("x", std::move(text));
    return analyze(input, options);
}

std::string problem(std::string text) {
    const auto result = analyzed(std::move(text));
    return result ? "no problem" : result.error().text;
}

Options on(const std::string& device) {
    Options options;
    options.device = *io::builtin_device(device);
    return options;
}

Options running(const std::string& model, const std::string& device) {
    Options options = on(device);
    const auto file = io::builtin_model(model);
    EXPECT_TRUE(file);
    predict::Setup& setup = options.model.emplace();
    setup.model_name = model;
    setup.architecture = std::make_shared<const model::Architecture>(file->architecture);
    setup.checkpoint = std::make_shared<const model::TypePlan>(file->types);
    setup.checkpoint_summary = file->types_summary;
    setup.device = *options.device;
    setup.execution.profile = *io::builtin_profile("engine", setup.device);
    setup.execution.calibration = std::make_shared<const predict::Calibration>(*io::builtin_calibration(setup.device));
    return options;
}

const AccountStage* stage(const Analysis& analysis, const std::string& name) {
    for (const AccountStage& each : analysis.account.stages) {
        if (each.name == name) return &each;
    }
    return nullptr;
}

// ---- our own CSV ----

TEST(OwnCsv, RowsBecomeRecordsHeldAgainstTheDevice) {
    const auto analysis = analyzed(
        "# what we timed\nname,count,time_us,flops,bytes,stage,group,dtype\n"
        "layers.ffn.down,32,\"1,480.5\",1e9,4.8e9,decode,ffn,bf16\nhead,1,200,,9.6e8,decode,head,bf16\n",
        on("h200-sxm"));
    ASSERT_TRUE(analysis) << analysis.error().text;
    const AccountStage* decode = stage(*analysis, "decode");
    ASSERT_NE(decode, nullptr);
    ASSERT_EQ(decode->records.size(), 2U);
    EXPECT_EQ(decode->records[0].count, 32.0);
    EXPECT_NEAR(decode->records[0].times.measured->value, 1480.5e-6, 1e-15);
    // 4.8e9 bytes at 4.8e12 byte/s take 1 ms, 1e9 flops a microsecond.
    EXPECT_NEAR(decode->records[0].times.limit.value, 1e-3, 1e-12);
    EXPECT_EQ(decode->records[0].group, Group::ffn);
    EXPECT_NEAR(decode->times.measured->value, 1680.5e-6, 1e-12);
}

TEST(OwnCsv, WrongCellsNameTheirLine) {
    EXPECT_EQ(problem("name,time_us\n"), "x: the table has a header and no rows");
    EXPECT_THAT(problem("name,time_us\na,b\n"), HasSubstr("x:2: time_us: found \"b\", expected a number"));
    EXPECT_THAT(problem("name,time_us\na,-1\n"), HasSubstr("x:2: time_us: found \"-1\""));
    EXPECT_THAT(problem("name,time_us\na,1,2\n"), HasSubstr("x:2: found 3 cells, expected 2"));
    EXPECT_THAT(problem("name,time_us,group\na,1,layer\n"), HasSubstr("x:2: group: found \"layer\""));
    EXPECT_THAT(problem("name,time_us\n,1\n"), HasSubstr("x:2: name: found nothing"));
    EXPECT_THAT(problem("name,time_us\na,1e999\n"), HasSubstr("x:2: time_us"));
}

// ---- llama-bench ----

const std::string bench_json = R"([
  { "build_commit": "8cf427ff", "gpu_info": "NVIDIA H200", "cpu_info": "AMD EPYC", "model_type": "llama 8B F16",
    "model_size": 16000000000, "model_n_params": 8000000000, "n_ubatch": 512, "n_gpu_layers": 99,
    "n_prompt": 1024, "n_gen": 0, "n_depth": 0, "avg_ns": 50000000, "avg_ts": 20480.0, "samples_ns": [1, 2, 3] },
  { "build_commit": "8cf427ff", "gpu_info": "NVIDIA H200", "cpu_info": "AMD EPYC", "model_type": "llama 8B F16",
    "model_size": 16000000000, "model_n_params": 8000000000, "n_ubatch": 512, "n_gpu_layers": 99,
    "n_prompt": 0, "n_gen": 128, "n_depth": 4096, "avg_ns": 1280000000, "avg_ts": 100.0, "samples_ns": [1, 2, 3] } ])";

TEST(LlamaBench, JsonGivesStagesWithTheTimeOfAStepAndTheLimitOfTheWeights) {
    const auto analysis = analyzed(bench_json);
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(analysis->account.device.name, "h200-sxm");
    const AccountStage* prefill = stage(*analysis, "prefill pp1024");
    ASSERT_NE(prefill, nullptr);
    EXPECT_NEAR(prefill->times.measured->value, 0.05, 1e-12);
    EXPECT_NEAR(prefill->tokens_per_second(*prefill->times.measured), 20480.0, 1e-6);
    EXPECT_EQ(prefill->records[0].work.at(Level::memory).value, 32e9) << "two pieces of 512 read the weights twice";
    const AccountStage* decode = stage(*analysis, "decode tg128 at 4096");
    ASSERT_NE(decode, nullptr);
    EXPECT_NEAR(decode->times.measured->value, 0.01, 1e-12);
    EXPECT_NEAR(decode->context, 4096.0 + 64.5, 1e-9);
    // 16e9 bytes at 4.8e12 byte/s.
    EXPECT_NEAR(decode->records[0].times.limit.value, 16e9 / 4.8e12, 1e-9);
    EXPECT_EQ(decode->repetitions, 3.0 * 128.0);
}

TEST(LlamaBench, AModelGivesWhatToExpectInPlaceOfTheWeightsAlone) {
    const auto analysis = analyzed(bench_json, running("llama-3.1-8b", "h200-sxm"));
    ASSERT_TRUE(analysis) << analysis.error().text;
    ASSERT_EQ(analysis->joined.size(), 2U);
    const AccountStage* decode = stage(*analysis, "decode tg128 at 4096");
    ASSERT_NE(decode, nullptr);
    EXPECT_GT(decode->records.size(), 5U);
    EXPECT_GT(decode->times.limit.value, 16e9 / 4.8e12 * 0.9);
    EXPECT_LE(decode->times.limit.value, decode->times.expected.value);
    EXPECT_EQ(analysis->joined[1].measured.value, decode->times.measured->value);
}

TEST(LlamaBench, LinesCsvAndMarkdownSayTheSame) {
    const std::string one =
        R"({"build_commit": "a", "gpu_info": "NVIDIA H200", "model_type": "m", "model_size": 1073741824, "model_n_params": 1000000000, "n_ubatch": 512, "n_prompt": 512, "n_gen": 0, "avg_ns": 1000000000, "avg_ts": 512.0})";
    const std::string lines = one + "\n" + one + "\n";
    const std::string csv =
        "build_commit,gpu_info,model_type,model_size,model_n_params,n_ubatch,n_prompt,n_gen,avg_ns,avg_ts\n"
        "\"a\",\"NVIDIA H200\",\"m\",\"1073741824\",\"1000000000\",\"512\",\"512\",\"0\",\"1000000000\",\"512.0\"\n";
    const std::string markdown =
        "ggml_cuda_init: found 1 CUDA devices:\n  Device 0: NVIDIA H200, compute capability 9.0, VMM: yes\n"
        "| model |       size |     params | backend | ngl |          test |              t/s |\n"
        "| ----- | ---------: | ---------: | ------- | --: | ------------: | ---------------: |\n"
        "| m     |   1.00 GiB |     1.00 B | CUDA    |  99 |         pp512 |    512.00 ± 1.25 |\n"
        "| m     |   1.00 GiB |     1.00 B | CUDA    |  99 | tg32 @ d4096  |     64.00 ± 0.10 |\n";
    for (const std::string& text : {lines, csv, markdown}) {
        const auto analysis = analyzed(text);
        ASSERT_TRUE(analysis) << analysis.error().text;
        EXPECT_EQ(analysis->account.device.name, "h200-sxm");
        const AccountStage* prefill = stage(*analysis, "prefill pp512");
        ASSERT_NE(prefill, nullptr);
        EXPECT_NEAR(prefill->times.measured->value, 1.0, 1e-9);
        EXPECT_NEAR(prefill->records.at(0).work.at(Level::memory).value, 1073741824.0, 1.0);
    }
    const auto table = analyzed(markdown);
    ASSERT_NE(stage(*table, "decode tg32 at 4096"), nullptr);
    EXPECT_NEAR(stage(*table, "decode tg32 at 4096")->times.measured->value, 1.0 / 64.0, 1e-9);
    EXPECT_NE(stage(*analyzed(lines), "prefill pp512, run 2"), nullptr) << "the same test again keeps its own stage";
}

TEST(LlamaBench, LinesThatWereCutOffGiveTheOthers) {
    const std::string one =
        R"({"build_commit": "a", "model_type": "m", "n_prompt": 512, "n_gen": 0, "avg_ns": 1000000, "avg_ts": 1.0})";
    const auto analysis = analyzed(one + "\n" + one.substr(0, 40));
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(analysis->account.stages.size(), 1U);
    EXPECT_THAT(analysis->account.notes, Contains(HasSubstr("line 2 is cut off")));
}

Analysis of_file(const std::string& name) {
    auto input = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/" + name);
    EXPECT_TRUE(input) << (input ? "" : input.error().text);
    if (!input) return {};
    auto analysis = analyze(*input, {});
    EXPECT_TRUE(analysis) << (analysis ? "" : analysis.error().text);
    return analysis ? std::move(*analysis) : Analysis{};
}

// Four runs of llama-bench (data/README.md), each in one of its formats. The files say how long a test took (avg_ns),
// the table only how many tokens a second.
TEST(LlamaBench, ReadsWhatTheProgramReallyWrites) {
    struct Ran {
        const char* file;
        double prompt_s;
        double token_s;
    };
    for (const Ran& ran :
         {Ran{"llama_bench.json", 0.154517973, 0.159511440 / 16},
          Ran{"llama_bench.jsonl", 0.099740443, 0.119652569 / 16},
          Ran{"llama_bench.csv", 0.098760319, 0.118758106 / 16}, Ran{"llama_bench.md", 128 / 1223.76, 1 / 137.81}}) {
        const Analysis analysis = of_file(ran.file);
        const AccountStage* prefill = stage(analysis, "prefill pp128");
        const AccountStage* decode = stage(analysis, "decode tg16");
        ASSERT_NE(prefill, nullptr) << ran.file;
        ASSERT_NE(decode, nullptr) << ran.file;
        EXPECT_NEAR(prefill->times.measured->value, ran.prompt_s, 1e-9) << ran.file;
        EXPECT_NEAR(decode->times.measured->value, ran.token_s, 1e-9) << ran.file;
        // 44,044,800 weights of two bytes; the table says 84.02 MiB.
        EXPECT_NEAR(decode->records.at(0).work.at(Level::memory).value, 88098816.0, 5e3) << ran.file;
    }
}

// ---- llama.cpp's own lines ----

// llama-completion with 13 words to read and 24 to write, of which the first comes from the prompt.
TEST(LlamaPerf, ReadsWhatTheProgramReallyPrints) {
    const Analysis analysis = of_file("llama_completion.log");
    const AccountStage* prefill = stage(analysis, "prefill");
    const AccountStage* decode = stage(analysis, "decode");
    ASSERT_NE(prefill, nullptr);
    ASSERT_NE(decode, nullptr);
    EXPECT_EQ(prefill->tokens, 13.0);
    EXPECT_NEAR(prefill->times.measured->value, 22.06e-3, 1e-9);
    EXPECT_EQ(decode->repetitions, 23.0);
    EXPECT_NEAR(decode->times.measured->value, 130.92e-3 / 23.0, 1e-9);
}

TEST(LlamaPerf, LinesAnywhereInALogBecomePrefillAndDecode) {
    const auto analysis = analyzed(
        "  Device 0: NVIDIA H200, compute capability 9.0, VMM: yes\n"
        "print_info: model type       = 8B\nprint_info: model params     = 8.03 B\n"
        "print_info: file size   = 14.96 GiB (16.00 BPW)\n"
        "llama_perf_context_print:        load time =     812.33 ms\n"
        "llama_perf_context_print: prompt eval time =     100.00 ms /   512 tokens (    0.20 ms per token,  5120.00 "
        "tokens "
        "per second)\n"
        "llama_perf_context_print:        eval time =    1270.00 ms /   127 runs   (   10.00 ms per token,   100.00 "
        "tokens "
        "per second)\n"
        "llama_perf_context_print:       total time =    1400.00 ms /   639 tokens\n");
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(analysis->account.device.name, "h200-sxm");
    EXPECT_EQ(analysis->account.model, "8B");
    ASSERT_EQ(analysis->account.stages.size(), 2U);
    EXPECT_NEAR(stage(*analysis, "prefill")->times.measured->value, 0.1, 1e-12);
    EXPECT_NEAR(stage(*analysis, "decode")->times.measured->value, 0.01, 1e-12);
    EXPECT_EQ(stage(*analysis, "decode")->context, 512.0 + 64.0);
    // 14.96 GiB = 16.06e9 bytes.
    EXPECT_NEAR(stage(*analysis, "decode")->records[0].work.at(Level::memory).value, 14.96 * 1073741824.0, 1.0);
}

TEST(LlamaPerf, LinesWithoutTimesAreAProblem) {
    EXPECT_THAT(problem("eval time =    nan ms /   127 runs\n"), HasSubstr("x: found no line with a time"));
}

// ---- serving ----

const std::string served =
    R"({"date": "20260101", "backend": "vllm", "model_id": "meta-llama/Llama-3.1-8B-Instruct", "num_prompts": 100,
        "request_rate": "inf", "max_concurrency": 16, "duration": 50.0, "completed": 100, "total_input_tokens": 102400,
        "total_output_tokens": 12800, "request_throughput": 2.0, "output_throughput": 256.0,
        "mean_ttft_ms": 100.0, "median_ttft_ms": 90.0, "p99_ttft_ms": 300.0,
        "mean_tpot_ms": 20.0, "median_tpot_ms": 19.0, "p99_tpot_ms": 30.0, "std_tpot_ms": NaN})";

TEST(Serving, LatenciesAndRatesBecomeStages) {
    const auto analysis = analyzed(served);
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_NEAR(stage(*analysis, "first token")->times.measured->value, 0.1, 1e-12);
    EXPECT_NEAR(stage(*analysis, "next token")->times.measured->value, 0.02, 1e-12);
    const AccountStage* whole = stage(*analysis, "serving");
    EXPECT_NEAR(whole->tokens_per_second(*whole->times.measured), 256.0, 1e-9);
    // Little: 2 requests a second, each 0.1 s + 127 tokens of 0.02 s = 2.64 s: 5.28 at a time.
    EXPECT_NEAR(stage(*analysis, "next token")->batch, 5.28, 1e-9);
    EXPECT_EQ(analysis->account.model, "meta-llama/Llama-3.1-8B-Instruct");
}

TEST(Serving, APredictionUnderTheSameLoadStandsBeside) {
    const auto analysis = analyzed(served, running("llama-3.1-8b", "h200-sxm"));
    ASSERT_TRUE(analysis) << analysis.error().text;
    ASSERT_EQ(analysis->joined.size(), 3U);
    for (const AccountStage& each : analysis->account.stages) {
        EXPECT_GT(each.times.limit.value, 0.0) << each.name;
        EXPECT_LE(each.times.limit.value, each.times.attainable.value) << each.name;
        EXPECT_LE(each.times.attainable.value, each.times.expected.value) << each.name;
    }
}

TEST(Serving, ADocumentALineIsNumbered) {
    std::string line = served;
    std::erase(line, '\n');
    const auto analysis = analyzed(line + "\n" + line + "\n");
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(analysis->account.stages.size(), 6U);
    EXPECT_NE(stage(*analysis, "serving 2"), nullptr);
}

TEST(Serving, WhatIsMissingIsNamed) {
    EXPECT_THAT(
        problem(R"({"total_input_tokens": 1, "total_output_tokens": 1, "request_throughput": 1, "completed": 1})"),
        HasSubstr("x: duration: found nothing, expected a number above zero"));
    EXPECT_THAT(
        problem(R"({"duration": 0, "total_input_tokens": 1, "total_output_tokens": 1, "request_throughput": 1})"),
        HasSubstr("duration"));
}

// ---- Google Benchmark ----

TEST(GoogleBenchmark, RatesBecomeBytesAndFlopsOfAnIteration) {
    const auto analysis = analyzed(R"({"context": {"num_cpus": 2, "library_build_type": "release"}, "benchmarks": [
        {"name": "triad/1000000", "run_type": "iteration", "iterations": 100, "real_time": 2.0, "cpu_time": 1.0,
         "time_unit": "ms", "bytes_per_second": 2.4e10, "FLOPS": 2.0e9},
        {"name": "triad/real_time", "run_type": "iteration", "iterations": 100, "real_time": 2.0, "cpu_time": 1.0,
         "time_unit": "ms", "bytes_per_second": 2.4e10, "GFLOPS": 2.0},
        {"name": "nothing", "run_type": "iteration", "real_time": 5.0, "cpu_time": 5.0, "time_unit": "us"},
        {"name": "failed", "run_type": "iteration", "error_occurred": true, "error_message": "x"},
        {"name": "triad/1000000_mean", "run_type": "aggregate", "aggregate_name": "mean", "real_time": 2.0, "cpu_time": 1.0}]})",
                                   on("xeon-8480"));
    ASSERT_TRUE(analysis) << analysis.error().text;
    const std::vector<Record>& records = analysis->account.stages.at(0).records;
    ASSERT_EQ(records.size(), 3U);
    // Rates are by CPU time (1 ms) unless the name says real time (2 ms).
    EXPECT_NEAR(records[0].work.at(Level::memory).value, 2.4e7, 1.0);
    EXPECT_NEAR(records[0].work.flops.value, 2e6, 1e-3);
    EXPECT_NEAR(records[1].work.at(Level::memory).value, 4.8e7, 1.0);
    EXPECT_NEAR(records[1].work.flops.value, 4e6, 1e-3);
    EXPECT_NEAR(records[0].times.measured->value, 2e-3, 1e-12);
    EXPECT_THAT(analysis->account.notes, Contains(HasSubstr("1 runs have neither")));
    EXPECT_THAT(analysis->account.notes, Contains(HasSubstr("1 entries failed")));
}

TEST(GoogleBenchmark, AggregatesAloneGiveTheMedian) {
    const auto analysis = analyzed(R"({"context": {"num_cpus": 2}, "benchmarks": [
        {"name": "a_mean", "run_name": "a", "run_type": "aggregate", "aggregate_name": "mean", "real_time": 9, "time_unit": "us"},
        {"name": "a_median", "run_name": "a", "run_type": "aggregate", "aggregate_name": "median", "real_time": 7, "time_unit": "us"}]})");
    ASSERT_TRUE(analysis) << analysis.error().text;
    ASSERT_EQ(analysis->account.stages.at(0).records.size(), 1U);
    EXPECT_EQ(analysis->account.stages[0].records[0].name, "a");
    EXPECT_NEAR(analysis->account.stages[0].records[0].times.measured->value, 7e-6, 1e-15);
}

// ---- all of them ----

TEST(Formats, EveryTableIsReadByItsOwnReaderAndNoOther) {
    const std::pair<const char*, std::string> files[] = {
        {"llama-bench", bench_json},
        {"serving", served},
        {"csv", "name,count,time_us,flops,bytes\na,1,1,1,1\n"},
        {"google-benchmark", R"({"context": {"num_cpus": 2}, "benchmarks": []})"},
        {"llama-perf", "eval time = 10.00 ms / 2 runs\n"},
        {"ncu", "\"ID\",\"Process ID\",\"Kernel Name\"\n"}};
    for (const auto& [name, text] : files) {
        for (const Format& format : formats())
            EXPECT_EQ(format.recognises(text), format.short_name == name) << format.short_name << " of " << name;
    }
}

TEST(Formats, HostileFilesAreProblemsNeverMore) {
    const std::string starts[] = {
        bench_json, served, "name,count,time_us,flops,bytes\na,1,1,1,1\n",
        R"({"context": {"num_cpus": 2}, "benchmarks": [{"name": "a", "real_time": 1, "cpu_time": 1, "time_unit": "us"}]})",
        "prompt eval time = 10.00 ms / 2 tokens\neval time = 10.00 ms / 2 runs\n"};
    for (const std::string& start : starts) {
        for (std::size_t kept = 0; kept < start.size(); kept += 5) (void)analyzed(start.substr(0, kept));
        for (std::size_t at = 0; at < start.size(); at += 3) {
            for (const char c : {'\0', '\xff', '"', '{', '9', ','}) {
                std::string changed = start;
                changed[at] = c;
                const auto result = analyzed(changed);
                if (!result) {
                    EXPECT_EQ(std::count(result.error().text.begin(), result.error().text.end(), '\n'), 0);
                    continue;
                }
                for (const AccountStage& each : result->account.stages)
                    EXPECT_FALSE(each.times.measured && std::isnan(each.times.measured->value));
            }
        }
    }
    EXPECT_THAT(problem(std::string(300000, '[')), HasSubstr("x: "));
    EXPECT_THAT(problem("{\"benchmarks\": " + std::string(5000, '[') + ", \"context\": \"num_cpus\""),
                HasSubstr("x: "));
    EXPECT_THAT(problem("{\"benchmarks\": [], \"benchmarks\": 3, \"context\": {\"num_cpus\": 1}}"), HasSubstr("x: "));
}

}  // namespace
}  // namespace roofline::analyze
