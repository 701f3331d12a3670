// `sweep` as a user runs it: which rows, what they say, and that they do not depend on how they came about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"
#include "cli/sweep_rows.hpp"

namespace roofline::cli::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Sweep, TheLastAxisVariesFastestAndWorkComesAfterWhatItIsDoneOn) {
    const auto rows = rows_of(output_of(sweep({"gpt2", "h100-sxm,l40s", "--context", "256,512", "--batch", "2,1",
                                               "--dtype", "fp16,bf16", "--stage", "decode", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 16U);
    EXPECT_THAT(column({rows.begin(), rows.begin() + 4}, "context"), ElementsAre("256", "512", "256", "512"));
    EXPECT_THAT(column({rows.begin(), rows.begin() + 5}, "batch"), ElementsAre("2", "2", "1", "1", "2"));
    EXPECT_THAT(column({rows.begin() + 3, rows.begin() + 5}, "dtype"), ElementsAre("fp16", "bf16"));
    EXPECT_THAT(column({rows.begin() + 7, rows.begin() + 9}, "device"), ElementsAre("h100-sxm", "l40s"));
}

TEST(Sweep, EveryRowSaysWhatPredictSays) {
    const auto rows = rows_of(output_of(
        sweep({"llama-3.1-8b,deepseek-v3", "h200-sxm", "--tp", "1,8", "--batch", "3,64", "--prompt", "100,2000",
               "--context", "prompt,5000", "--generate", "40", "--metrics", "all", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 32U);
    for (const Row& row : rows) {
        const Arguments arguments = {
            "predict",         row.at("model"), row.at("device"),   "--tp",           row.at("tp"),
            "--batch",         row.at("batch"), "--prompt",         row.at("prompt"), "--context",
            row.at("context"), "--generate",    row.at("generate"), "--format",       "json"};
        SCOPED_TRACE(typed(arguments));
        const Json report = parsed(run(arguments).out);
        ASSERT_TRUE(report.is_object());
        EXPECT_EQ(row.at("fits"), report["fit"]["fits"].get<bool>() ? "true" : "false");
        ASSERT_TRUE(report["fit"]["max_batch"].is_number());
        EXPECT_EQ(std::stod(row.at("max_batch")), report["fit"]["max_batch"].get<double>());
        ASSERT_EQ(report["stages"].size(), 2U);
        for (const Json& stage : report["stages"]) {
            const auto name = stage["stage"].get<std::string>();
            for (const char* which : {"limit", "attainable", "expected", "expected_low", "expected_high"})
                expect_close(row.at(name + "_" + which + "_s"), stage["time_s"][which].get<double>());
            expect_close(row.at(name + "_tokens_per_s"), stage["tokens_per_s"]["expected"].get<double>());
            expect_close(row.at(name + "_tokens_per_s_per_device"),
                         stage["tokens_per_s"]["expected"].get<double>() / std::stod(row.at("tp")));
            EXPECT_EQ(row.at(name + "_bound"), stage["bound"].get<std::string>());
            expect_close(row.at(name + "_flops"), stage["flops"].get<double>());
        }
        for (const char* metric : {"ttft", "tpot", "request"}) {
            for (const char* which : {"limit", "attainable", "expected"})
                expect_close(row.at(std::string(metric) + "_" + which + "_s"),
                             report["metrics"][std::string(metric) + "_s"][which].get<double>());
        }
        EXPECT_EQ(row.at("mixed_limit_s"), "");
        EXPECT_EQ(row.at("problem"), "");
        EXPECT_EQ(row.at("devices_used"), row.at("tp"));
    }
}

TEST(Sweep, ChunksHaveMixedStepsAsPredictShowsThem) {
    const auto rows = rows_of(output_of(sweep({"llama-3.1-8b", "h200-sxm", "--chunk", "0,256", "--batch", "4",
                                               "--metrics", "prefill,mixed,ttft", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_NE(rows[0].at("prefill_expected_s"), "");
    EXPECT_EQ(rows[0].at("mixed_expected_s"), "");
    EXPECT_EQ(rows[1].at("prefill_expected_s"), "");
    const Json report =
        parsed(run({"predict", "llama-3.1-8b", "h200-sxm", "--chunk", "256", "--batch", "4", "--format", "json"}).out);
    expect_close(rows[1].at("mixed_expected_s"), report["stages"][0]["time_s"]["expected"].get<double>());
    expect_close(rows[1].at("mixed_tokens_per_s"), report["stages"][0]["tokens_per_s"]["expected"].get<double>());
    expect_close(rows[1].at("ttft_expected_s"), report["metrics"]["ttft_s"]["expected"].get<double>());
}

TEST(Sweep, TheThreeTimesAreInOrderInEveryRow) {
    const auto rows = rows_of(output_of(with(small, {"--format", "csv"})));
    ASSERT_EQ(rows.size(), 105U);
    for (const Row& row : rows) {
        for (const char* stage : {"prefill", "decode"}) {
            const auto time = [&](const char* which) {
                return std::stod(row.at(std::string(stage) + "_" + which + "_s"));
            };
            EXPECT_GT(time("limit"), 0.0);
            EXPECT_LE(time("limit"), time("attainable"));
            EXPECT_LE(time("attainable"), time("expected"));
        }
    }
}

TEST(Sweep, APointThatHasNoAnswerKeepsItsRowAndSaysWhy) {
    // 64 heads go into 1, 2, 4 and 8 parts, not into 3; 70.6e9 parameters in bf16 do not go into 80 GB.
    const auto rows = rows_of(output_of(sweep({"llama-3.1-70b", "h100-sxm", "--tp", "1,3,8", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_THAT(column(rows, "fits"), ElementsAre("false", "", "true"));
    EXPECT_EQ(rows[0].at("max_batch"), "0");
    EXPECT_THAT(rows[1].at("problem"), HasSubstr("64 attention heads cannot be shared evenly by 3 devices"));
    EXPECT_EQ(rows[1].at("decode_expected_s"), "");
    EXPECT_EQ(rows[2].at("problem"), "");
}

TEST(Sweep, AWordThatMeansNothingIsBadInputBeforeAnythingIsWritten) {
    const TemporaryFolder folder;
    const auto refused = [&](const Arguments& rest, const std::string& why) {
        const Answer answer = run(with(sweep(rest), {"-o", folder.path("x.csv")}));
        SCOPED_TRACE(typed(rest));
        EXPECT_EQ(answer.exit_code, 2);
        EXPECT_THAT(answer.err, HasSubstr(why));
        EXPECT_EQ(lines_of(answer.err).size(), 1U) << answer.err;
        EXPECT_TRUE(folder.is_empty());
    };
    refused({"gpt2", "h100-sxm,h101"}, "no device is called \"h101\"");
    refused({"gpt2,gpt22", "h100-sxm"}, "gpt22");
    refused({"gpt2"}, "no DEVICE was named");
    refused({"gpt2", "h100-sxm", "--dtype", "bf16,bf17"}, "--dtype: found \"bf17\"");
    refused({"gpt2", "h100-sxm", "--tp", "1,x"}, "--tp: found \"x\"");
    refused({"gpt2", "h100-sxm", "--tp", "0-2"}, "--tp: found \"0\"");
    refused({"gpt2", "h100-sxm", "--batch", "0-2"}, "--batch: found \"0\"");
    refused({"gpt2", "h100-sxm", "--batch", "1-64*1"}, "--batch: found \"1-64*1\"");
    refused({"gpt2", "h100-sxm", "--attention", "flash,flush"}, "flush");
    refused({"gpt2", "h100-sxm", "--profile", "engine,motor"}, "motor");
    refused({"gpt2", "h100-sxm", "--set", "memory.bandwidth=1x,fast"}, "memory.bandwidth=fast");
    refused({"gpt2", "h100-sxm", "--metrics", "decode,speed"}, "--metrics: found \"speed\"");
    refused({"gpt2", "h100-sxm", "--shard", "3/2"}, "--shard: found \"3/2\"");
    refused({"gpt2", "h100-sxm", "--shard", "0/2"}, "--shard: found \"0/2\"");
    refused({"gpt2", "h100-sxm", "--threads", "0"}, "--threads: found \"0\"");
    refused({"gpt2", "h100-sxm", "-b", "1-1000000", "-c", "1-1000000", "-p", "1-1000"}, "million million");
}

TEST(Sweep, ATableSaysOnceWhatIsTheSameAndRefusesToBeEndless) {
    const std::string table = output_of(sweep({"gpt2", "h100-sxm", "--batch", "1,2"}));
    const auto lines = lines_of(table);
    ASSERT_EQ(lines.size(), 6U) << table;
    EXPECT_EQ(lines[0], "model gpt2, device h100-sxm, prompt 1024, context 1024");
    EXPECT_THAT(lines[2], HasSubstr("batch  fits  max batch"));
    EXPECT_THAT(lines[4], HasSubstr(" ms"));
    EXPECT_THAT(run(sweep({"gpt2", "h100-sxm", "--batch", "1-1001"})).err,
                HasSubstr("1,001 rows are too many for a table"));
}

TEST(Sweep, FiguresOfTheDeviceAreAxesToo) {
    // A limit of decoding that memory sets halves with twice the bandwidth.
    const auto rows = rows_of(output_of(sweep(
        {"llama-3.1-8b", "h100-sxm", "--set", "memory.bandwidth=1x,2x", "--stage", "decode", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_THAT(column(rows, "memory.bandwidth"), ElementsAre("1x", "2x"));
    EXPECT_THAT(column(rows, "decode_bound"), ElementsAre("memory", "memory"));
    expect_close(rows[0].at("decode_limit_s"), 2.0 * std::stod(rows[1].at("decode_limit_s")));
}

TEST(Sweep, TheRowsAreTheSameWhateverTheNumberOfThreads) {
    const std::string one = output_of(with(small, {"--format", "csv", "--threads", "1"}));
    EXPECT_EQ(lines_of(one).size(), 106U);
    EXPECT_EQ(one, output_of(with(small, {"--format", "csv", "--threads", "4"})));
    EXPECT_EQ(one, output_of(with(small, {"--format", "csv"})));
}

TEST(Sweep, ManyChunksStayInOrder) {
    // 20,000 rows are five chunks; each row names its own batch and context.
    const auto lines = lines_of(output_of(
        sweep({"gpt2", "h100-sxm", "-b", "1-200", "-c", "1-100", "--metrics", "fits", "--format", "csv", "-t", "3"})));
    ASSERT_EQ(lines.size(), 20'001U);
    for (std::size_t row = 0; row < 20'000; row += 37) {
        EXPECT_THAT(lines[row + 1], StartsWith("gpt2,h100-sxm," + std::to_string(row / 100 + 1) + ",1024," +
                                               std::to_string(row % 100 + 1) + ","));
    }
}

TEST(Sweep, ShardsOneAfterAnotherAreTheWhole) {
    const std::string whole = output_of(with(small, {"--format", "jsonl"}));
    std::string joined;
    for (const char* shard : {"1/4", "2/4", "3/4", "4/4"})
        joined += output_of(with(small, {"--format", "jsonl", "--shard", shard}));
    EXPECT_EQ(joined, whole);
    // 105 rows in four parts: 26, 26, 26 and 27.
    EXPECT_EQ(lines_of(output_of(with(small, {"--format", "jsonl", "--shard", "1/4"}))).size(), 26U);
    EXPECT_EQ(lines_of(output_of(with(small, {"--format", "jsonl", "--shard", "4/4"}))).size(), 27U);
    // More shards than rows: some are empty.
    EXPECT_EQ(output_of(sweep({"gpt2", "h100-sxm", "--format", "jsonl", "--shard", "1/3"})), "");
}

TEST(Sweep, LinesOfJsonFollowTheirSchemaAndHoldWhatTheTableHolds) {
    const Schema schema = Schema::published("sweep.schema.json");
    const Arguments arguments =
        sweep({"llama-3.1-8b", "h100-sxm", "--tp", "1,3", "--kv-cache-dtype", "fp8", "--enable-expert-parallel",
               "--overlap", "0,0.5", "--chunk", "0,128", "--metrics", "all"});
    const auto rows = rows_of(output_of(with(arguments, {"--format", "csv"})));
    const auto lines = lines_of(output_of(with(arguments, {"--format", "jsonl"})));
    ASSERT_EQ(lines.size(), 8U);
    ASSERT_EQ(rows.size(), 8U);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const Json line = parsed(lines[i]);
        EXPECT_TRUE(schema.violations(line).empty()) << ::testing::PrintToString(schema.violations(line));
        ASSERT_EQ(line.size(), rows[i].size());
        for (const auto& [name, cell] : rows[i]) {
            ASSERT_TRUE(line.contains(name)) << name;
            const Json& value = line[name];
            if (value.is_null()) {
                EXPECT_EQ(cell, "") << name;
            } else if (value.is_string()) {
                EXPECT_EQ(cell, value.get<std::string>()) << name;
            } else if (value.is_boolean()) {
                EXPECT_EQ(cell, value.get<bool>() ? "true" : "false") << name;
            } else {
                EXPECT_EQ(std::strtod(cell.c_str(), nullptr), value.get<double>()) << name;
            }
        }
    }
    Json tampered = parsed(lines.front());
    tampered["decode_bound"] = "nothing";
    EXPECT_EQ(schema.violations(tampered).size(), 1U);
}

TEST(Sweep, WithoutASingleRowThatCanBeSaysWhy) {
    const Answer answer =
        run(sweep({"llama-3.1-8b", "h100-sxm", "--tp", "3,5,7", "--metrics", "decode,problem", "--format", "csv"}));
    EXPECT_EQ(answer.exit_code, 1);
    EXPECT_EQ(lines_of(answer.out).size(), 4U);  // the rows are there all the same
    EXPECT_THAT(answer.err, HasSubstr("none of the 3 rows can be; the first: "));
    // One that can be is an answer.
    EXPECT_EQ(run(sweep({"llama-3.1-8b", "h100-sxm", "--tp", "3,4", "--format", "csv"})).exit_code, 0);
}

// ---- under load ----

TEST(SweepUnderLoad, RowsAreWhatPredictSays) {
    const auto rows =
        rows_of(output_of(sweep({"llama-3.1-8b", "h100-sxm", "--concurrency", "1-16*4", "--engine", "vllm", "--prompt",
                                 "500,1000", "--generate", "100", "--price", "3.6", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 6U);
    EXPECT_THAT(column(rows, "concurrency"), ElementsAre("1", "1", "4", "4", "16", "16"));
    for (const Row& row : rows) {
        const auto load = parsed(output_of({"predict", "llama-3.1-8b", "h100-sxm", "--concurrency",
                                            row.at("concurrency"), "--engine", "vllm", "--prompt", row.at("prompt"),
                                            "--generate", "100", "--price", "3.6", "--format", "json"}))["load"];
        const auto same = [&](const char* name, double value) {
            EXPECT_NEAR(std::stod(row.at(name)) / value, 1.0, 1e-5) << name;
        };
        same("load_requests_per_s", load["requests_per_s"].get<double>());
        same("load_output_tokens_per_s", load["output_tokens_per_s"].get<double>());
        same("load_ttft_s", load["replica"]["expected"]["ttft_s"].get<double>());
        same("load_tpot_s", load["replica"]["expected"]["tpot_s"].get<double>());
        same("load_cost_per_million_output_tokens", load["cost_per_million_output_tokens"].get<double>());
        EXPECT_EQ(row.at("problem"), "");
    }
}

TEST(SweepUnderLoad, SaysWhatIsOverloadedAndWhatCannotBe) {
    const auto rows = rows_of(
        output_of(sweep({"llama-3.1-8b", "h100-sxm", "--rate", "1,1000", "--metrics", "load", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].at("load_overloaded"), "false");
    EXPECT_EQ(rows[1].at("load_overloaded"), "true");
    EXPECT_EQ(rows[1].at("load_bound"), "overload");
    EXPECT_EQ(rows[1].at("load_ttft_s"), "") << "a queue without end has no mean";
    const Answer unheard = run(sweep({"llama-3.1-8b", "h100-sxm", "--simulate"}));
    EXPECT_EQ(unheard.exit_code, 2);
    EXPECT_THAT(unheard.err, HasSubstr("--simulate: is about requests under load"));
    // A price alone is that of the batch of the row.
    const auto priced = rows_of(output_of(sweep({"llama-3.1-8b", "h100-sxm", "--price", "3.6", "-b", "1,8", "--metrics",
                                                 "cost,request_expected", "--format", "csv"})));
    ASSERT_EQ(priced.size(), 2U);
    // 0.001 a second for the time of a request; 128 tokens of each sequence.
    EXPECT_NEAR(std::stod(priced[1].at("cost_per_million_tokens")) * 8.0 * 128.0 * 1e-3,
                std::stod(priced[1].at("request_expected_s")), 1e-4);
}

}  // namespace
}  // namespace roofline::cli::testing
