#include "roofline/predict/remedies.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "predict/random_scenarios.hpp"
#include "roofline/predict/fit.hpp"
#include "roofline/predict/setup.hpp"

namespace roofline::predict {
namespace {

using namespace testing;
using Kind = Remedy::Kind;

Workload chat(double batch, double prompt, double generate) {
    Workload workload;
    workload.batch = batch;
    workload.prompt = prompt;
    workload.generate = generate;
    return workload;
}

Device card(double bytes) {
    Device device = h100();
    set_capacity(device, Level::memory, bytes);
    set_bandwidth(device, Level::host, 50e9);
    return device;
}

const std::optional<MemoryOptions> no_engine;

std::vector<Remedy> ask(const Lowered& model, const Device& device, const Workload& workload,
                        const std::optional<MemoryOptions>& options = no_engine,
                        std::span<const Candidate> candidates = {}) {
    return what_would_fit({.lowered = model,
                           .device = device,
                           .workload = workload,
                           .longest_known = 8192.0,
                           .options = options,
                           .kv_bits = 16.0},
                          candidates);
}

const Remedy* of(const std::vector<Remedy>& remedies, Kind kind) {
    const auto found =
        std::find_if(remedies.begin(), remedies.end(), [&](const Remedy& remedy) { return remedy.kind == kind; });
    return found == remedies.end() ? nullptr : &*found;
}

TEST(Remedies, WhatFitsNeedsNone) {
    EXPECT_TRUE(ask(lowered(llama_3_8b()), card(80e9), chat(1, 1000, 24)).empty());
}

TEST(Remedies, WeightsThatDoNotFitCanBeNarrowerSharedOrPartlyElsewhere) {
    // Llama 3 8B in bf16 is 16.06 GB; the card has 12 GB. In fp8 the layers' 6,979,321,856 matrix weights are one byte
    // each: 6,979,321,856 + 2 x 1,050,939,392 = 9.08 GB. Two devices: 8.03 GB each. int4 fits too.
    const Lowered model = lowered(llama_3_8b());
    const Device small = card(12e9);
    const auto remedies = ask(model, small, chat(1, 100, 1));
    ASSERT_NE(of(remedies, Kind::weights), nullptr);
    EXPECT_EQ(of(remedies, Kind::weights)->change, "weights in fp8");
    ASSERT_NE(of(remedies, Kind::devices), nullptr);
    EXPECT_EQ(of(remedies, Kind::devices)->value, 2.0);
    EXPECT_TRUE(of(remedies, Kind::devices)->approximate);
    EXPECT_EQ(of(remedies, Kind::batch), nullptr) << "no batch is small enough";
    EXPECT_EQ(of(remedies, Kind::kv), nullptr);
    // What is missing stays on the host and comes over a link of 50 GB/s in every step.
    const double missing = fit(model, small, chat(1, 100, 1), 8192.0).shortfall().value;
    const Remedy* offload = of(remedies, Kind::offload_weights);
    ASSERT_NE(offload, nullptr);
    EXPECT_EQ(offload->moved.value, missing);
    EXPECT_EQ(offload->added->value, missing / 50e9);
    // 4.083 GB of the 13.96 GB of layers: 29.2%, in hundredths and enough.
    EXPECT_EQ(offload->change, "weights on the host (--offload-weights 0.30)");
    EXPECT_EQ(of(remedies, Kind::offload_kv), nullptr) << "the cache is smaller than what is missing";
}

TEST(Remedies, ACacheThatDoesNotFitCanBeNarrowerOrShorterOrForFewer) {
    // 20 GB: 16.06 of weights; 64 sequences of 1,024 tokens x 131,072 B are 8.6 GB, half of it 4.3 GB.
    const auto remedies = ask(lowered(llama_3_8b()), card(22e9), chat(64, 10, 1014));
    ASSERT_NE(of(remedies, Kind::kv), nullptr);
    EXPECT_EQ(of(remedies, Kind::kv)->value, 8.0);
    ASSERT_NE(of(remedies, Kind::batch), nullptr);
    EXPECT_EQ(of(remedies, Kind::batch)->value, 43.0);
    ASSERT_NE(of(remedies, Kind::context), nullptr);
    ASSERT_NE(of(remedies, Kind::offload_kv), nullptr);
}

TEST(Remedies, EveryChangeOfferedReallyFits) {
    Random random(31);
    int tried = 0;
    for (int i = 0; i < 300; ++i) {
        const Lowered model = random_lowered(random, random_architecture(random));
        const Device device = card(random.scale(1e6, 1e11));
        const Workload workload = chat(std::floor(random.scale(1, 64)), std::floor(random.scale(1, 1e4)), 16);
        for (const Remedy& remedy : ask(model, device, workload)) {
            Workload changed = workload;
            Lowered other = model;
            if (remedy.kind == Kind::batch) changed.batch = remedy.value;
            if (remedy.kind == Kind::weights) other = with_weight_bits(model, remedy.value);
            if (remedy.kind == Kind::kv) other = with_kv_bits(model, 16.0, remedy.value);
            if (remedy.kind == Kind::devices) other = shared_out(model, remedy.value);
            if (remedy.kind == Kind::offload_weights || remedy.kind == Kind::offload_kv) {
                EXPECT_LE(remedy.moved.value, fit(model, device, workload, 8192.0).total().value);
                continue;
            }
            if (remedy.kind == Kind::context) continue;  // the longest context is tested with the fit
            EXPECT_TRUE(fit(other, device, changed, 8192.0).fits) << i << " " << remedy.change;
            ++tried;
        }
    }
    EXPECT_GT(tried, 100);
}

TEST(Remedies, AnEnginesOwnSettingsComeFirst) {
    MemoryOptions options;
    options.rules.name = "round";
    options.rules.layout = EngineRules::Layout::tables;
    options.rules.utilisation.value = 0.5;
    options.rules.activations_inside = true;
    options.rules.sampler.value = 10.0;
    options.rules.block.value = 16.0;
    options.rules.steps = {{{0.0, "", ""}, {1024.0, "", ""}, {1024.0, "", ""}, {}}};
    // 0.5 x 34 GB = 17 GB; weights 16.06; trial run 1,024 x 128,256 x 10 = 1.31 GB: too much. With half the sequences
    // 0.66 GB, and one sequence of 124 tokens takes 8 blocks of 2.1 MB.
    const auto remedies = ask(lowered(llama_3_8b()), card(34e9), chat(1, 100, 24), options);
    ASSERT_GE(remedies.size(), 2U);
    EXPECT_EQ(remedies[0].kind, Kind::utilisation);
    EXPECT_EQ(remedies[0].change, "a memory utilisation of 0.52");
    ASSERT_NE(of(remedies, Kind::sequences), nullptr);
    EXPECT_EQ(of(remedies, Kind::sequences)->value, 512.0);
}

TEST(Remedies, CandidatesReplaceWhatIsDividedOnPaper) {
    const Lowered model = lowered(llama_3_8b());
    Candidate four;
    four.kind = Kind::devices;
    four.change = "tensor parallel 4";
    four.value = 4.0;
    four.lowered = shared_out(model, 4.0);
    four.ranks = 4.0;
    const auto remedies = ask(model, card(12e9), chat(1, 100, 1), no_engine, std::span(&four, 1));
    const auto count = std::count_if(remedies.begin(), remedies.end(),
                                     [](const Remedy& remedy) { return remedy.kind == Kind::devices; });
    EXPECT_EQ(count, 1);
    EXPECT_EQ(of(remedies, Kind::devices)->change, "tensor parallel 4");
    EXPECT_FALSE(of(remedies, Kind::devices)->approximate);
}

TEST(Remedies, KvHeadsLimitHowFarACacheIsShared) {
    // 8 KV heads: beyond 8 devices every one keeps a whole head.
    const Lowered model = lowered(llama_3_8b());
    const double whole = model::cache_bytes(model, 1000.0);
    EXPECT_EQ(model::cache_bytes(shared_out(model, 4.0), 1000.0), whole / 4.0);
    EXPECT_EQ(model::cache_bytes(shared_out(model, 16.0), 1000.0), whole / 8.0);
}

TEST(Remedies, OtherWaysAreLoweredAgainAndOfferNoWiderTypes) {
    predict::Setup setup;
    const Architecture llama = llama_3_8b();
    setup.architecture = std::make_shared<const Architecture>(llama);
    setup.checkpoint = std::make_shared<const TypePlan>(plan_for(llama, "bf16", DType::bf16, "bf16"));
    setup.device =
        card(1e9);  // 16 GB of weights: 16 devices hold less than 1 GB each only with keys uncopied, so 32 do
    const auto ways = other_ways(setup, realise(setup).value());
    const auto count = [&](Kind kind) {
        return std::count_if(ways.begin(), ways.end(), [&](const Candidate& way) { return way.kind == kind; });
    };
    EXPECT_EQ(count(Kind::weights), 2);
    EXPECT_EQ(count(Kind::kv), 1);
    ASSERT_GE(count(Kind::devices), 3);
    for (const Candidate& way : ways) {
        if (way.kind != Kind::devices) continue;
        EXPECT_EQ(way.ranks, way.value);
        const double whole = model::count_parameters(lowered(llama)).stored_bytes;
        const double part = model::count_parameters(way.lowered).stored_bytes;
        EXPECT_GE(part * way.value, whole) << "norms are copied, nothing is lost";
        if (way.value <= 8.0) {
            EXPECT_LT(part * way.value, whole * 1.01);
        }  // beyond its 8 KV heads, keys are copied
    }
    // What is fp8 already is not offered in fp8.
    setup.types.weights = find_format("fp8");
    setup.types.kv = find_format("fp8");
    for (const Candidate& way : other_ways(setup, realise(setup).value())) {
        EXPECT_NE(way.change, "weights in fp8");
        EXPECT_NE(way.kind, Kind::kv);
    }
}

TEST(Remedies, DevicesAreDoubledOnlyUntilItFits) {
    // 16.06 GB of weights and a little: not on one card of 10 GB, but on two.
    predict::Setup setup;
    const Architecture llama = llama_3_8b();
    setup.architecture = std::make_shared<const Architecture>(llama);
    setup.checkpoint = std::make_shared<const TypePlan>(plan_for(llama, "bf16", DType::bf16, "bf16"));
    setup.device = card(10e9);
    const Scenario scenario = realise(setup).value();
    const auto ways = other_ways(setup, scenario);
    ASSERT_FALSE(ways.empty());
    EXPECT_EQ(std::count_if(ways.begin(), ways.end(), [](const Candidate& way) { return way.kind == Kind::devices; }),
              1);
    EXPECT_EQ(ways.back().value, 2.0);
    EXPECT_TRUE(would_fit(scenario, ways.back()));
}

TEST(Remedies, OfAPipelineTheStageWithTheMostToHoldStandsForAll) {
    // 32 layers in 2 stages: the last has the norm and the head beside its 16, the first the table. Both tables are of
    // one size, so the last holds the most by its norm.
    predict::Setup setup;
    const Architecture llama = llama_3_8b();
    setup.architecture = std::make_shared<const Architecture>(llama);
    setup.checkpoint = std::make_shared<const TypePlan>(plan_for(llama, "bf16", DType::bf16, "bf16"));
    setup.device = card(1e9);
    setup.deployment().pipeline = 2.0;
    const Scenario scenario = realise(setup).value();
    double most = 0.0;
    for (const PipelineStage& stage : scenario.stages)
        most = std::max(most, model::count_parameters(stage.lowered).stored_bytes);
    for (const Candidate& way : other_ways(setup, scenario)) {
        if (way.kind != Kind::kv) continue;
        EXPECT_EQ(model::count_parameters(way.lowered).stored_bytes, most);
    }
}

}  // namespace
}  // namespace roofline::predict
