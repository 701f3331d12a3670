// Every way in which a GPU can be out of reach has a line of its own, and an answer is trusted as little as a file.
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/measure/cuda/abi.h"
#include "roofline/measure/cuda/loader.hpp"

namespace roofline::measure {
namespace {

using testing::HasSubstr;

class CudaLoader : public testing::Test {
  protected:
    void TearDown() override {
        ::unsetenv("FAKE_CUDA_INIT");
        ::unsetenv("FAKE_CUDA_VERSION");
        ::unsetenv("ROOFLINE_CUDA_PLUGIN");
    }
    CudaPlaces fake() const { return {FAKE_CUDA_PLUGIN, {FAKE_CUDA_PLUGIN}}; }
    Problem problem_of(const CudaPlaces& places) const {
        const auto loaded = CudaBackend::load(places);
        EXPECT_FALSE(loaded.has_value());
        return loaded ? Problem{} : loaded.error();
    }
};

TEST_F(CudaLoader, FindsAPluginAndAsksIt) {
    const auto loaded = CudaBackend::load(fake());
    ASSERT_TRUE(loaded.has_value()) << loaded.error().text;
    std::string said;
    const auto answer = loaded->call({{"do", "describe"}}, [&](std::string_view line) { said = line; });
    ASSERT_TRUE(answer.has_value()) << answer.error().text;
    EXPECT_EQ(answer->at("heard").at("do"), "describe");
    EXPECT_EQ(said, "half-way");
}

TEST_F(CudaLoader, GoesOnWithoutAListener) {
    const auto loaded = CudaBackend::load(fake());
    ASSERT_TRUE(loaded.has_value());
    EXPECT_TRUE(loaded->call({{"do", "describe"}}).has_value());
}

TEST_F(CudaLoader, AMissingDriverComesBeforeAMissingPlugin) {
    const Problem problem = problem_of({"libno-such-driver.so.7", {"/nowhere/roofline_cuda.so"}});
    EXPECT_TRUE(problem.unavailable);
    EXPECT_THAT(problem.text, HasSubstr("no NVIDIA driver here (libno-such-driver.so.7 is not found)"));
}

TEST_F(CudaLoader, ALibraryThatIsNoDriverIsNotTakenForOne) {
    EXPECT_THAT(problem_of({"libm.so.6", {}}).text, HasSubstr("has no cuInit"));
}

TEST_F(CudaLoader, ADriverWithoutAGpuIsSaid) {
    ::setenv("FAKE_CUDA_INIT", "100", 1);
    const Problem problem = problem_of(fake());
    EXPECT_TRUE(problem.unavailable);
    EXPECT_THAT(problem.text, HasSubstr("no GPU"));
}

TEST_F(CudaLoader, ADriverThatDoesNotStartGivesItsNumber) {
    ::setenv("FAKE_CUDA_INIT", "999", 1);
    EXPECT_THAT(problem_of(fake()).text, HasSubstr("cuInit gave 999"));
}

TEST_F(CudaLoader, AMissingPluginSaysHowToBuildIt) {
    const Problem problem = problem_of({FAKE_CUDA_PLUGIN, {"/nowhere/a.so", "/nowhere/b.so"}});
    EXPECT_TRUE(problem.unavailable);
    EXPECT_THAT(problem.text, HasSubstr("script/cuda builds it"));
}

TEST_F(CudaLoader, ANamedPluginThatIsMissingIsNamed) {
    ::setenv("ROOFLINE_CUDA_PLUGIN", "/nowhere/mine.so", 1);
    CudaPlaces places = usual_cuda_places();
    EXPECT_EQ(places.driver, "libcuda.so.1");
    places.driver = FAKE_CUDA_PLUGIN;
    EXPECT_THAT(problem_of(places).text, HasSubstr("no plugin at /nowhere/mine.so"));
}

TEST_F(CudaLoader, LooksBesideTheProgramWhereNothingIsNamed) {
    const CudaPlaces places = usual_cuda_places();
    ASSERT_EQ(places.plugins.size(), 3U);
    for (const std::string& place : places.plugins) EXPECT_THAT(place, testing::EndsWith("/roofline_cuda.so"));
}

TEST_F(CudaLoader, APluginOfAnotherVersionIsNotCalled) {
    ::setenv("FAKE_CUDA_VERSION", "7", 1);
    const Problem problem = problem_of(fake());
    EXPECT_TRUE(problem.unavailable);
    EXPECT_THAT(problem.text, HasSubstr("is of version 7, but this program speaks version 2"));
}

TEST_F(CudaLoader, AFileThatIsNoLibraryGivesTheLoadersWords) {
    const std::string file = testing::TempDir() + "not_a_plugin.so";
    std::ofstream(file) << "hello";
    const Problem problem = problem_of({FAKE_CUDA_PLUGIN, {file}});
    EXPECT_TRUE(problem.unavailable);
    EXPECT_THAT(problem.text, HasSubstr("does not load"));
    EXPECT_THAT(problem.text, HasSubstr("not_a_plugin.so"));
}

/// A backend that answers always the same.
template <const char* const& Text>
const char* say(const char*, void (*)(void*, const char*), void*) {
    return Text;
}

Problem answer_problem(const char* (*call)(const char*, void (*)(void*, const char*), void*)) {
    const roofline_cuda_backend backend = {roofline_cuda_version, call};
    const auto wrapped = CudaBackend::wrap(&backend, "fake.so");
    EXPECT_TRUE(wrapped.has_value());
    const auto answer = wrapped->call({{"do", "measure"}});
    EXPECT_FALSE(answer.has_value());
    return answer ? Problem{} : answer.error();
}

const char* const no_answer = nullptr;
const char* const broken = "{ \"device\": ";
const char* const a_list = "[1]";
const char* const refused = R"({"problem": "out of memory"})";
const char* const away = R"({"problem": "cuda:3 is not here", "unavailable": true})";
const char* const odd = R"({"problem": 7, "unavailable": "yes"})";

TEST(CudaAnswer, NoAnswerIsAProblem) {
    EXPECT_THAT(answer_problem(say<no_answer>).text, HasSubstr("fake.so: gave no answer"));
}

TEST(CudaAnswer, BrokenJsonIsAProblemOfThePlugin) {
    EXPECT_THAT(answer_problem(say<broken>).text, HasSubstr("fake.so"));
}

TEST(CudaAnswer, AnythingButAnObjectIsAProblem) {
    EXPECT_THAT(answer_problem(say<a_list>).text, HasSubstr("expected an object"));
}

TEST(CudaAnswer, AProblemIsHandedOn) {
    const Problem problem = answer_problem(say<refused>);
    EXPECT_EQ(problem.text, "cuda: out of memory");
    EXPECT_FALSE(problem.unavailable);
}

TEST(CudaAnswer, WhatIsNotHereIsUnavailable) {
    const Problem problem = answer_problem(say<away>);
    EXPECT_EQ(problem.text, "cuda: cuda:3 is not here");
    EXPECT_TRUE(problem.unavailable);
}

TEST(CudaAnswer, AnOddProblemIsStillOne) {
    const Problem problem = answer_problem(say<odd>);
    EXPECT_EQ(problem.text, "cuda: 7");
    EXPECT_FALSE(problem.unavailable);
}

TEST(CudaAnswer, ABackendWithoutACallIsRefused) {
    const roofline_cuda_backend empty = {roofline_cuda_version, nullptr};
    EXPECT_FALSE(CudaBackend::wrap(&empty, "fake.so").has_value());
    EXPECT_FALSE(CudaBackend::wrap(nullptr, "fake.so").has_value());
}

TEST(CudaIndex, IsReadFromTheNameOfADevice) {
    EXPECT_EQ(cuda_index("cuda").value(), 0);
    EXPECT_EQ(cuda_index("cuda:0").value(), 0);
    EXPECT_EQ(cuda_index("cuda:12").value(), 12);
    EXPECT_EQ(cuda_index("cpu").value(), std::nullopt);
    EXPECT_EQ(cuda_index("cudax").value(), std::nullopt);
}

TEST(CudaIndex, AWrongNumberIsAProblem) {
    for (const char* wrong : {"cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999"}) {
        const auto index = cuda_index(wrong);
        ASSERT_FALSE(index.has_value()) << wrong;
        EXPECT_FALSE(index.error().unavailable);
        EXPECT_THAT(index.error().text, HasSubstr(wrong));
    }
}

}  // namespace
}  // namespace roofline::measure
