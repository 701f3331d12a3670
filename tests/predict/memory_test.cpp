#include "roofline/predict/memory.hpp"

#include <gtest/gtest.h>

#include "predict/random_scenarios.hpp"
#include "roofline/predict/fit.hpp"

namespace roofline::predict {
namespace {

using namespace testing;

constexpr double gib = 1073741824.0;

Workload chat(double batch, double prompt, double generate) {
    Workload workload;
    workload.batch = batch;
    workload.prompt = prompt;
    workload.generate = generate;
    return workload;
}

/// Round figures: 0.5 of all memory, 1 GiB runtime, 2 GiB collectives, 3 GiB graphs, 10 B a logit, no streams.
MemoryOptions round_engine() {
    MemoryOptions options;
    options.rules.name = "round";
    options.rules.layout = EngineRules::Layout::tables;
    options.rules.prints = EngineRules::Prints::even;
    options.rules.utilisation.value = 0.5;
    options.rules.activations_inside = true;
    options.rules.runtime.value = 1.0 * gib;
    options.rules.collectives.value = 2.0 * gib;
    options.rules.graphs.value = 3.0 * gib;
    options.rules.sampler.value = 10.0;
    options.rules.block.value = 16.0;
    options.rules.steps = {{{0.0, "", ""}, {1000.0, "", ""}, {100.0, "", ""}, {}}};
    return options;
}

Device card(double gibibytes) {
    Device device = h100();
    set_capacity(device, Level::memory, gibibytes * gib);
    return device;
}

EngineMemory of(const MemoryOptions& options, const Device& device, const Workload& workload = chat(1, 1000, 24),
                double longest = 8192.0) {
    const auto memory = engine_memory(lowered(llama_3_8b()), device, workload, longest, options);
    EXPECT_TRUE(memory.has_value());
    return memory.value_or(EngineMemory{});
}

TEST(EngineMemory, ThePoolByHand) {
    // Llama 3 8B on 80 GiB. Budget 40 GiB. Weights 16,060,522,496 B. The trial run: 100 rows x 128,256 x 10 B + 1,000
    // tokens x 8,192 B = 136,448,000 B for the sampler; forward 1,000 x 86,016 = 86,016,000 B; the larger counts.
    const EngineMemory memory = of(round_engine(), card(80));
    EXPECT_EQ(memory.budget.value, 40.0 * gib);
    EXPECT_EQ(memory.weights.value, 16060522496.0);
    EXPECT_EQ(memory.activations.value, 136448000.0);
    EXPECT_EQ(memory.overhead.value, 1.0 * gib);
    EXPECT_EQ(memory.pool.value, 39.0 * gib - 16060522496.0 - 136448000.0);
    // 25,679,... / 2,097,152 B a block
    EXPECT_EQ(memory.pool_blocks, std::floor(memory.pool.value / 2097152.0));
    EXPECT_EQ(memory.pool_tokens, 16.0 * memory.pool_blocks);
    EXPECT_EQ(memory.concurrency, memory.pool_blocks / 512.0);
    EXPECT_FALSE(memory.reported_known);
}

TEST(EngineMemory, SeveralDevicesKeepBuffersForTheirCollectives) {
    MemoryOptions options = round_engine();
    const double alone = of(options, card(80)).pool.value;
    options.ranks = 2.0;
    EXPECT_EQ(of(options, card(80)).pool.value, alone - 2.0 * gib);
}

TEST(EngineMemory, GraphsCountOnlyWhereTheEngineCountsThem) {
    MemoryOptions options = round_engine();
    const double without = of(options, card(80)).pool.value;
    options.rules.graphs_inside = true;
    EXPECT_EQ(of(options, card(80)).pool.value, without - 3.0 * gib);
}

TEST(EngineMemory, WhatTheDriverReportsCountsNotTheDatasheet) {
    Device device = card(80);
    device.levels[index(Level::memory)]->reported = Figure{79.0 * gib, "test", ""};
    const EngineMemory memory = of(round_engine(), device);
    EXPECT_EQ(memory.reported.value, 79.0 * gib);
    EXPECT_TRUE(memory.reported_known);
    EXPECT_EQ(memory.budget.value, 39.5 * gib);
}

TEST(EngineMemory, AFractionOfWhatIsFreeAfterLoadingLeavesTheRestAlone) {
    // (80 GiB - 1 GiB runtime - weights - trial run) x 0.5
    MemoryOptions options = round_engine();
    options.rules.fraction_of = EngineRules::FractionOf::free_after;
    EXPECT_EQ(of(options, card(80)).pool.value, 0.5 * (79.0 * gib - 16060522496.0 - 136448000.0));
}

TEST(EngineMemory, AFractionOfWhatIsFreeBeforeLoadingHoldsWeightsAndCaches) {
    // SGLang's way: the trial run lives in what the fraction leaves. 0.5 x (80 - 4) GiB - weights - 1 GiB
    MemoryOptions options = round_engine();
    options.rules.fraction_of = EngineRules::FractionOf::free_before;
    options.rules.activations_inside = false;
    options.rules.context.value = 4.0 * gib;
    EXPECT_EQ(of(options, card(80)).pool.value, 37.0 * gib - 16060522496.0);
}

TEST(EngineMemory, AReserveDecidesTheFraction) {
    // 1 GiB + 1,000 tokens x 1 MiB + 100 sequences x 2 MiB + 1 rank x 0 = 1,024 + 1,000 + 200 MiB = 2,224 MiB of
    // 81,920: 0.97285 -> 0.973. At least 10 GiB above 60 GiB: 0.875.
    MemoryOptions options = round_engine();
    EngineRules::Reserve reserve;
    reserve.fixed.value = 1.0 * gib;
    reserve.per_token.value = 1048576.0;
    reserve.per_sequence.value = 2.0 * 1048576.0;
    reserve.least_above.value = 100.0 * gib;
    options.rules.reserve = reserve;
    EXPECT_EQ(of(options, card(80)).utilisation, 0.973);
    options.rules.reserve->least.value = 10.0 * gib;
    options.rules.reserve->least_above.value = 60.0 * gib;
    EXPECT_EQ(of(options, card(80)).utilisation, 0.875);
    options.utilisation = 0.6;
    EXPECT_EQ(of(options, card(80)).utilisation, 0.6) << "what is asked for comes first";
}

TEST(EngineMemory, DefaultsDependOnTheDevice) {
    MemoryOptions options = round_engine();
    options.rules.steps = {{{70.0 * gib, "", ""}, {8192.0, "", ""}, {1024.0, "", ""}, {"a100"}},
                           {{0.0, "", ""}, {2048.0, "", ""}, {256.0, "", ""}, {}}};
    EXPECT_EQ(of(options, card(80)).step_tokens, 8192.0);
    EXPECT_EQ(of(options, card(24)).sequences, 256.0);
    Device a100 = card(80);
    a100.name = "a100-sxm-80gb";
    EXPECT_EQ(of(options, a100).step_tokens, 2048.0);
    options.step_tokens = 512.0;
    EXPECT_EQ(of(options, card(80)).step_tokens, 512.0);
}

TEST(EngineMemory, TheLargestBatchIsWhereOneMoreWouldNotFit) {
    MemoryOptions options = round_engine();
    options.sequences = 1e9;
    for (const double context : {100.0, 1000.0, 5000.0}) {
        const EngineMemory memory = of(options, card(80), chat(1, context, 1));
        Workload full = chat(memory.largest_batch, context, 1);
        EXPECT_TRUE(of(options, card(80), full).fits) << context;
        full.batch += 1.0;
        const EngineMemory over = of(options, card(80), full);
        EXPECT_FALSE(over.fits) << context;
        EXPECT_GT(over.shortfall.value, 0.0);
        EXPECT_LE(over.shortfall.value, memory.cache.bytes(context + 1.0)) << "one sequence is missing, no more";
    }
}

TEST(EngineMemory, TheLongestContextIsWhereOneMoreTokenWouldNotFit) {
    MemoryOptions options = round_engine();
    options.longest = 1e6;
    const EngineMemory memory = of(options, card(40), chat(4, 10, 1));
    ASSERT_TRUE(memory.longest_context.has_value());
    Workload full = chat(4, *memory.longest_context - 1.0, 1);
    EXPECT_TRUE(of(options, card(40), full).fits);
    full.prompt += 1.0;
    EXPECT_FALSE(of(options, card(40), full).fits);
}

TEST(EngineMemory, ACardThatCannotHoldTheWeightsSaysHowMuchIsMissing) {
    const EngineMemory memory = of(round_engine(), card(24));
    EXPECT_LT(memory.pool.value, 0.0);
    EXPECT_FALSE(memory.fits);
    EXPECT_EQ(memory.largest_batch, 0.0);
    EXPECT_EQ(memory.pool_tokens, 0.0);
    EXPECT_GT(memory.shortfall.value, -memory.pool.value);
}

TEST(EngineMemory, RoutedExpertsKeepAWorkspace) {
    // Two of eight experts of width 100 behind 64: rows of 64 in, 200 (gate and up) out, 2 x (64 + 200) x 2 B a token.
    MoeShape shape;
    shape.experts = 8;
    shape.chosen = 2;
    shape.width = 100;
    const Lowered model = lowered(stack(64, 1000, layer(nullptr, moe(shape))));
    EngineRules rules = round_engine().rules;
    const double without = trial_activations(model, rules, 1000.0, 100.0);
    rules.expert_workspace = true;
    EXPECT_EQ(trial_activations(model, rules, 1000.0, 100.0) - without, 1000.0 * 2.0 * (64.0 + 200.0) * 2.0);
}

TEST(EngineMemory, NothingChangesWhereNoEngineIsNamed) {
    Random random(5);
    for (int i = 0; i < 100; ++i) {
        const auto scenario = random_scenario(random);
        const Fit plain = fit(scenario.lowered, scenario.device, scenario.workload, 8192.0);
        MemoryOptions none;
        none.rules.layout = EngineRules::Layout::ideal;
        const Fit same = fit(scenario.lowered, scenario.device, scenario.workload, 8192.0, none);
        EXPECT_EQ(plain.fits, same.fits);
        EXPECT_EQ(plain.largest_batch, same.largest_batch);
        EXPECT_EQ(plain.longest_context, same.longest_context);
        EXPECT_FALSE(same.engine.has_value());
    }
}

TEST(EngineMemory, MoreMemoryNeverHoldsLess) {
    Random random(6);
    for (int i = 0; i < 200; ++i) {
        const Lowered model = random_lowered(random, random_architecture(random));
        MemoryOptions options = round_engine();
        options.rules.layout = random.maybe() ? EngineRules::Layout::tables : EngineRules::Layout::pools;
        const Workload workload = chat(std::floor(random.scale(1, 100)), std::floor(random.scale(1, 1e5)), 1);
        const double size = random.scale(1, 1000);
        const auto small = engine_memory(model, card(size), workload, 0.0, options);
        const auto large = engine_memory(model, card(2.0 * size), workload, 0.0, options);
        EXPECT_LE(small->pool.value, large->pool.value) << i;
        EXPECT_LE(small->largest_batch, large->largest_batch) << i;
        EXPECT_LE(small->pool_tokens, large->pool_tokens) << i;
        EXPECT_LE(small->longest_context.value_or(1e9), large->longest_context.value_or(1e9)) << i;
        EXPECT_TRUE(!small->fits || large->fits) << i;
    }
}

}  // namespace
}  // namespace roofline::predict
