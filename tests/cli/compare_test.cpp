// roofline compare on the command line: what it prints, how it exits, and that its JSON follows its schema.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"

namespace roofline::cli::testing {
namespace {

using ::testing::HasSubstr;

class CompareVerb : public ::testing::Test {
  protected:
    std::string predicted(const std::string& name, std::vector<std::string> arguments) {
        const std::string path = folder_.path(name);
        arguments.insert(arguments.begin(), "predict");
        arguments.insert(arguments.end(), {"--format", "json", "-o", path});
        EXPECT_EQ(run(arguments).exit_code, 0);
        return path;
    }
    std::string file(const std::string& name, const std::string& text) { return folder_.write(name, text); }

  private:
    TemporaryFolder folder_;
};

TEST_F(CompareVerb, AReportAgainstItselfIsTheSameEverywhere) {
    const std::string report = predicted("a.json", {"gpt2", "l40s"});
    const Answer answer = run({"compare", report, report, "--fail-above", "0%"});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_THAT(answer.out, HasSubstr(" same\n"));
    EXPECT_THAT(answer.out, ::testing::Not(HasSubstr("better")));
    EXPECT_THAT(answer.out, HasSubstr("nothing that counts is worse"));
}

TEST_F(CompareVerb, APageOpensWithBarsOfWhatGotFasterAndSlower) {
    const std::string slow = predicted("a.json", {"gpt2", "l40s"});
    const std::string fast = predicted("b.json", {"gpt2", "h200-sxm"});
    const std::string page = run({"compare", slow, fast, "--format", "html"}).out;
    EXPECT_THAT(page, HasSubstr("gpt2 on h200-sxm against gpt2 on l40s"));
    EXPECT_THAT(page, HasSubstr("decode, whole"));
    EXPECT_LT(page.find("times as fast"), page.find("<table"));
    // What differs nowhere has no bars.
    EXPECT_THAT(run({"compare", slow, slow, "--format", "html"}).out, ::testing::Not(HasSubstr("times as fast")));
    EXPECT_THAT(run({"compare", "h100-sxm", "h200-sxm", "--format", "html"}).out, HasSubstr("times as much"));
}

TEST_F(CompareVerb, TracesStandSideBySideAsTheyWereRecorded) {
    const std::string trace = ROOFLINE_SOURCE_DIR "/tests/analyze/data/opt_fp16.json.gz";
    const Answer same = run({"compare", trace, trace, "--fail-above", "0%"});
    EXPECT_EQ(same.exit_code, 0) << same.err;
    EXPECT_THAT(same.out, HasSubstr("layers.attention.core"));
    EXPECT_THAT(same.out, ::testing::Not(HasSubstr("worse (")));
    // Against a prediction of something else, whose steps have no pauses.
    const Answer other = run({"compare", trace, predicted("a.json", {"gpt2", "h200-sxm"})});
    EXPECT_EQ(other.exit_code, 0) << other.err;
    EXPECT_THAT(other.out, HasSubstr("vanished"));
}

TEST_F(CompareVerb, StagesOfOneNameAreToldApartByTheirSizes) {
    // Four types in four batches each: sixteen stages of four names.
    const std::string report = ROOFLINE_SOURCE_DIR "/data/measured/bench/h200-sxm_llama-3.1-8b.json";
    const Answer answer = run({"compare", report, report, "--by", "stage", "--format", "md"});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_THAT(answer.out, HasSubstr("B against A: 16 same"));
    EXPECT_THAT(answer.out, HasSubstr("| decode int8 (batch 32, context 1,024) |"));
}

TEST_F(CompareVerb, ASlowerMemoryFailsAboveThePercentageAskedFor) {
    const std::string before = predicted("a.json", {"gpt2", "l40s"});
    const std::string after = predicted("b.json", {"gpt2", "l40s", "--set", "memory.bandwidth=0.5x"});
    EXPECT_EQ(run({"compare", before, after}).exit_code, 0) << "without --fail-above it only tells";
    const Answer worse = run({"compare", before, after, "--fail-above", "5%", "--time", "limit", "--by", "stage"});
    EXPECT_EQ(worse.exit_code, 1);
    // Decode of a small batch is bound by memory: half the bandwidth doubles its limit.
    EXPECT_THAT(worse.out, HasSubstr("decode is worse by 100.0%"));
    EXPECT_EQ(run({"compare", after, before, "--fail-above", "5%"}).exit_code, 0) << "faster is no failure";
}

TEST_F(CompareVerb, JsonFollowsItsSchemaForReportsAndDevices) {
    const Schema schema = Schema::published("compare.schema.json");
    const std::string one = predicted("a.json", {"gpt2", "l40s"});
    const std::string other = predicted("b.json", {"gpt2", "t4"});
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"compare", one, other},
                                                      {"compare", one, other, one, "--by", "group"},
                                                      {"compare", one, other, "--by", "stage"},
                                                      {"compare", "l40s", "t4"}}) {
        auto typed_arguments = arguments;
        typed_arguments.insert(typed_arguments.end(), {"--format", "json"});
        const Answer answer = run(typed_arguments);
        EXPECT_EQ(answer.exit_code, 0) << answer.err;
        const auto found = schema.violations(parsed(answer.out));
        EXPECT_TRUE(found.empty()) << joined(found);
    }
    const Answer failing = run({"compare", one, other, "--fail-above", "1%", "--format", "json"});
    EXPECT_EQ(failing.exit_code, 1);
    const auto found = schema.violations(parsed(failing.out));
    EXPECT_TRUE(found.empty()) << joined(found);
    EXPECT_FALSE(parsed(failing.out).at("failures").empty());
}

TEST_F(CompareVerb, WrongInputIsOneLineAndExitsWithTwo) {
    const std::string report = predicted("a.json", {"gpt2", "l40s"});
    const std::pair<std::vector<std::string>, std::string> wrong[] = {
        {{"compare", report}, "found 1 of at least two"},
        {{"compare", report, "l40s"}, "found reports and devices"},
        {{"compare", report, "no-such-thing"}, "no-such-thing: no such file"},
        {{"compare", report, file("empty.json", "")}, "empty.json"},
        {{"compare", report, file("cut.json", "{\"schema\": \"roofline.rep")}, "cut.json"},
        {{"compare", report, file("other.json", "{\"schema\": \"something/1\"}")}, "found \"something/1\""},
        {{"compare", report, file("deep.json", std::string(100000, '['))}, "deep.json"},
        {{"compare", report, report, "--fail-above", "5"}, "--fail-above: found \"5\", expected a percentage"},
        {{"compare", report, report, "--fail-above", "-1%"}, "--fail-above"},
        {{"compare", report, report, "--time", "measured"}, "nothing in it was measured"},
        {{"compare", report, report, "--top", "x"}, "--top"},
    };
    for (const auto& [arguments, expected] : wrong) {
        const Answer answer = run(arguments);
        EXPECT_EQ(answer.exit_code, 2) << typed(arguments);
        EXPECT_THAT(answer.err, HasSubstr(expected));
        EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
        EXPECT_EQ(answer.out, "");
    }
}

}  // namespace
}  // namespace roofline::cli::testing
