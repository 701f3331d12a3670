// The search behind `plan`: what it must never do, and its closed form against numbers by hand and against `serving`.
#include "roofline/decide/plan.hpp"

#include <array>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "decide/questions.hpp"
#include "model/scenarios.hpp"
#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::decide {
namespace {

Offer offer_of(std::string_view name, double count) {
    Offer offer;
    offer.device = *io::builtin_device(name);
    offer.count = count;
    offer.execution.profile = *io::builtin_profile("engine", offer.device);
    offer.execution.calibration = std::make_shared<const predict::Calibration>(*io::builtin_calibration(offer.device));
    return offer;
}

PlanQuestion question_of(std::string_view model, std::vector<Offer> offers) {
    PlanQuestion question;
    const auto file = io::builtin_model(model);
    question.model.model_name = file->name;
    question.model.architecture = std::make_shared<const model::Architecture>(file->architecture);
    question.model.checkpoint = std::make_shared<const model::TypePlan>(file->types);
    question.model.checkpoint_summary = file->types_summary;
    question.model.workload.prompt = 1000;
    question.model.workload.generate = 200;
    question.choices.offers = std::move(offers);
    question.choices.steps = {1024.0, 8192.0};
    question.choices.most_sequences = 128.0;
    return question;
}

TEST(Plan, FinalistsNearCapacityAreSimulated) {
    PlanQuestion question = question_of("llama-3.1-8b", {offer_of("h100-sxm", 1)});
    const auto most = plan(question);
    ASSERT_TRUE(most && !most->best.empty());
    // 95% of what the best one can do: nothing is left far from capacity.
    double capacity = 0.0;
    for (const Deploy& deploy : most->front) capacity = std::max(capacity, deploy.served->capacity);
    question.targets.requests = 0.95 * capacity;
    const auto rough = plan(question);
    question.has_time = true;
    const auto close = plan(question);
    ASSERT_TRUE(rough && close && !rough->best.empty() && !close->best.empty());
    EXPECT_EQ(rough->best.front().served->simulated, 0.0);
    EXPECT_GT(close->best.front().served->simulated, 0.0);
    // A target between the two answers: what the closed form would take is refused, or the other way round.
    question.targets.ttft = 0.5 * close->best.front().served->ttft;
    const auto tight = plan(question);
    ASSERT_TRUE(tight);
    for (const Deploy& deploy : tight->best) EXPECT_LE(deploy.served->ttft, *question.targets.ttft);
}

TEST(Plan, SharesTheTimeOfAReplicaByHand) {
    // 10 sequences write 101 tokens each: of a request, 100 further tokens in 100 / 10 = 10 rounds. A prompt of 1000
    // tokens at 500 a round rides on 2 of them: 2 x 50 ms + 8 x 20 ms = 260 ms a request, 3.846 requests/s; a round
    // takes 26 ms in the mean. A first token: half a decode round, 2 rounds of 45 ms with no prompt but its own.
    BatchPrice price{.batch = 10.0, .decode = {0.020, 0.010}, .mixed = {{500.0, 2.0, 0.045, {0.050, 0.030}}}};
    const Performance steady = together(price, 0, 1000.0, 101.0);
    EXPECT_NEAR(steady.capacity, 1.0 / 0.260, 1e-12);
    EXPECT_NEAR(steady.capacity_limit, 1.0 / (2 * 0.030 + 8 * 0.010), 1e-12);
    EXPECT_NEAR(steady.tpot, 0.026, 1e-12);
    EXPECT_NEAR(steady.ttft, 0.010 + 2 * 0.045, 1e-12);
    // 6 tokens: half a round of decoding against 2 of prompts, so every round carries a prompt.
    const Performance prompts = together(price, 0, 1000.0, 6.0);
    EXPECT_NEAR(prompts.capacity, 1.0 / 0.100, 1e-12);
    EXPECT_NEAR(prompts.tpot, 0.050, 1e-12);
}

TEST(Plan, GuessesThatAreAllRightDivideTheRounds) {
    // As above, but with 4 guesses of which all are right a round gives 5 tokens: 100 further tokens in 20 rounds, of
    // which a batch of 10 has a share of 2. Both carry prompts: 2 x 50 ms = 100 ms a request. A token takes a fifth of
    // a round.
    const serving::TokensPerStep all = serving::tokens_per_step({.tokens = 4.0, .acceptance = 1.0});
    EXPECT_EQ(all.mean, 5.0);
    BatchPrice price{.batch = 10.0, .decode = {0.020, 0.010}, .mixed = {{500.0, 2.0, 0.045, {0.050, 0.030}}}};
    price.tokens = all;
    // The last step writes up to 4 tokens too many: 2 in the mean.
    EXPECT_EQ(price.rounds(99.0), 20.0);
    const Performance guessed = together(price, 0, 1000.0, 99.0);
    EXPECT_NEAR(guessed.capacity, 1.0 / 0.100, 1e-12);
    EXPECT_NEAR(guessed.tpot, 0.050 * 20.0 / 98.0, 1e-12);
}

TEST(Plan, TriesEveryBatchWhileSmallThenFourToTheOctave) {
    EXPECT_EQ(batch_grid(20), (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20}));
}

TEST(Plan, CutsOverAllDegreesAndSpreadsExpertsWhereThereAreAny) {
    const Device device = *io::builtin_device("h100-sxm");
    std::set<std::string> dense;
    for (const auto& way : ways_to_cut(device, 4, {.layers = 32})) dense.insert(describe(way));
    EXPECT_EQ(dense, (std::set<std::string>{"one device", "TP2", "TP3", "TP4", "PP2", "TP2 x PP2", "PP3", "PP4"}));
    std::set<std::string> experts;
    for (const auto& way : ways_to_cut(device, 2, {.layers = 32, .experts = true})) experts.insert(describe(way));
    EXPECT_EQ(experts, (std::set<std::string>{"one device", "TP2", "TP2, EP2", "attention DP2, EP2 (gather)",
                                              "attention DP2, EP2 (all-to-all)", "PP2"}));
}

TEST(Plan, SharesSequencesThatAreLongEnough) {
    const Device device = *io::builtin_device("h100-sxm");
    const auto ways = [&](double tokens, bool experts) {
        std::set<std::string> names;
        for (const auto& way : ways_to_cut(device, 4, {.layers = 2, .experts = experts, .tokens = tokens}))
            if (way.context > 1.0) names.insert(describe(way));
        return names;
    };
    // A device has 4,096 tokens of a sequence at least: two from 8,192 on, three from 12,288.
    EXPECT_EQ(ways(8191, false), std::set<std::string>{});
    EXPECT_EQ(ways(8192, false), (std::set<std::string>{"CP2", "TP2 x CP2", "CP2 x PP2"}));
    EXPECT_EQ(ways(12288, true), (std::set<std::string>{"CP2", "CP3", "TP2 x CP2", "TP2 x CP2, EP2", "CP2 x PP2"}));
}

TEST(Plan, SharesLongSequencesWhereThatIsSooner) {
    // With 8 key-value heads, 16 tensor ranks keep every head twice. Two halves of the context keep nothing twice.
    auto question = question_of("llama-3.1-70b", {offer_of("h200-sxm", 16)});
    question.model.workload.prompt = 100'000.0;
    question.model.workload.generate = 500.0;
    question.may_disaggregate = false;
    question.aim = Aim::latency;
    const auto answer = plan(question);
    ASSERT_TRUE(answer.has_value());
    const Counts& counts = answer->counts;
    EXPECT_EQ(counts.candidates, counts.impossible + counts.not_fitting + counts.beaten_early + counts.priced);
    EXPECT_TRUE(std::any_of(answer->front.begin(), answer->front.end(),
                            [](const Deploy& deploy) { return deploy.main.layout.deployment.context > 1.0; }));
}

TEST(Plan, WhatGuessesTakesTimeAndMemory) {
    auto question = question_of("llama-3.1-8b", {offer_of("h100-sxm", 1)});
    question.choices.speculation = {.tokens = 3.0, .acceptance = 0.8};
    const Layout guessing{.offer = 0, .types = 0, .deployment = {}, .speculates = true};
    Passed passed;
    const auto free = price(question.model, question.choices, guessing, passed);
    question.model.draft = std::make_shared<const predict::Setup>(testing::question("llama-3.2-1b", "h100-sxm").setup);
    const auto drafted = price(question.model, question.choices, guessing, passed);
    const auto plain = price(question.model, question.choices, Layout{}, passed);
    ASSERT_TRUE(free && drafted && plain);
    // 1,235,814,400 parameters of 2 B; who does not guess does not hold them.
    EXPECT_NEAR(drafted->weights_on_device - plain->weights_on_device, 2.0 * 1'235'814'400.0, 1.0);
    EXPECT_EQ(free->weights_on_device, plain->weights_on_device);
    EXPECT_LT(drafted->steps.front().largest_batch, free->steps.front().largest_batch);
    // Three steps of the draft before each step that checks; of one sequence they read at least its layers and head,
    // 2.47 GB at 3.35 TB/s.
    const double guesses = drafted->batches.front().decode.limit - free->batches.front().decode.limit;
    EXPECT_GT(guesses, 3.0 * 2.47e9 / 3.35e12);
    EXPECT_LT(guesses, 3.0 * 2.60e9 / 3.35e12);
    // Beside a prompt the draft reads it too.
    const Mixed& with = drafted->batches.front().mixed.front();
    const Mixed& without = free->batches.front().mixed.front();
    EXPECT_GT(with.round.expected - without.round.expected,
              drafted->batches.front().decode.expected - free->batches.front().decode.expected);
}

TEST(Plan, CountsEveryCandidateOnce) {
    const auto answer = plan(question_of("llama-3.1-8b", {offer_of("h100-sxm", 4)}));
    ASSERT_TRUE(answer.has_value());
    const Counts& counts = answer->counts;
    EXPECT_EQ(counts.candidates, counts.impossible + counts.not_fitting + counts.beaten_early + counts.priced);
    EXPECT_GT(counts.beaten_early, 0);
    EXPECT_GT(counts.impossible, 0);  // 8 key-value heads over 3 devices
    EXPECT_EQ(counts.meeting, counts.priced);
    // Colocated only: no split of pools is counted, and nothing is beaten before it is priced.
    auto together_only = question_of("llama-3.1-8b", {offer_of("h100-sxm", 4)});
    together_only.may_disaggregate = false;
    EXPECT_EQ(plan(together_only)->counts.beaten_early, 0);
}

TEST(Plan, PoolsMayBeOfDifferentKinds) {
    // Prompts are held back by compute, outputs by memory: with one device of each kind, the faster computer computes.
    auto question = question_of("llama-3.1-8b", {offer_of("h100-sxm", 1), offer_of("a100-sxm-80gb", 1)});
    question.choices.offers[0].price = 3.0;
    question.choices.offers[1].price = 1.0;
    question.aim = Aim::throughput;
    const auto answer = plan(question);
    ASSERT_TRUE(answer.has_value());
    const Counts& counts = answer->counts;
    EXPECT_EQ(counts.candidates, counts.impossible + counts.not_fitting + counts.beaten_early + counts.priced);
    const Deploy* mixed = nullptr;
    std::vector<Deploy> all = answer->best;
    all.insert(all.end(), answer->front.begin(), answer->front.end());
    for (const Deploy& deploy : all) {
        if (deploy.prefill && deploy.prefill->layout.offer != deploy.main.layout.offer) mixed = &deploy;
        // No more of either than there are.
        std::array<double, 2> used = {0.0, 0.0};
        used[deploy.main.layout.offer] += deploy.main.devices();
        if (deploy.prefill) used[deploy.prefill->layout.offer] += deploy.prefill->devices();
        EXPECT_LE(used[0], 1.0);
        EXPECT_LE(used[1], 1.0);
    }
    ASSERT_NE(mixed, nullptr);
    EXPECT_EQ(mixed->cost_per_hour, 4.0);
    EXPECT_EQ(mixed->devices, 2.0);
    // 131,072 B for each of 1,000 tokens over a network of 50 GB/s: devices of two kinds do not stand in one node.
    EXPECT_NEAR(mixed->performance.transfer, 131072.0 * 1000.0 / 50e9, 1e-9);
    EXPECT_NE(describe(*mixed, question).find(" on h100-sxm"), std::string::npos);
    EXPECT_NE(describe(*mixed, question).find(" on a100-sxm-80gb"), std::string::npos);
}

TEST(Plan, GuessingAheadIsTriedBesideNotGuessing) {
    auto question = question_of("llama-3.1-8b", {offer_of("h100-sxm", 1)});
    question.aim = Aim::latency;
    question.may_disaggregate = false;
    const auto plain = plan(question);
    question.choices.speculation = {.tokens = 3.0, .acceptance = 0.8, .draft_fraction = 0.05};
    const auto guessed = plan(question);
    ASSERT_TRUE(plain && guessed);
    ASSERT_FALSE(plain->best.empty());
    ASSERT_FALSE(guessed->best.empty());
    EXPECT_TRUE(guessed->best.front().main.layout.speculates);
    EXPECT_LT(guessed->best.front().served->tpot, plain->best.front().served->tpot);
    EXPECT_GT(guessed->counts.candidates, plain->counts.candidates);
    // Guesses that are never right only cost: then it is best not to guess, and the answer is the one without.
    question.choices.speculation.acceptance = 0.0;
    const auto wrong = plan(question);
    ASSERT_TRUE(wrong);
    EXPECT_FALSE(wrong->best.front().main.layout.speculates);
    EXPECT_EQ(wrong->best.front().served->tpot, plain->best.front().served->tpot);
}

TEST(Plan, ChoosesOnlyWhatFits) {
    auto question = question_of("llama-3.1-70b", {offer_of("h100-sxm", 8)});
    question.aim = Aim::throughput;
    const auto answer = plan(question);
    ASSERT_TRUE(answer.has_value());
    ASSERT_EQ(answer->best.size(), 2u);
    std::vector<Deploy> all = answer->front;
    all.insert(all.end(), answer->best.begin(), answer->best.end());
    for (const Deploy& deploy : all) {
        EXPECT_LE(deploy.devices, 8.0);
        for (const Fleet* fleet : {&deploy.main, deploy.prefill ? &*deploy.prefill : &deploy.main}) {
            predict::Setup asked =
                setup_of(question.model, question.choices, fleet->layout, fleet->step, std::max(1.0, fleet->batch));
            asked.workload.batch = std::max(1.0, fleet->batch);
            const auto scenario = predict::realise(asked);
            ASSERT_TRUE(scenario.has_value());
            EXPECT_TRUE(predict::fit_deployment(*scenario).fits) << describe(deploy, question);
        }
        // 141 GB of weights do not fit one device of 80 GB.
        EXPECT_GE(deploy.main.layout.devices(), 2.0);
    }
}

TEST(Plan, NeverExpectsMoreThanTheLimit) {
    const auto answer = plan(question_of("qwen3-30b-a3b", {offer_of("h200-sxm", 4)}));
    ASSERT_TRUE(answer.has_value());
    ASSERT_FALSE(answer->front.empty());
    for (const Deploy& deploy : answer->front) {
        EXPECT_LE(deploy.performance.capacity, deploy.performance.capacity_limit);
        EXPECT_LE(deploy.performance.capacity_limit, answer->requests_limit);
    }
}

TEST(Plan, NothingOnTheFrontIsBeaten) {
    const auto answer = plan(question_of("llama-3.1-8b", {offer_of("h100-sxm", 4), offer_of("l40s", 4)}));
    ASSERT_TRUE(answer.has_value());
    ASSERT_GT(answer->front.size(), 3u);
    for (std::size_t i = 0; i < answer->front.size(); ++i) {
        for (std::size_t j = 0; j < answer->front.size(); ++j) {
            EXPECT_TRUE(i == j || !beats(answer->front[i].merits, answer->front[j].merits));
        }
    }
}

TEST(Plan, MeetsItsTargetsWhenAskedAgain) {
    auto question = question_of("llama-3.1-8b", {offer_of("h100-sxm", 8)});
    question.targets = {.ttft = 0.2, .tpot = 0.02, .requests = 40.0, .cost_per_hour = 8.0};
    const auto answer = plan(question);
    ASSERT_TRUE(answer.has_value());
    ASSERT_EQ(answer->best.size(), 2u);
    for (const Deploy& deploy : answer->best) {
        ASSERT_TRUE(deploy.served.has_value());
        EXPECT_LE(deploy.served->ttft, 0.2);
        EXPECT_LE(deploy.served->tpot, 0.02);
        EXPECT_GE(deploy.served->capacity, 40.0);
        EXPECT_LE(deploy.cost_per_hour, 8.0);
        EXPECT_FALSE(deploy.served->overloaded);
    }
    EXPECT_LE(answer->best[0].cost_per_hour, answer->best[1].cost_per_hour);
}

TEST(Plan, ATighterTargetNeverGivesABetterPlan) {
    // One target after another is tightened from loose to impossible; what is asked for must only get worse.
    struct Case {
        Aim aim;
        std::optional<double> Targets::* target;
        std::vector<double> loose_to_tight;
    };
    const std::vector<Case> cases = {{Aim::cost, &Targets::requests, {5, 20, 60, 120, 400}},
                                     {Aim::cost, &Targets::tpot, {0.1, 0.03, 0.012, 0.006, 0.004, 0.001}},
                                     {Aim::cost, &Targets::ttft, {1.0, 0.1, 0.03, 0.015, 0.001}},
                                     {Aim::throughput, &Targets::cost_per_hour, {8, 5, 2, 1, 0.5}},
                                     {Aim::throughput, &Targets::tpot, {0.1, 0.03, 0.012, 0.006, 0.001}},
                                     {Aim::latency, &Targets::cost_per_hour, {8, 4, 2, 1, 0.5}}};
    for (const Case& one : cases) {
        auto question = question_of("llama-3.1-8b", {offer_of("h100-sxm", 8)});
        if (one.aim == Aim::cost) question.targets.requests = 20.0;
        double before = -1e300;
        bool none = false;
        for (const double value : one.loose_to_tight) {
            question.targets.*one.target = value;
            question.aim = one.aim;
            const auto answer = plan(question);
            ASSERT_TRUE(answer.has_value());
            if (answer->best.empty()) {
                none = true;
                continue;
            }
            EXPECT_FALSE(none) << "a plan at " << value << " though none at a looser target";
            const Deploy& best = answer->best.front();
            const double worth = one.aim == Aim::cost         ? best.cost_per_hour
                                 : one.aim == Aim::throughput ? -best.performance.capacity
                                                              : best.performance.tpot;
            EXPECT_GE(worth, before) << "at " << value;
            before = worth;
        }
        EXPECT_TRUE(none || one.aim == Aim::latency || one.target == &Targets::cost_per_hour);
    }
}

TEST(Plan, MoreDevicesNeverLowerTheBoundOnThroughput) {
    double limit = 0.0;
    double best = 0.0;
    for (const double count : {1.0, 2.0, 3.0, 5.0, 8.0, 12.0}) {
        auto question = question_of("llama-3.1-8b", {offer_of("h100-sxm", count)});
        question.aim = Aim::throughput;
        const auto answer = plan(question);
        ASSERT_TRUE(answer.has_value());
        EXPECT_GE(answer->requests_limit, limit);
        EXPECT_GE(answer->best.front().performance.capacity, best);
        limit = answer->requests_limit;
        best = answer->best.front().performance.capacity;
    }
}

TEST(Plan, SaysWhichTargetFailsAndByHowMuch) {
    auto question = question_of("llama-3.1-8b", {offer_of("h100-sxm", 2)});
    question.targets = {.ttft = 1.0, .tpot = 0.0001};
    const auto answer = plan(question);
    ASSERT_TRUE(answer.has_value());
    EXPECT_TRUE(answer->best.empty());
    ASSERT_EQ(answer->misses.size(), 1u);
    EXPECT_EQ(answer->misses[0].target, Target::tpot);
    EXPECT_TRUE(answer->misses[0].alone);
    // 16 GB of weights over two devices of 3.35 TB/s take 2.2 ms at best.
    EXPECT_GT(answer->misses[0].found, 0.0022);
    EXPECT_LT(answer->misses[0].found, 0.0060);
    ASSERT_TRUE(answer->closest.has_value());

    // Each alone can be met, both together cannot: the nearest says what it misses.
    question.targets = {.tpot = 0.005, .requests = 30.0};
    const auto both = plan(question);
    ASSERT_TRUE(both.has_value());
    EXPECT_TRUE(both->best.empty());
    ASSERT_FALSE(both->misses.empty());
    for (const Miss& miss : both->misses) EXPECT_FALSE(miss.alone) << name(miss.target);
}

TEST(Plan, NothingFitsIsNoPlanAndNoFront) {
    const auto answer = plan(question_of("llama-3.1-405b", {offer_of("rtx-4090", 2)}));
    ASSERT_TRUE(answer.has_value());
    EXPECT_TRUE(answer->best.empty());
    EXPECT_TRUE(answer->front.empty());
    EXPECT_EQ(answer->counts.priced, 0);
    EXPECT_GT(answer->counts.not_fitting, 0);
}

TEST(Plan, SendsTheCacheOfAPromptOverTheLinkBetweenPools) {
    auto question = question_of("llama-3.1-8b", {offer_of("h100-sxm", 2)});
    question.choices.steps = {1024.0};
    const auto answer = plan(question);
    ASSERT_TRUE(answer.has_value());
    bool seen = false;
    for (const Deploy& deploy : answer->front) {
        if (!deploy.prefill) continue;
        seen = true;
        // 131,072 B a token x 1000, over 450 GB/s of NVLink in one direction: 0.2913 ms.
        EXPECT_NEAR(deploy.performance.transfer, 131072.0 * 1000.0 / 450e9, 1e-9);
    }
    EXPECT_TRUE(seen);
}

TEST(Plan, ItsClosedFormIsNearToServing) {
    // Not a law: what the search may lose by asking `serving` only about finalists. Pools apart agree within rounding
    // where the pool for outputs is the narrow one.
    for (const char* model : {"llama-3.1-8b", "qwen3-30b-a3b"}) {
        const auto answer = plan(question_of(model, {offer_of("h100-sxm", 4)}));
        ASSERT_TRUE(answer.has_value());
        for (const Deploy& deploy : answer->front) {
            ASSERT_TRUE(deploy.served.has_value());
            const double ratio = deploy.performance.capacity / deploy.served->capacity;
            EXPECT_GT(ratio, 0.9) << model;
            EXPECT_LT(ratio, 1.15) << model;
        }
    }
}

}  // namespace
}  // namespace roofline::decide
