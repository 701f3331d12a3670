// Accounts and devices side by side.
#include "roofline/assess/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "roofline/assess/joined_stages.hpp"

namespace roofline::assess {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Record record(std::string name, double milliseconds, std::vector<std::string> covers = {}, Group group = Group::ffn) {
    Record made;
    made.name = std::move(name);
    made.covers = std::move(covers);
    made.group = group;
    made.times.expected = Seconds(milliseconds * 1e-3);
    made.times.limit = Seconds(milliseconds * 0.5e-3);
    return made;
}

AccountStage stage(std::string name, std::vector<Record> records) {
    AccountStage made;
    made.name = std::move(name);
    made.records = std::move(records);
    sum_records(made);
    return made;
}

Account account(std::string title, std::vector<AccountStage> stages) {
    Account made;
    made.title = std::move(title);
    made.stages = std::move(stages);
    return made;
}

Comparison compared(std::vector<Account> accounts, By by = By::record, TimeKind time = TimeKind::best_known) {
    auto made = compare(accounts, by, time);
    EXPECT_TRUE(made) << (made ? "" : made.error().text);
    return made ? *made : Comparison{};
}

const Row* find(const Comparison& comparison, const std::string& name, std::size_t at = 0) {
    for (const Row& row : comparison.stages.at(at).rows) {
        if (row.name == name) return &row;
    }
    return nullptr;
}

TEST(Compare, JoinsByNameAndSaysWhatChanged) {
    const Comparison result =
        compared({account("before", {stage("decode", {record("a", 1.0), record("b", 2.0), record("gone", 0.5)})}),
                  account("after", {stage("decode", {record("a", 0.8), record("b", 3.0), record("new", 0.1)})})});
    ASSERT_EQ(result.stages.size(), 1U);
    // 3.5 ms before, 3.9 ms after.
    EXPECT_NEAR(*result.stages[0].total.sides[1].ratio, 3.9 / 3.5, 1e-12);
    EXPECT_EQ(find(result, "a")->sides[1].change, Change::better);
    EXPECT_NEAR(*find(result, "a")->sides[1].ratio, 0.8, 1e-12);
    EXPECT_EQ(find(result, "b")->sides[1].change, Change::worse);
    EXPECT_EQ(find(result, "gone")->sides[1].change, Change::vanished);
    EXPECT_EQ(find(result, "new")->sides[1].change, Change::appeared);
    EXPECT_EQ(find(result, "new")->sides[1].ratio, std::nullopt);
    EXPECT_EQ(result.stages[0].rows.front().name, "b") << "the largest difference comes first";
}

TEST(Compare, OnePercentIsTheSame) {
    const Comparison result = compared({account("a", {stage("s", {record("x", 1.0), record("y", 1.0)})}),
                                        account("b", {stage("s", {record("x", 1.009), record("y", 1.011)})})});
    EXPECT_EQ(find(result, "x")->sides[1].change, Change::same);
    EXPECT_EQ(find(result, "y")->sides[1].change, Change::worse);
}

TEST(Compare, WhatOneSideFusesIsAddedUpOnTheOther) {
    const Comparison result =
        compared({account("apart", {stage("s", {record("gate", 1.0), record("up", 2.0), record("down", 4.0)})}),
                  account("fused", {stage("s", {record("gate_up", 2.4, {"gate", "up"}), record("down", 4.0)})})});
    ASSERT_EQ(result.stages[0].rows.size(), 2U);
    const Row* fused = find(result, "gate_up");
    ASSERT_NE(fused, nullptr);
    EXPECT_NEAR(*fused->sides[0].value, 3e-3, 1e-15);
    EXPECT_NEAR(*fused->sides[1].ratio, 0.8, 1e-12);
    EXPECT_THAT(fused->sides[0].merged, ElementsAre("gate", "up"));
    EXPECT_TRUE(fused->sides[1].merged.empty());
}

TEST(Compare, RowsAddUpToTheRecordsOfEverySideHoweverTheyAreTied) {
    // b covers x and y, c covers y and z: all of them are one knot, and nothing is counted twice or lost.
    const std::vector<Account> accounts = {
        account("a", {stage("s", {record("x", 1.0), record("y", 2.0), record("z", 4.0), record("w", 8.0)})}),
        account("b", {stage("s", {record("b", 16.0, {"x", "y"}), record("z", 32.0)})}),
        account("c", {stage("s", {record("c", 64.0, {"y", "z"}), record("x", 128.0), record("x", 1.0)})})};
    for (const By by : {By::record, By::group}) {
        const Comparison result = compared(accounts, by);
        for (std::size_t side = 0; side < accounts.size(); ++side) {
            double sum = 0.0;
            for (const Row& row : result.stages[0].rows) sum += row.sides[side].value.value_or(0.0);
            EXPECT_NEAR(sum, accounts[side].stages[0].times.expected.value, 1e-12);
        }
    }
    const Comparison result = compared(accounts);
    EXPECT_EQ(result.stages[0].rows.size(), 2U);
}

TEST(Compare, NumberedStepsAreAveragedWhereTheOtherSideHasOne) {
    const Comparison result =
        compared({account("predicted", {stage("prefill", {record("a", 9.0)}), stage("decode", {record("a", 2.0)})}),
                  account("traced", {stage("prefill", {record("a", 9.0)}), stage("decode 1", {record("a", 2.0)}),
                                     stage("decode 2", {record("a", 4.0)})})});
    ASSERT_EQ(result.stages.size(), 2U);
    EXPECT_EQ(result.stages[1].name, "decode");
    EXPECT_NEAR(*result.stages[1].total.sides[1].value, 3e-3, 1e-15);
    EXPECT_THAT(result.notes, Contains(HasSubstr("decode is the mean of 2 steps")));
}

TEST(Compare, StepsThatAreNumberedAlikeAreJoinedOneByOne) {
    const std::vector<AccountStage> steps = {stage("decode 1", {record("a", 1.0)}),
                                             stage("decode 2", {record("a", 2.0)})};
    const Comparison result = compared({account("a", steps), account("b", steps)});
    ASSERT_EQ(result.stages.size(), 2U);
    EXPECT_EQ(result.stages[1].name, "decode 2");
    EXPECT_EQ(result.stages[1].total.sides[1].change, Change::same);
}

TEST(Compare, AProfileWithoutStagesIsHeldAgainstTheSumOfTheOthers) {
    AccountStage decode = stage("decode", {record("a", 2.0)});
    decode.repetitions = 3.0;
    const Comparison result = compared({account("staged", {stage("prefill", {record("a", 9.0)}), decode}),
                                        account("flat", {stage("all", {record("a", 15.0)})})});
    ASSERT_EQ(result.stages.size(), 1U);
    EXPECT_NEAR(*result.stages[0].total.sides[0].value, 15e-3, 1e-15);  // 9 + 3 x 2
    EXPECT_EQ(find(result, "a")->sides[1].change, Change::same);
}

TEST(Compare, AStageThatOnlyOneSideHasAppearsOrVanishes) {
    const Comparison result = compared(
        {account("a", {stage("prefill", {record("x", 1.0)})}), account("b", {stage("decode", {record("x", 1.0)})})});
    ASSERT_EQ(result.stages.size(), 2U);
    EXPECT_EQ(result.stages[0].total.sides[1].change, Change::vanished);
    EXPECT_EQ(result.stages[1].total.sides[1].change, Change::appeared);
}

TEST(Compare, MeasuredTimesArePreferredAndTheSidesSaySo) {
    Account traced = account("traced", {stage("s", {record("a", 1.0)})});
    traced.stages[0].records[0].times.measured = Seconds(5e-3);
    traced.stages[0].times.measured = Seconds(6e-3);
    const Account predicted = account("predicted", {stage("s", {record("a", 1.0)})});
    const Comparison best = compared({predicted, traced});
    EXPECT_THAT(best.time_names, ElementsAre("expected", "measured"));
    EXPECT_NEAR(*find(best, "a")->sides[1].ratio, 5.0, 1e-12);
    EXPECT_NEAR(*best.stages[0].total.sides[1].ratio, 6.0, 1e-12);
    const Comparison limit = compared({predicted, traced}, By::record, TimeKind::limit);
    EXPECT_NEAR(*find(limit, "a")->sides[1].ratio, 1.0, 1e-12);
    const std::vector<Account> both = {predicted, traced};
    const auto none = compare(both, By::record, TimeKind::measured);
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().text, HasSubstr("predicted: nothing in it was measured"));
}

TEST(Compare, FailsForStagesAndForRowsThatMatter) {
    const Comparison result = compared({account("a", {stage("s", {record("large", 100.0), record("small", 0.5)})}),
                                        account("b", {stage("s", {record("large", 104.0), record("small", 0.9)})})});
    // 0.5 of 100.5 ms is less than a percent on one side, 0.9 of 104.9 ms on the other: jitter, not news.
    EXPECT_TRUE(result.worse_than(0.05).empty());
    const auto failures = result.worse_than(0.03);
    ASSERT_EQ(failures.size(), 2U);
    // By hand: the stage 104.9 / 100.5 = 1.0438, the row 1.04.
    EXPECT_EQ(failures[0].name, "s");
    EXPECT_NEAR(failures[0].by, 104.9 / 100.5 - 1.0, 1e-12);
    EXPECT_EQ(failures[1].name, "large");
}

TEST(Compare, OtherWorkIsSaid) {
    AccountStage one = stage("decode", {record("a", 1.0)});
    AccountStage eight = one;
    one.batch = 1.0;
    eight.batch = 8.0;
    const Comparison result = compared({account("a", {one}), account("b", {eight})});
    EXPECT_THAT(result.notes, Contains(HasSubstr("decode: not the same work")));
}

TEST(Compare, ZeroAgainstZeroIsTheSameAndNothingIsNotANumber) {
    const Comparison result = compared({account("a", {stage("s", {record("x", 0.0), record("y", 0.0)})}),
                                        account("b", {stage("s", {record("x", 0.0), record("y", 1.0)})})});
    EXPECT_EQ(find(result, "x")->sides[1].change, Change::same);
    EXPECT_EQ(find(result, "y")->sides[1].change, Change::worse);
    EXPECT_EQ(find(result, "y")->sides[1].ratio, std::nullopt);
}

TEST(Compare, DevicesAreJoinedByFigureAndMoreIsBetterExceptPower) {
    Device first;
    first.name = "first";
    first.rates[index(Engine::matrix)][index(DType::bf16)] = Figure{1e15, "", ""};
    first.power = Figure{500.0, "", ""};
    Device second = first;
    second.name = "second";
    second.rates[index(Engine::matrix)][index(DType::bf16)] = Figure{9e14, "", ""};
    second.power = Figure{400.0, "", ""};
    second.ceilings["memory.bandwidth"] = Figure{3e12, "", ""};
    const std::vector<Device> devices = {first, second};
    const auto result = compare_devices(devices);
    ASSERT_TRUE(result);
    EXPECT_EQ(find(*result, "matrix.bf16")->sides[1].change, Change::worse);
    EXPECT_EQ(find(*result, "power")->sides[1].change, Change::better);
    EXPECT_EQ(find(*result, "measured memory.bandwidth")->sides[1].change, Change::appeared);
    const auto failures = result->worse_than(0.05);
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_NEAR(failures[0].by, 0.1, 1e-12);
}

// A trace without a model: attainable stands in for expected, and is called what it is.
TEST(Compare, WhatWasNotPredictedIsNotCalledExpected) {
    Account traced = account("trace", {stage("decode", {record("a", 1.0)})});
    for (AccountStage& one : traced.stages) {
        one.times.attainable = one.times.expected;
        one.times.measured = Seconds(5e-3);
    }
    const Comparison result = compared({account("prediction", {stage("decode", {record("a", 1.0)})}), traced},
                                       By::record, TimeKind::expected);
    EXPECT_EQ(result.time_names.at(0), "expected");
    EXPECT_EQ(result.time_names.at(1), "attainable: nothing was predicted");
}

}  // namespace
}  // namespace roofline::assess
