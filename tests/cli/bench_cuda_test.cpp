// `bench --device cuda:0` with a driver and a plugin that only pretend.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"
#include "places.hpp"

namespace roofline::cli::testing {
namespace {

/// A GPU that gives every request the same answer: it is an H200, and gate-up took 40 us of a step of 3 ms.
class BenchOnAPretendedGpu : public ::testing::Test {
  protected:
    void SetUp() override {
        std::filesystem::create_symlink(FAKE_CUDA_PLUGIN, folder_.path("libcuda.so.1"));
        const std::string answer = folder_.write("answer.json", R"({
            "devices": [{"index": 0, "name": "NVIDIA H200", "busy": true}],
            "results": [{"name": "layers.ffn.gate_up", "backend": "own", "launch": "graph", "time_s": 4e-5, "error": 0.001,
                         "tolerance": 0.004, "flops": 234881024, "bytes": 234881024, "buffers": 2}]})");
        environment_ = {{"LD_LIBRARY_PATH", folder_.path()},
                        {"XDG_CONFIG_HOME", folder_.make_folder("config")},
                        {"ROOFLINE_CUDA_PLUGIN", FAKE_CUDA_PLUGIN},
                        {"FAKE_CUDA_ANSWER", answer}};
    }
    std::vector<std::string> asked(const std::string& out) const {
        return {"bench", "llama-3.1-8b", "--device", "cuda:0", "--backend", "own", "--format", "json", "-o", out};
    }
    TemporaryFolder folder_;
    Environment environment_;
};

// The H200's datasheet has 4.8 TB/s: gate-up's 234.9 MB take 48.9 us at least.
TEST_F(BenchOnAPretendedGpu, ThatIsFasterThanItsLimitIsDoubtedAloud) {
    const std::string file = folder_.path("report.json");
    const Answer answer = run(asked(file), environment_);
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    const Json report = parsed(text_of_file(file));
    const auto found = Schema::published("report.schema.json").violations(report);
    EXPECT_TRUE(found.empty()) << joined(found);
    EXPECT_EQ(report["bench"]["busy"], true);
    int doubted = 0;
    for (const Json& result : report["bench"]["stages"][0]["results"]) {
        if (!result.contains("faster_than_limit")) continue;
        ++doubted;
        EXPECT_EQ(result["name"], "layers.ffn.gate_up");
        EXPECT_NEAR(result["faster_than_limit"]["ratio"].get<double>(), 234.881024 / 4.8 / 40.0, 1e-3);
    }
    EXPECT_EQ(doubted, 1);
    // 15 GB of weights in 40 us: the same answer, read as that of a whole step.
    EXPECT_TRUE(report["bench"]["stages"][0]["steps"][0].contains("faster_than_limit"));
}

TEST_F(BenchOnAPretendedGpu, ThatLoadsNoKernelOfOnesOwnSaysSo) {
    auto arguments = asked(folder_.path("report.json"));
    arguments.insert(arguments.end(), {"--plugin", "none.so"});
    const Answer answer = run(arguments, environment_);
    EXPECT_EQ(answer.exit_code, 2) << answer.err;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
}

// A decode step of Llama 3.1 8B has 16 operators. Three norms are alike, and so are two residuals: 13 are run. Under
// fp8 the products of the layers, attention and the cache write are run again: six; the head keeps its bf16, and the
// rest theirs.
TEST_F(BenchOnAPretendedGpu, RunsWhatIsTheSameWorkOnce) {
    const auto heard_of = [&](const std::string& types) {
        const std::string heard = folder_.path("heard-" + types + ".jsonl");
        auto environment = environment_;
        environment.emplace_back("FAKE_CUDA_HEARD", heard);
        auto arguments = asked(folder_.path("report.json"));
        arguments.insert(arguments.end(), {"--only", "operators", "--stage", "decode", "--dtype", types});
        const Answer answer = run(arguments, environment);
        EXPECT_EQ(answer.exit_code, 0) << answer.err;
        std::vector<std::string> tasks;
        std::istringstream lines(text_of_file(heard));
        for (std::string line; std::getline(lines, line);) {
            const Json request = parsed(line);
            if (request["do"] == "bench") tasks.push_back(request["tasks"][0]["name"]);
        }
        return tasks;
    };
    const auto once = heard_of("bf16");
    EXPECT_EQ(once.size(), 13U);
    EXPECT_EQ(std::count(once.begin(), once.end(), "layers.attention.norm"), 1);
    EXPECT_EQ(std::count(once.begin(), once.end(), "layers.ffn.norm"), 0);
    const auto twice = heard_of("bf16,fp8");
    EXPECT_EQ(twice.size(), 19U);
    EXPECT_EQ(std::count(twice.begin(), twice.end(), "layers.ffn.gate_up"), 2);
    EXPECT_EQ(std::count(twice.begin(), twice.end(), "layers.attention.core"), 2);
    EXPECT_EQ(std::count(twice.begin(), twice.end(), "head"), 1);
    const Json report = parsed(text_of_file(folder_.path("report.json")));
    ASSERT_EQ(report["bench"]["stages"].size(), 2U);
    // What was run under another name is told under its own.
    for (const Json& stage : report["bench"]["stages"]) {
        std::vector<std::string> names;
        for (const Json& result : stage["results"]) names.push_back(result["name"]);
        EXPECT_EQ(std::count(names.begin(), names.end(), "layers.ffn.norm"), 1);
    }
}

TEST_F(BenchOnAPretendedGpu, ThatIsStoppedLeavesNothingBehind) {
    for (const char* during : {R"("do":"bench")", R"("do":"step")"}) {
        auto environment = environment_;
        environment.emplace_back("FAKE_CUDA_INTERRUPT", during);
        const std::string file = folder_.path("stopped.json");
        const Answer answer = run(asked(file), environment);
        EXPECT_EQ(answer.exit_code, 130) << during << "\n" << answer.err;
        EXPECT_EQ(answer.out, "");
        EXPECT_FALSE(std::filesystem::exists(file));
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
            EXPECT_EQ(entry.path().filename().string().find("stopped.json"), std::string::npos) << entry.path();
    }
}

}  // namespace
}  // namespace roofline::cli::testing
