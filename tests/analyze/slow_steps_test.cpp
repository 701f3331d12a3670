// Steps made by hand: each of one item that keeps the device busy for some of the step's wall time.
#include "roofline/analyze/slow_steps.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace roofline::analyze {
namespace {

struct Made {
    std::int64_t wall = 0;
    std::int64_t busy = 0;
};

/// Names of the steps that stay in the one stage there is.
std::vector<std::string> kept(const std::vector<Made>& made, std::vector<std::string>* notes = nullptr) {
    Items items;
    Steps steps;
    steps.stages.emplace_back().name = "decode";
    for (std::uint32_t i = 0; i < made.size(); ++i) {
        Item item;
        item.time = made[i].busy;
        items.all.push_back(item);
        Step step;
        step.name = std::to_string(i);
        step.end = made[i].wall;
        step.items = {i};
        step.stage = 0;
        steps.all.push_back(step);
        steps.stages[0].steps.push_back(i);
    }
    const auto said = set_slow_steps_apart(items, steps);
    if (notes != nullptr) *notes = said;
    std::vector<std::string> names;
    for (const std::uint32_t i : steps.stages[0].steps) names.push_back(steps.all[i].name);
    for (const Step& step : steps.all) {
        const bool there = std::find(names.begin(), names.end(), step.name) != names.end();
        EXPECT_EQ(step.stage, there ? 0U : 1U) << step.name;
    }
    return names;
}

using Names = std::vector<std::string>;

TEST(SlowSteps, OneThatWaitsTenTimesTheMedianIsSetApartAndNamed) {
    std::vector<std::string> notes;
    EXPECT_EQ(kept({{900'000, 500}, {1000, 500}, {1100, 500}, {1050, 500}}, &notes), (Names{"1", "2", "3"}));
    ASSERT_EQ(notes.size(), 1U);
    // The median of four is the mean of the middle two: 900,000 / 1,075.
    EXPECT_TRUE(notes[0].starts_with("0 took 900.0 us, 837 times the median of the 4 steps of decode")) << notes[0];
}

TEST(SlowSteps, OfTwoNoneIsTheUsualOne) {
    EXPECT_EQ(kept({{900'000, 500}, {1000, 500}}).size(), 2U);
    EXPECT_EQ(kept({{900'000, 500}, {1000, 500}, {1100, 500}}), (Names{"1", "2"}));
}

TEST(SlowSteps, OneThatComputesLongStays) {
    EXPECT_EQ(kept({{900'000, 899'000}, {1000, 500}, {1100, 500}, {1050, 500}}).size(), 4U);
}

}  // namespace
}  // namespace roofline::analyze
