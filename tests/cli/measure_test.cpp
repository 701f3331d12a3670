// roofline measure as a user runs it: little time and one thread, because only what comes out matters, not how fast it
// is.
#include <filesystem>

#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"

namespace roofline::cli::testing {
namespace {

using Arguments = std::vector<std::string>;

Arguments quickly(const Arguments& more) {
    Arguments arguments = {"measure", "--quick", "--seconds", "100ms", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

void expect_refused(const Arguments& arguments, const std::string& says, int exit_code = 2) {
    SCOPED_TRACE(typed(arguments));
    const Answer answer = run(arguments);
    EXPECT_EQ(answer.exit_code, exit_code) << answer.err;
    EXPECT_EQ(answer.out, "");
    EXPECT_NE(answer.err.find(says), std::string::npos) << answer.err;
}

TEST(Measure, ItsJsonIsADeviceFileByTheSchemaAndIsKeptAsThis) {
    const TemporaryFolder folder;
    const Environment own = {{"XDG_CONFIG_HOME", folder.path()}};
    const Answer answer = run(quickly({"--format", "json"}), own);
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_EQ(answer.err, "");  // no progress where there is no terminal
    const Json json = parsed(answer.out);
    const auto found = Schema::published("device.schema.json").violations(json);
    EXPECT_TRUE(found.empty()) << joined(found);
    EXPECT_EQ(json["kind"], "cpu");
    EXPECT_EQ(json["context"]["threads"], 1);
    EXPECT_EQ(json["sources"]["measured"]["kind"], "measured");

    const Answer asked = run({"predict", "gpt2", "this"}, own);
    EXPECT_EQ(asked.exit_code, 0) << asked.err;
    EXPECT_EQ(asked.out.find("no measured ceilings"), std::string::npos) << asked.out;
}

TEST(Measure, ATableForPeopleAndADeviceFileBesideIt) {
    const TemporaryFolder folder;
    const Answer answer = run(quickly({"--no-keep", "-o", folder.path("mine.json"), "--plot", folder.path("roof.svg")}),
                              {{"XDG_CONFIG_HOME", folder.path("config")}});
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("memory.read"), std::string::npos) << answer.out;
    EXPECT_FALSE(std::filesystem::exists(folder.path("config")));  // --no-keep
    EXPECT_TRUE(std::filesystem::exists(folder.path("roof.svg")));
    EXPECT_EQ(run({"predict", "gpt2", folder.path("mine.json")}).exit_code, 0);
}

TEST(Measure, OnlyOneFigureIsShownAndNotKept) {
    const TemporaryFolder folder;
    const Answer answer = run(quickly({"--only", "fp32", "--format", "md"}), {{"XDG_CONFIG_HOME", folder.path()}});
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("| vector.fp32"), std::string::npos) << answer.out;
    EXPECT_EQ(answer.out.find("memory.read"), std::string::npos) << answer.out;
    EXPECT_TRUE(folder.is_empty());
}

TEST(Measure, WrongOptionsAreRefusedBeforeAnythingIsMeasured) {
    expect_refused({"measure", "--only", "l2,l9"}, "found \"l9\"");
    expect_refused({"measure", "--only", "l9"},
                   "--only: found \"l9\", expected clock, l1, l2, l3, memory, vector or matrix");
    expect_refused({"measure", "--threads", "0"}, "--threads");
    expect_refused({"measure", "--threads", "60000"}, "the processors this process may use");
    expect_refused({"measure", "--device", "tpu"}, "--device: found \"tpu\", expected cpu or cuda:N");
    expect_refused({"measure", "--seconds", "5h"}, "--seconds");
    expect_refused({"measure", "--seconds", "0"}, "--seconds");
    // Of an hour's measuring not a second is spent.
    expect_refused({"measure", "--seconds", "3600", "--only", "fp32", "--format", "json"}, "needs memory.read");
    expect_refused({"measure", "--seconds", "3600", "--only", "l1,memory.copy", "-o", "left_out.json"},
                   "needs memory.read");
}

TEST(Measure, StoppedInTheMiddleItWritesNothing) {
    const TemporaryFolder folder;
    const Answer answer = run({"measure", "-o", folder.path("mine.json"), "--seconds", "60s", "--threads", "1"},
                              {{"XDG_CONFIG_HOME", folder.path()}}, nullptr, 700'000);
    EXPECT_EQ(answer.exit_code, 130) << answer.err;
    EXPECT_EQ(answer.out, "");
    EXPECT_TRUE(folder.is_empty());
}

// Ten minutes of measuring would not end within the time a test has.
TEST(Measure, AFileThatCannotBeWrittenIsNamedBeforeAnythingIsMeasured) {
    const TemporaryFolder folder;
    const Arguments long_run = {"measure", "--seconds", "600s", "--threads", "1", "--no-keep"};
    const auto with = [&](const char* option, const std::string& file) {
        Arguments arguments = long_run;
        arguments.insert(arguments.end(), {option, file});
        return arguments;
    };
    const std::string nowhere = folder.path("none/mine.json");
    expect_refused(with("-o", nowhere), nowhere + ": cannot be written: No such file or directory");
    expect_refused(with("-o", folder.path()), "is a folder, expected a file name");
    const std::string picture = folder.path("none/mine.svg");
    expect_refused(with("--plot", picture), picture + ": cannot be written: No such file or directory");
    EXPECT_TRUE(folder.is_empty());
}

TEST(Measure, WhereNothingCanBeKeptTheFiguresAreThere) {
    const TemporaryFolder folder;
    const std::string in_the_way = folder.write("file", "not a folder");
    const Answer answer = run(quickly({}), {{"XDG_CONFIG_HOME", in_the_way}});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("memory.read"), std::string::npos) << answer.out;
    EXPECT_NE(answer.err.find("not kept as `this`"), std::string::npos) << answer.err;
}

}  // namespace
}  // namespace roofline::cli::testing
