// The verb as people use it: real traces, wrong questions, broken files.
#include <fstream>

#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"
#include "places.hpp"
#include "roofline/io/account_json.hpp"

namespace roofline::cli::testing {
namespace {

std::string trace(const std::string& name) {
    return ROOFLINE_SOURCE_DIR "/tests/analyze/data/" + name + ".json.gz";
}

const std::string llama = trace("hf_llama_1b_h200_torch_profiler");

TEST(Analyze, WritesReportsThatFollowTheSchemaAndCanBeReadBack) {
    const Schema schema = Schema::published("report.schema.json");
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{llama},
                                                      {llama, "--by", "kernel"},
                                                      {llama, "--model", "llama-3.2-1b"},
                                                      {trace("two_streams")},
                                                      {trace("llama_compiled_graphs"), "--by", "group"}}) {
        std::vector<std::string> command = {"analyze"};
        command.insert(command.end(), arguments.begin(), arguments.end());
        command.insert(command.end(), {"--format", "json"});
        const Answer answer = run(command);
        ASSERT_EQ(answer.exit_code, 0) << answer.err;
        const auto found = schema.violations(parsed(answer.out));
        EXPECT_TRUE(found.empty()) << joined(found);
        const auto account = io::read_account(answer.out, "report");
        ASSERT_TRUE(account) << account.error().text;
        EXPECT_EQ(account->verb, "analyze");
        EXPECT_FALSE(account->stages.empty());
    }
}

TEST(Analyze, HoldsARunAgainstItsPrediction) {
    const Answer answer = run({"analyze", llama, "--model", "llama-3.2-1b", "--stage", "decode"});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("against the prediction"), std::string::npos);
    const Answer other = run({"analyze", llama, "--model", "llama-3.1-70b"});
    EXPECT_EQ(other.exit_code, 0) << other.err;
    EXPECT_NE(other.out.find("it is not what ran"), std::string::npos);
    EXPECT_EQ(other.out.find("against the prediction"), std::string::npos);
}

// The same two layers, once compiled with shapes and once inside graphs without: the model's work takes the place of
// shapes. Projections of 2 x 128 tokens: 2 * 256 * 1024 * (1024 + 256 + 256) * 2 layers.
TEST(Analyze, KernelsInGraphsTakeTheirWorkFromTheModel) {
    const Answer answer = run({"analyze", trace("llama_compiled_graphs"), "--model",
                               ROOFLINE_SOURCE_DIR "/tests/analyze/data/llama_small_config.json", "--batch", "2",
                               "--prompt", "128", "--format", "json"});
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    const Json report = parsed(answer.out);
    EXPECT_GT(report["analysis"]["inferred_s"].get<double>(), 0.9 * report["analysis"]["kernel_s"].get<double>());
    double flops = 0.0;
    for (const Json& record : report["stages"][0]["records"]) {
        if (record["name"] == "layers.attention.qkv") flops = record["flops"].get<double>();
    }
    EXPECT_DOUBLE_EQ(flops, 2.0 * 256 * 1024 * 1536 * 2);
    EXPECT_FALSE(report["analysis"]["joined"].empty());
}

// An export of Nsight Systems holds no shapes at all. With the model, every kernel of the named steps has its work but
// those before the first layer, which make masks and tables of positions in every step (3.3% of their time): the model
// has nothing of the kind.
TEST(Analyze, KernelsOfNsightSystemsTakeTheirWorkFromTheModel) {
    const std::string data = ROOFLINE_SOURCE_DIR "/tests/analyze/data/";
    const Answer answer = run({"analyze", data + "nsys_llama_graphs.sqlite.gz", "--model",
                               data + "nsys_llama_config.json", "--batch", "4", "--prompt", "300", "--format", "json"});
    if (answer.exit_code == 4) GTEST_SKIP() << answer.err;
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    double all = 0.0;
    double attributed = 0.0;
    const Json report = parsed(answer.out);
    for (const Json& stage : report["stages"]) {
        if (stage["stage"] == "outside steps") continue;
        for (const Json& record : stage["records"]) {
            if (record["kind"] == "idle" || record["kind"] == "copy") continue;
            const double time = stage["repetitions"].get<double>() * record["time_s"]["measured"].get<double>();
            all += time;
            if (record["kind"] == "unattributed") {
                EXPECT_EQ(record["name"], "positions");
            } else {
                attributed += time;
            }
        }
    }
    EXPECT_GT(attributed, 0.965 * all);
}

TEST(Analyze, WrongQuestionsAreOneLineAndExitCodeTwo) {
    const std::string made = ::testing::TempDir() + "/roofline_no_trace.txt";
    std::ofstream(made) << "hello\n";
    const std::string empty = ::testing::TempDir() + "/roofline_empty.json";
    std::ofstream(empty).flush();
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"analyze", "no-such-file"},
                                                      {"analyze", made},
                                                      {"analyze", empty},
                                                      {"analyze", ROOFLINE_SOURCE_DIR},
                                                      {"analyze", llama, "--stage", "training"},
                                                      {"analyze", llama, "--from", "nothing"},
                                                      {"analyze", llama, "--device", "no-such-device"},
                                                      {"analyze", llama, "--model", "no-such-model"},
                                                      {"analyze", llama, "--top", "many"}}) {
        const Answer answer = run(arguments);
        EXPECT_EQ(answer.exit_code, 2) << typed(arguments) << answer.out;
        EXPECT_EQ(answer.out, "");
        EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
    }
}

TEST(Analyze, ShowsRanksSideBySide) {
    const Answer answer = run({"analyze", trace("llama_compiled"), trace("two_streams"), "--top", "2"});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("files side by side"), std::string::npos);
}

}  // namespace
}  // namespace roofline::cli::testing
