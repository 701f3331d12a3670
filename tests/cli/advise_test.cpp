// `advise` as it is typed: what it prints, refuses and exits with.
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"

namespace roofline::cli::testing {
namespace {

using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

Json advise(Arguments arguments, int exit_code = 0) {
    arguments.insert(arguments.begin(), "advise");
    arguments.insert(arguments.end(), {"--format", "json"});
    const Answer answer = run(arguments);
    EXPECT_EQ(answer.exit_code, exit_code) << typed(arguments) << ": " << answer.err;
    Json json = parsed(answer.out);
    const auto found = Schema::published("advise.schema.json").violations(json);
    EXPECT_TRUE(found.empty()) << typed(arguments) << "\n" << joined(found);
    return json;
}

TEST(Advise, FollowsItsSchema) {
    for (const char* goal : {"tpot", "ttft", "throughput", "cost"}) {
        advise({"llama-3.1-8b", "h100-sxm", "--goal", goal, "--price", "2.5", "--set", "memory.bandwidth=2x"});
        advise({"deepseek-v3", "h200-sxm", "--tp", "8", "--goal", goal, "--batch", "64", "--chunk", "512"});
        advise({"mamba2-2.7b", "xeon-8592", "--goal", goal});
        advise({"qwen3-30b-a3b", "rtx-4090", "--goal", goal}, 1);
    }
    advise({"--params", "8e9", "h100-sxm"});
    advise({"llama-3.1-8b", "m4-max", "--profile", "llama.cpp", "--generate", "1"});
}

TEST(Advise, EveryNumberThatFlagsCanAskForIsWhatPredictSays) {
    const Arguments asked = {"llama-3.1-8b", "h100-sxm", "--set", "memory.bandwidth=2x", "--or-device", "none"};
    const Json advice = advise(asked);
    int compared = 0;
    for (const Json& move : advice["moves"]) {
        const std::string flags = move["flags"].get<std::string>();
        if (move["score"].is_null() || flags.empty() || flags.starts_with("--chunk")) continue;
        Arguments arguments = {"predict", "llama-3.1-8b", "h100-sxm", "--format", "json"};
        std::istringstream words(flags);
        for (std::string word; words >> word;) arguments.push_back(word);
        const Json report = parsed(run(arguments).out);
        SCOPED_TRACE(flags);
        EXPECT_EQ(report["metrics"]["tpot_s"], move["score"]["tpot_s"]);
        EXPECT_EQ(report["metrics"]["ttft_s"], move["score"]["ttft_s"]);
        EXPECT_EQ(report["fit"]["fits"], move["score"]["fits"]);
        if (!move["gain"].is_null()) {
            EXPECT_DOUBLE_EQ(move["gain"].get<double>(), advice["asked"]["tpot_s"]["expected"].get<double>() /
                                                             move["score"]["tpot_s"]["expected"].get<double>());
        }
        ++compared;
    }
    EXPECT_GE(compared, 15);
}

TEST(Advise, AChangedFigureIsAMoveAndNotPartOfTheQuestion) {
    const Json plain = advise({"llama-3.1-8b", "h100-sxm"});
    const Json changed = advise({"llama-3.1-8b", "h100-sxm", "--set", "memory.bandwidth=2x", "--set", "compute=2x"});
    EXPECT_EQ(plain["asked"], changed["asked"]);
    int figures = 0;
    for (const Json& move : changed["moves"]) figures += move["move"] == "figure" ? 1 : 0;
    EXPECT_EQ(figures, 2);
    // The same doubling as the sensitivity's.
    int same = 0;
    for (const Json& move : changed["moves"]) {
        if (move["variant"] != "memory.bandwidth=2x") continue;
        for (const Json& row : plain["sensitivities"]) {
            if (row["resource"] == "memory.bandwidth") {
                ++same;
                EXPECT_DOUBLE_EQ(row["doubled_buys"].get<double>(), move["gain"].get<double>());
            }
        }
    }
    EXPECT_EQ(same, 1);
}

TEST(Advise, SaysInWordsWhatHoldsTheFieldBack) {
    const Answer answer = run({"advise", "llama-3.1-8b", "h100-sxm"});
    EXPECT_EQ(answer.exit_code, 0);
    EXPECT_THAT(answer.out, HasSubstr("doubling compute buys 1.0"));
    EXPECT_THAT(answer.out, HasSubstr("settings that help"));
    EXPECT_THAT(answer.out, HasSubstr("does not apply here"));
    EXPECT_THAT(run({"advise", "llama-3.1-8b", "h100-sxm", "--format", "md"}).out, HasSubstr("## settings that help"));
    EXPECT_THAT(run({"advise", "llama-3.1-8b", "h100-sxm", "--format", "csv"}).out, HasSubstr("move,variant,verdict"));
}

TEST(Advise, GivesAdviceEvenWhereWhatWasAskedDoesNotFit) {
    const Answer answer = run({"advise", "llama-3.1-70b", "h100-sxm"});
    EXPECT_EQ(answer.exit_code, 1);
    EXPECT_THAT(answer.out, HasSubstr("DOES NOT FIT"));
    EXPECT_THAT(answer.out, HasSubstr("settings that make it fit"));
    EXPECT_THAT(answer.out, HasSubstr("--weight-dtype int4"));
}

TEST(Advise, OperationsOnIntegersAreNoFlops) {
    const Answer answer = run({"advise", "llama-3.1-8b", "h100-sxm", "--dtype", "int8"});
    EXPECT_THAT(answer.out, HasSubstr("1.979 POP/s"));
    EXPECT_THAT(answer.out, HasSubstr("989.4 TFLOP/s"));
}

TEST(Advise, BadInputGetsOneLine) {
    const std::pair<Arguments, const char*> wrong[] = {
        {{"--goal", "luck"}, "luck"},
        {{"--acceptance", "1.5"}, "--acceptance: found \"1.5\", expected a share above 0 and below 1"},
        {{"--acceptance", "often"}, "--acceptance: found \"often\", expected a number above zero"},
        {{"--draft-tokens", "0"}, "--draft-tokens: found \"0\", expected a whole number from 1 to 64"},
        {{"--price", "cheap"}, "--price: found \"cheap\", expected a number above zero"},
        {{"--price", "h900=3"}, "--price h900=3: "},
        {{"--or-device", "h900"}, "--or-device: "},
        {{"--set", "nonsense=2x"}, "--set nonsense=2x"},
        {{"--tp", "3"}, "tensor parallelism can be"},
    };
    for (const auto& [flags, said] : wrong) {
        Arguments arguments = {"advise", "llama-3.1-8b", "h100-sxm"};
        arguments.insert(arguments.end(), flags.begin(), flags.end());
        SCOPED_TRACE(typed(arguments));
        const Answer answer = run(arguments);
        EXPECT_EQ(answer.exit_code, 2);
        EXPECT_EQ(answer.out, "");
        EXPECT_THAT(answer.err, HasSubstr(said));
        EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1);
    }
}

}  // namespace
}  // namespace roofline::cli::testing
