// `measure --device cuda:N` as a user sees it: without a GPU, and with a driver and a plugin that only pretend.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"
#include "places.hpp"

namespace roofline::cli::testing {
namespace {

/// A machine with an H200 that answers what one really answered.
class PretendedGpu : public ::testing::Test {
  protected:
    void SetUp() override {
        std::filesystem::create_symlink(FAKE_CUDA_PLUGIN, folder_.path("libcuda.so.1"));
        environment_ = {
            {"LD_LIBRARY_PATH", folder_.path()},
            {"XDG_CONFIG_HOME", folder_.make_folder("config")},
            {"ROOFLINE_CUDA_PLUGIN", FAKE_CUDA_PLUGIN},
            {"FAKE_CUDA_ANSWER", std::string(ROOFLINE_SOURCE_DIR) + "/tests/measure/data/h200_answer.json"}};
    }
    TemporaryFolder folder_;
    Environment environment_;
};

TEST_F(PretendedGpu, IsShownBesideItsDatasheet) {
    const Answer answer = run({"measure", "--device", "cuda:0"}, environment_);
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("NVIDIA H200"), std::string::npos) << answer.out;
    EXPECT_NE(answer.out.find("memory.read"), std::string::npos) << answer.out;
    EXPECT_NE(answer.out.find("matrix.bf16.sustained"), std::string::npos) << answer.out;
    EXPECT_NE(answer.out.find("datasheet"), std::string::npos) << answer.out;
}

TEST_F(PretendedGpu, WritesADeviceFileThatFollowsTheSchema) {
    const Answer answer = run({"measure", "--device", "cuda:0", "--format", "json", "--no-keep"}, environment_);
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    const Json json = parsed(answer.out);
    const auto found = Schema::published("device.schema.json").violations(json);
    EXPECT_TRUE(found.empty()) << joined(found);
    EXPECT_EQ(json["context"]["device"], "cuda:0");
    EXPECT_EQ(json["ceilings"]["matrix.bf16"]["source"], "this-machine");
}

TEST_F(PretendedGpu, IsKeptAsThis) {
    ASSERT_EQ(run({"measure", "--device", "cuda:0"}, environment_).exit_code, 0);
    const Answer answer = run({"predict", "llama-3.1-8b", "this"}, environment_);
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("H200"), std::string::npos) << answer.out;
}

TEST_F(PretendedGpu, ThatGivesABrokenAnswerIsAFaultOfThePlugin) {
    environment_.back().second = folder_.write("answer.json", R"({"device": {"name": "NVIDIA H200"}})");
    const Answer answer = run({"measure", "--device", "cuda:0"}, environment_);
    EXPECT_EQ(answer.exit_code, 2);
    EXPECT_EQ(answer.out, "");
    EXPECT_NE(answer.err.find("roofline_cuda.so"), std::string::npos) << answer.err;
}

TEST_F(PretendedGpu, ThatIsNotThereGivesExitCode4) {
    environment_.emplace_back("FAKE_CUDA_INIT", "100");
    const Answer answer = run({"measure", "--device", "cuda:0"}, environment_);
    EXPECT_EQ(answer.exit_code, 4);
    EXPECT_NE(answer.err.find("no GPU"), std::string::npos) << answer.err;
}

TEST(MeasureCuda, WithoutAPluginGivesExitCode4WhereverItRuns) {
    const Answer answer = run({"measure", "--device", "cuda:0"}, {{"ROOFLINE_CUDA_PLUGIN", "/nowhere/plugin.so"}});
    EXPECT_EQ(answer.exit_code, 4);
    EXPECT_EQ(answer.out, "");
    EXPECT_TRUE(answer.err.starts_with("roofline: cuda: ")) << answer.err;
}

TEST(MeasureCuda, WrongNamesAndOptionsGiveExitCode2) {
    for (const char* device : {"cuda:x", "cuda:-1", "cuda:", "gpu"}) {
        const Answer answer = run({"measure", "--device", device});
        EXPECT_EQ(answer.exit_code, 2) << device;
        EXPECT_NE(answer.err.find(device), std::string::npos) << answer.err;
    }
    EXPECT_EQ(run({"measure", "--device", "cuda:0", "--threads", "2"}).exit_code, 2);
}

}  // namespace
}  // namespace roofline::cli::testing
