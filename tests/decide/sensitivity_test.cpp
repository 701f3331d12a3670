// What doubling a resource buys.
#include "roofline/decide/sensitivity.hpp"

#include <gtest/gtest.h>

#include "decide/questions.hpp"

namespace roofline::testing {
namespace {

using decide::Candidate;
using decide::Goal;

std::vector<decide::Sensitivity> rows_of(const Candidate& candidate, Goal goal) {
    return decide::sensitivities(candidate, *decide::score(candidate), goal);
}

TEST(Sensitivity, DecodingOneSequenceOwesNothingToComputeAndMostToMemory) {
    const auto rows = rows_of(question("llama-3.1-8b", "h100-sxm"), Goal::tpot);
    EXPECT_LT(find_resource(rows, "compute")->doubled, 1.02);
    EXPECT_GE(find_resource(rows, "compute")->doubled, 1.0);
    EXPECT_GT(find_resource(rows, "memory.bandwidth")->doubled, 1.5);
    EXPECT_EQ(rows.front().resource.name, "memory.bandwidth");
    EXPECT_GT(*find_resource(rows, "memory.bandwidth")->elasticity, 0.7);
}

TEST(Sensitivity, HasARowForEveryTypeThatWorksAndForTheCache) {
    // DeepSeek V3 multiplies weights in fp8 and attends in bf16. What an L2 gives is measured, not published.
    const Candidate asked = question("deepseek-v3", "h200-sxm");
    const auto score = decide::score(asked);
    ASSERT_TRUE(score);
    const auto rows = decide::sensitivities(asked, *score, Goal::ttft);
    const decide::Sensitivity* all = find_resource(rows, "compute");
    const decide::Sensitivity* fp8 = find_resource(rows, "compute.fp8");
    const decide::Sensitivity* bf16 = find_resource(rows, "compute.bf16");
    const decide::Sensitivity* cache = find_resource(rows, "cache.bandwidth");
    ASSERT_TRUE(all && fp8 && bf16 && cache);
    EXPECT_GT(fp8->doubled, 1.0);
    EXPECT_GT(bf16->doubled, 1.0);
    EXPECT_GE(all->doubled, std::max(fp8->doubled, bf16->doubled));
    EXPECT_EQ(cache->resource.amount, asked.setup.device.ceilings.at("cache.bandwidth").value);
}

TEST(Sensitivity, HasNoRowForABandwidthThatIsOnlyAssumed) {
    const auto rows = rows_of(question("llama-3.1-8b", "h100-sxm"), Goal::ttft);
    EXPECT_EQ(find_resource(rows, "cache.bandwidth"), nullptr);
}

TEST(Sensitivity, PromptsOweMostToCompute) {
    const auto rows = rows_of(question("llama-3.1-8b", "h100-sxm"), Goal::ttft);
    EXPECT_GT(find_resource(rows, "compute")->doubled, 1.4);
    EXPECT_LT(find_resource(rows, "memory.bandwidth")->doubled, 1.2);
    EXPECT_EQ(find_resource(rows, "compute.bf16")->resource.type, DType::bf16);
}

TEST(Sensitivity, OfSetsTheSameFigureAsSetDoes) {
    Candidate candidate = question("llama-3.1-8b", "h200-sxm");  // it has measured ceilings, which move along
    const auto rows = rows_of(candidate, Goal::tpot);
    const double before = decide::score(candidate)->tpot.expected.value;
    candidate.setup.device.levels[index(Level::memory)]->bandwidth->value *= 2.0;
    candidate.setup.device.ceilings.at("memory.bandwidth").value *= 2.0;
    const double after = decide::score(candidate)->tpot.expected.value;
    EXPECT_NEAR(find_resource(rows, "memory.bandwidth")->doubled, before / after, 1e-12);
}

TEST(Sensitivity, MoreOfAnythingNeverHurtsAndNothingBuysMoreThanItself) {
    for (const char* model : {"llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite", "mamba2-2.7b"}) {
        for (const Goal goal : {Goal::ttft, Goal::throughput}) {
            for (const double batch : {1.0, 24.0}) {
                Candidate candidate = question(model, "h100-sxm");
                candidate.setup.workload.batch = batch;
                for (const decide::Sensitivity& row : rows_of(candidate, goal)) {
                    SCOPED_TRACE(std::string(model) + " " + std::string(name(goal)) + " " + row.resource.name);
                    if (row.resource.kind == decide::ResourceKind::capacity) continue;
                    EXPECT_GE(row.doubled, 0.999);
                    EXPECT_LE(row.doubled, 2.001);
                    EXPECT_GE(*row.elasticity, -0.001);
                    EXPECT_LE(*row.elasticity, 1.01);
                }
            }
        }
    }
}

TEST(Sensitivity, EagerKernelsOweToTheirLaunchesWhatGraphsDoNot) {
    const auto eager = rows_of(question("llama-3.2-1b", "h100-sxm", "eager"), Goal::tpot);
    const auto graph = rows_of(question("llama-3.2-1b", "h100-sxm"), Goal::tpot);
    // The host launches more slowly than the device works: half the launch time is half of all.
    EXPECT_GT(find_resource(eager, "launch")->doubled, 1.5);
    EXPECT_LT(find_resource(graph, "launch")->doubled, 1.2);
    EXPECT_GT(find_resource(graph, "start_up")->doubled, 1.02);
}

TEST(Sensitivity, MemoryCapacityCountsThroughTheBatchItHolds) {
    Candidate candidate = question("llama-3.1-8b", "l4");
    const auto latency = rows_of(candidate, Goal::tpot);
    EXPECT_EQ(find_resource(latency, "memory.capacity")->doubled, 1.0);
    const auto rate = rows_of(candidate, Goal::throughput);
    EXPECT_GT(find_resource(rate, "memory.capacity")->doubled, 1.1);
}

TEST(Sensitivity, LinksMatterOnlyWhereDevicesTalk) {
    EXPECT_EQ(find_resource(rows_of(question("llama-3.1-8b", "h100-sxm"), Goal::ttft), "peer.bandwidth")->doubled, 1.0);
    Candidate spread = question("llama-3.1-70b", "h100-sxm");
    spread.setup.deployment().tensor = 8.0;
    spread.setup.workload.prompt = 8192.0;
    EXPECT_GT(find_resource(rows_of(spread, Goal::ttft), "peer.bandwidth")->doubled, 1.01);
}

}  // namespace
}  // namespace roofline::testing
