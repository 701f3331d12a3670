// predict on several devices, under an engine's memory rules and under load: what it answers, what it refuses.
#include <algorithm>

#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"

namespace roofline::cli::testing {
namespace {

using Arguments = std::vector<std::string>;

Arguments predict(const Arguments& more) {
    Arguments arguments = {"predict", "llama-3.1-8b", "h100-sxm"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

Json answered(Arguments arguments, int exit_code = 0) {
    arguments.insert(arguments.end(), {"--format", "json"});
    SCOPED_TRACE(typed(arguments));
    const Answer answer = run(arguments);
    EXPECT_EQ(answer.exit_code, exit_code) << answer.err;
    const Json json = parsed(answer.out);
    const auto found = Schema::published("report.schema.json").violations(json);
    EXPECT_TRUE(found.empty()) << joined(found);
    return json;
}

void expect_refused(const Arguments& arguments, const std::string& says) {
    SCOPED_TRACE(typed(arguments));
    const Answer answer = run(arguments);
    EXPECT_EQ(answer.exit_code, 2) << answer.err;
    EXPECT_EQ(answer.out, "");
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
    EXPECT_NE(answer.err.find(says), std::string::npos) << answer.err;
}

TEST(Deployments, AreReportedPerDevice) {
    const Json one = answered(predict({"--batch", "8"}));
    const Json four = answered(predict({"--batch", "8", "--tp", "4"}));
    EXPECT_EQ(four["deployment"]["devices"], 4);
    EXPECT_EQ(four["deployment"]["tensor_parallel"], 4);
    EXPECT_LT(four["fit"]["weights_bytes"].get<double>(), 0.26 * one["fit"]["weights_bytes"].get<double>());
    EXPECT_GT(four["stages"][1]["bytes"]["peer"].get<double>(), 0.0);
    EXPECT_EQ(one["stages"][1]["bytes"]["peer"].get<double>(), 0.0);
    EXPECT_EQ(four["model"]["parameters"], one["model"]["parameters"]);
}

TEST(Deployments, ThatAreImpossibleAreRefusedWithWhatWorks) {
    expect_refused(predict({"--tp", "3"}), "tensor parallelism can be 1, 2, 4, 8, 16, 32");
    expect_refused(predict({"--pp", "33"}), "expected 1 to 32");
    expect_refused(predict({"--tp", "0"}), "--tp: found \"0\"");
    expect_refused(predict({"--tp", "8", "--devices", "4"}), "needs 8");
    expect_refused({"predict", "mixtral-8x7b", "h100-sxm", "--tp", "16", "--enable-expert-parallel"},
                   "expert parallelism can be 1, 2, 4, 8");
    expect_refused(predict({"--tp", "4", "--ep", "4"}), "llama-3.1-8b has no experts to spread, so it can only be 1");
    expect_refused(predict({"--dp", "4", "--enable-expert-parallel"}), "has no experts to spread");
    expect_refused(predict({"--overlap", "2"}), "a share from 0 to 1");
    expect_refused(predict({"--expert-imbalance", "0.5"}), "1 to 1000");
    expect_refused(predict({"--dispatch-dtype", "fp7"}), "--dispatch-dtype");
    expect_refused(predict({"--expert-exchange", "carry"}), "expected gather or all-to-all");
}

TEST(Load, WhatIsSaidAboutRequestsIsNotLeftUnheard) {
    for (const Arguments& said : {Arguments{"--speculate", "3,0.7"},
                                  {"--simulate"},
                                  {"--prompts", "100-200"},
                                  {"--host-time", "1ms"},
                                  {"--prefill-replicas", "2"},
                                  {"--reserve"}}) {
        expect_refused(predict(said), said.front() + ": is about requests under load, expected --saturated");
    }
}

TEST(Load, OfATraceCountsWhatCameAndReplicasShareIt) {
    const TemporaryFolder folder;
    const std::string file = folder.path("requests.csv");
    std::ofstream(file) << "arrival,prompt,output\n0,100,50\n1,100,50\n2,100,50\n3,100,50\n";
    const Json one = answered(predict({"--trace", file}))["load"];
    EXPECT_EQ(one["simulated"]["requests"], 4.0);
    EXPECT_EQ(one["output_tokens_per_s"], one["simulated"]["output_tokens_per_s"]);
    // Half of them for each of two copies; together as many tokens as before, in about as long.
    const Json two = answered(predict({"--trace", file, "--dp", "2"}))["load"];
    EXPECT_EQ(two["simulated"]["requests"], 2.0);
    EXPECT_EQ(two["output_tokens_per_s"].get<double>(), 2.0 * two["simulated"]["output_tokens_per_s"].get<double>());
}

TEST(Engines, SayWhatTheyLeaveForTheCache) {
    const Json json = answered(predict({"--engine", "vllm", "--max-model-len", "8192"}));
    EXPECT_EQ(json["fit"]["engine"], "vllm");
    EXPECT_GT(json["fit"]["pool_tokens"].get<double>(), 100'000.0);
    expect_refused(predict({"--engine", "vlm"}), "vllm");
    expect_refused(predict({"--engine", "vllm", "--gpu-memory-utilization", "1.5"}), "a share up to 1");
}

TEST(Load, IsAnsweredAtAllThreeTimes) {
    for (const Arguments& how :
         {Arguments{"--saturated"}, Arguments{"--rate", "2"}, Arguments{"--concurrency", "16"}}) {
        Arguments arguments = predict({"--engine", "vllm", "--generate", "200"});
        arguments.insert(arguments.end(), how.begin(), how.end());
        const Json load = answered(arguments)["load"];
        const auto rate = [&](const char* which) {
            return load["replica"][which]["capacity_requests_per_s"].get<double>();
        };
        EXPECT_GE(rate("limit"), rate("attainable"));
        EXPECT_GE(rate("attainable"), rate("expected"));
        EXPECT_GT(rate("expected"), 0.0);
        EXPECT_TRUE(load["cost_per_million_tokens"].is_null()) << "no price is invented";
    }
}

TEST(Load, NearCapacityTheQueueIsSimulatedUnasked) {
    const auto at = [](double part) {
        const Json full = answered(predict({"--engine", "vllm", "--generate", "64", "--saturated"}))["load"];
        const double capacity = full["replica"]["expected"]["capacity_requests_per_s"].get<double>();
        return answered(
            predict({"--engine", "vllm", "--generate", "64", "--rate", std::to_string(part * capacity)}))["load"];
    };
    EXPECT_TRUE(at(0.95).contains("simulated"));
    EXPECT_FALSE(at(0.5).contains("simulated"));
}

TEST(Price, WithoutALoadIsThatOfTheBatchAskedFor) {
    const Arguments asked = predict({"--batch", "8", "--tp", "2", "--price", "1.8"});
    const Json metrics = answered(asked)["metrics"];
    // Two devices at 1.8 an hour cost 0.001 a second; 128 tokens are written for each of 8 prompts of 1,024.
    EXPECT_NEAR(metrics["cost_per_million_tokens"].get<double>(),
                1e3 * metrics["request_s"]["expected"].get<double>() / (8.0 * 128.0), 1e-9);
    EXPECT_NEAR(metrics["cost_per_million_decoded_tokens"].get<double>(),
                1e3 * metrics["tpot_s"]["expected"].get<double>() / 8.0, 1e-9);
    EXPECT_NEAR(metrics["cost_per_million_prompt_tokens"].get<double>(),
                1e3 * metrics["ttft_s"]["expected"].get<double>() / (8.0 * 1024.0), 1e-9);
    EXPECT_TRUE(answered(predict({}))["metrics"]["cost_per_million_tokens"].is_null()) << "no price is invented";
    EXPECT_NE(run(asked).out.find("at 1.8 a device-hour, batch 8 after batch: "), std::string::npos);
    expect_refused(predict({"--price", "free"}), "--price");
}

TEST(Load, ADraftModelIsInTheFit) {
    const Arguments asked = {"--concurrency", "4", "--speculate", "3,0.7", "--draft-model", "llama-3.2-1b"};
    const Json json = answered(predict(asked));
    EXPECT_EQ(json["fit"]["draft_weights_bytes"].get<double>(), 2.0 * 1'235'814'400.0);
    EXPECT_EQ(json["fit"]["weights_bytes"].get<double>(), 16'060'522'496.0 + 2.0 * 1'235'814'400.0);
    EXPECT_NE(run(predict(asked)).out.find("18.53 GB weights (2.472 GB the draft's)"), std::string::npos)
        << run(predict(asked)).out;
    EXPECT_FALSE(answered(predict({"--concurrency", "4"}))["fit"].contains("draft_weights_bytes"));
    expect_refused(predict({"--saturated", "--speculate", "3,0.7", "--draft-model", "llama-3.2-1"}), "--draft-model: ");
    expect_refused(predict({"--saturated", "--speculate", "3,0.7", "--draft-model", "mtp"}), "--draft-model mtp: ");
}

TEST(Load, CostsWhatThePriceSays) {
    const Json load = answered(predict({"--saturated", "--price", "3.6"}))["load"];
    // 3.6 an hour is 0.001 a second.
    EXPECT_NEAR(load["cost_per_million_output_tokens"].get<double>(),
                0.001 / load["output_tokens_per_s"].get<double>() * 1e6, 1e-9);
}

TEST(Load, IsSimulatedAlikeForOneSeed) {
    const Arguments arguments = predict({"--rate", "3", "--simulate", "--requests", "300", "--seed", "7"});
    const Json first = answered(arguments)["load"]["simulated"];
    EXPECT_EQ(first, answered(arguments)["load"]["simulated"]);
    EXPECT_LE(first["ttft_s"]["p50"].get<double>(), first["ttft_s"]["p99"].get<double>());
}

TEST(Load, BeyondWhatIsServedIsSaidAndExitsWithOne) {
    const Json load = answered(predict({"--rate", "100000"}), 1)["load"];
    EXPECT_TRUE(load["replica"]["expected"]["overloaded"]);
    EXPECT_TRUE(load["replica"]["expected"]["ttft_s"].is_null());
}

TEST(Load, FollowsATraceFromAFile) {
    const TemporaryFolder folder;
    const std::string trace = folder.write("trace.csv", "arrival,prompt,output\n0,100,20\n0.5,200,10\n1,50,5\n");
    const Json load = answered(predict({"--trace", trace}))["load"];
    EXPECT_EQ(load["simulated"]["requests"], 3);
    expect_refused(predict({"--trace", folder.write("bad.csv", "0,100,20\n1,none,5\n")}), "bad.csv:2");
}

TEST(Load, AllAcceptedDraftsGiveFiveTokensAStep) {
    // Four proposed, all right, and the model's own: five tokens a step; the step is that of five tokens a sequence.
    const Json plain = answered(predict({"--concurrency", "1"}))["load"];
    const Json drafted = answered(predict({"--concurrency", "1", "--speculate", "4,1"}))["load"];
    const double gain =
        plain["replica"]["limit"]["tpot_s"].get<double>() / drafted["replica"]["limit"]["tpot_s"].get<double>();
    EXPECT_NEAR(gain, 5.0, 0.1);
}

TEST(Load, PromptsOnReplicasOfTheirOwnSayWhichPoolIsNarrow) {
    const Json load = answered(predict({"--saturated", "--prefill-replicas", "1"}))["load"];
    const double capacity = load["pools"]["capacity_requests_per_s"];
    for (const char* part : {"prefill_requests_per_s", "link_requests_per_s", "decode_requests_per_s"})
        EXPECT_LE(capacity, load["pools"][part].get<double>() * (1 + 1e-9)) << part;
}

TEST(Load, BadFlagsAreRefused) {
    expect_refused(predict({"--saturated", "--rate", "2"}), "expected one");
    expect_refused(predict({"--saturated", "--speculate", "4"}), "K,ALPHA");
    expect_refused(predict({"--saturated", "--host-time", "5"}), "500ms");
    expect_refused(predict({"--saturated", "--prompts", "many"}), "--prompts");
    expect_refused(predict({"--saturated", "--prefix-hit-rate", "2"}), "a share from 0 to 1");
    expect_refused(predict({"--saturated", "--draft-model", "llama-3.2-1b"}), "--speculate");
}

}  // namespace
}  // namespace roofline::cli::testing
