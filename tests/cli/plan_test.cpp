// `roofline plan` as a user meets it: bad input, no answer, JSON, flags for engines.
#include <algorithm>

#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"

namespace roofline::cli::testing {
namespace {

using Arguments = std::vector<std::string>;

Arguments plan(const Arguments& more) {
    Arguments arguments = {"plan", "llama-3.1-8b"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

void expect_refused(const Arguments& arguments, const std::string& says) {
    SCOPED_TRACE(typed(arguments));
    const Answer answer = run(arguments);
    EXPECT_EQ(answer.exit_code, 2);
    EXPECT_EQ(answer.out, "");
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
    EXPECT_NE(answer.err.find(says), std::string::npos) << answer.err << "should say: " << says;
}

TEST(PlanCommand, RefusesBadInputInOneLine) {
    expect_refused({"plan"}, "no MODEL was named");
    expect_refused(plan({}), "--devices: expected devices with counts");
    expect_refused(plan({"--devices", "h100-sxm"}), "expected a device and how many there are, such as h100-sxm:8");
    expect_refused(plan({"--devices", "h100-sxm:0"}), "found \"0\", expected a whole number from 1");
    expect_refused(plan({"--devices", "h100-smx:8"}), "h100-sxm");
    expect_refused(plan({"--devices", "h100-sxm:8,"}), "--devices: found \"\"");
    const Arguments devices = plan({"--devices", "h100-sxm:2"});
    const auto with = [&](const Arguments& more) {
        Arguments arguments = devices;
        arguments.insert(arguments.end(), more.begin(), more.end());
        return arguments;
    };
    expect_refused(with({"--ttft", "500"}), "--ttft: found \"500\", expected a time with its unit");
    expect_refused(with({"--ttft", "0ms"}), "--ttft: found \"0ms\", expected a time above zero");
    expect_refused(with({"--tpot", "-3ms"}), "--tpot: found \"-3ms\"");
    expect_refused(with({"--tpot", "fast"}), "--tpot: found \"fast\"");
    expect_refused(with({"--requests-per-second", "0"}), "--requests-per-second: found \"0\"");
    expect_refused(with({"--max-cost", "0/h"}), "--max-cost: found \"0\"");
    expect_refused(with({"--price", "h200-sxm=3"}), "h200-sxm is not among --devices");
    expect_refused(with({"--price", "h100-sxm"}), "expected a device and the price of an hour, such as h100-sxm=2.5");
    expect_refused(plan({"--devices", "h100-sxm:2,h200-sxm:2", "--price", "h100-sxm=2"}), "has none for h200-sxm");
    expect_refused(with({"--quantization", "fp9"}), "--quantization: found \"fp9\"");
    expect_refused(with({"--kv-cache-dtype", "fp9"}), "--kv-cache-dtype: found \"fp9\"");
    expect_refused(with({"--generate", "1"}), "--generate: found \"1\"");
    expect_refused({"plan", "gpt2", "--devices", "l40s:2"},
                   "--prompt: found \"1024\", expected prompts that leave room");
    expect_refused(with({"--prompt", "0"}), "--prompt");
    expect_refused(with({"--prompt", "lognormal:100"}), "--prompt");
    expect_refused(with({"--goal", "luck"}), "--goal");
    expect_refused(with({"--emit", "vlm"}), "expected one of sglang, trtllm, vllm");
    expect_refused(with({"--chunk", "512,big"}), "--chunk: found \"big\"");
    expect_refused({"plan", "lama-3.1-8b", "--devices", "h100-sxm:2"}, "llama-3.1-8b");
}

TEST(PlanCommand, SaysWhichTargetFailsAndExitsWithOne) {
    const Answer answer = run(plan({"--devices", "h100-sxm:2", "--tpot", "100us"}));
    EXPECT_EQ(answer.exit_code, 1);
    EXPECT_EQ(answer.err, "");
    EXPECT_NE(answer.out.find("nothing meets the targets\n  time per token: 100.0 us asked for"), std::string::npos)
        << answer.out;
    const Answer nothing = run({"plan", "llama-3.1-405b", "--devices", "rtx-4090:1"});
    EXPECT_EQ(nothing.exit_code, 1);
    EXPECT_NE(nothing.out.find("nothing fits"), std::string::npos) << nothing.out;
}

TEST(PlanCommand, FollowsItsSchemaWithAnAnswerAndWithout) {
    const Schema schema = Schema::published("plan.schema.json");
    const Arguments answered = plan({"--devices", "h100-sxm:2,l40s:2", "--price", "h100-sxm=2,l40s=1",
                                     "--requests-per-second", "5", "--emit", "vllm", "--format", "json"});
    const Arguments missed = {
        "plan", "llama-3.1-8b,qwen3-30b-a3b", "--devices", "h100-sxm:2", "--ttft", "1us", "--tpot", "1us", "--format",
        "json"};
    for (const Arguments& arguments : {answered, missed}) {
        SCOPED_TRACE(typed(arguments));
        const Answer answer = run(arguments);
        EXPECT_EQ(answer.exit_code, arguments == answered ? 0 : 1) << answer.err;
        const auto found = schema.violations(parsed(answer.out));
        EXPECT_TRUE(found.empty()) << joined(found);
    }
}

TEST(PlanCommand, TakesAMixOfLengthsAndStartsTheEngineForTheLongest) {
    // A quarter of the prompts is 3,000 tokens, the others 200. Of 233 quantiles (S1) 58 are 3,000:
    // (175 x 200 + 58 x 3,000) / 233 = 897 in the mean; 3,050 tokens at most.
    const Arguments arguments =
        plan({"--devices", "h100-sxm:1", "--prompt", "200*3,3000*1", "--generate", "50", "--requests-per-second", "5"});
    const Answer answer = run(arguments);
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("897 prompt tokens, 50 output tokens in the mean"), std::string::npos) << answer.out;
    Arguments emitted = arguments;
    emitted.insert(emitted.end(), {"--emit", "vllm"});
    EXPECT_NE(run(emitted).out.find("--max-model-len 3050"), std::string::npos);
}

TEST(PlanCommand, EmitsOnlyWhatStartsTheBest) {
    const Answer answer = run(plan({"--devices", "h100-sxm:1", "--emit", "vllm"}));
    EXPECT_EQ(answer.exit_code, 0);
    EXPECT_TRUE(answer.out.starts_with("vllm serve meta-llama/Meta-Llama-3.1-8B \\\n")) << answer.out;
    EXPECT_NE(answer.out.find("--max-model-len 1152"), std::string::npos) << answer.out;
}

TEST(PlanCommand, ADraftModelMustBeKnownUnlessItsShareIs) {
    const Answer counted =
        run(plan({"--devices", "h100-sxm:1", "--speculate", "3,0.8", "--draft-model", "llama-3.2-1b"}));
    EXPECT_EQ(counted.exit_code, 0) << counted.err;
    EXPECT_NE(counted.out.find("the time and the memory of llama-3.2-1b are counted"), std::string::npos)
        << counted.out;
    const Answer unknown = run(plan({"--devices", "h100-sxm:1", "--speculate", "3,0.8", "--draft-model", "a/head"}));
    EXPECT_EQ(unknown.exit_code, 2);
    EXPECT_NE(unknown.err.find("--draft-model: "), std::string::npos) << unknown.err;
    const Answer shared =
        run(plan({"--devices", "h100-sxm:1", "--speculate", "3,0.8,0.05", "--draft-model", "a/head"}));
    EXPECT_EQ(shared.exit_code, 0) << shared.err;
    EXPECT_NE(shared.out.find("the memory of what guesses is not counted"), std::string::npos) << shared.out;
}

TEST(PlanCommand, SaysTheSameTwice) {
    const Arguments arguments = plan({"--devices", "h100-sxm:4", "--tpot", "20ms", "--format", "md"});
    EXPECT_EQ(run(arguments).out, run(arguments).out);
}

}  // namespace
}  // namespace roofline::cli::testing
