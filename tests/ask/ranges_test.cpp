// Lists and ranges as they are typed. The expected values are written out by hand.
#include "roofline/ask/sweep/ranges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace roofline::ask {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> ranges(const std::string& text) {
    const auto values = parse_ranges("--batch", text);
    if (!values) {
        ADD_FAILURE() << values.error().text;
        return {};
    }
    return *values;
}

std::string refusal(const std::string& text) {
    const auto values = parse_ranges("--batch", text);
    return values ? "accepted" : values.error().text;
}

TEST(Ranges, AListIsItsValuesInTheOrderTheyAreWritten) {
    EXPECT_THAT(ranges("4"), ElementsAre("4"));
    EXPECT_THAT(ranges("4,1,2"), ElementsAre("4", "1", "2"));
}

TEST(Ranges, AStarMultipliesAndAPlusAddsUpToTheLastThatIsNotBeyond) {
    EXPECT_THAT(ranges("1-64*2"), ElementsAre("1", "2", "4", "8", "16", "32", "64"));
    EXPECT_THAT(ranges("1-63*2"), ElementsAre("1", "2", "4", "8", "16", "32"));
    EXPECT_THAT(ranges("3-100*5"), ElementsAre("3", "15", "75"));
    EXPECT_THAT(ranges("128-640+128"), ElementsAre("128", "256", "384", "512", "640"));
    EXPECT_THAT(ranges("128-639+128"), ElementsAre("128", "256", "384", "512"));
    EXPECT_THAT(ranges("3-6"), ElementsAre("3", "4", "5", "6"));
    EXPECT_THAT(ranges("7-7*2"), ElementsAre("7"));
    EXPECT_THAT(ranges("0-2"), ElementsAre("0", "1", "2"));
}

TEST(Ranges, ListsAndRangesMixAndAValueComesOnce) {
    EXPECT_THAT(ranges("1,8-64*2,5"), ElementsAre("1", "8", "16", "32", "64", "5"));
    EXPECT_THAT(ranges("1-4,2-8*2,4"), ElementsAre("1", "2", "3", "4", "8"));
}

TEST(Ranges, WhatIsNoRangeIsLeftToTheOption) {
    EXPECT_THAT(ranges("prompt"), ElementsAre("prompt"));
    EXPECT_THAT(ranges("1e-3,8e9"), ElementsAre("1e-3", "8e9"));
    EXPECT_THAT(ranges("-5"), ElementsAre("-5"));
}

TEST(Ranges, ListsOfNamesKnowNoRanges) {
    const auto names = parse_list("--model", "1-64*2,b");
    ASSERT_TRUE(names);
    EXPECT_THAT(*names, ElementsAre("1-64*2", "b"));
}

TEST(Ranges, WhatIsWrongIsSaidInOneLine) {
    const std::string expected = "expected a range such as 1-4, 1-64*2 or 128-1024+128";
    EXPECT_EQ(refusal("1-"), "--batch: found \"1-\", " + expected);
    EXPECT_EQ(refusal("1-64*"), "--batch: found \"1-64*\", " + expected);
    EXPECT_EQ(refusal("1-64/2"), "--batch: found \"1-64/2\", " + expected);
    EXPECT_EQ(refusal("1-64*2x"), "--batch: found \"1-64*2x\", " + expected);
    EXPECT_EQ(refusal("1-2000000000000000"), "--batch: found \"1-2000000000000000\", " + expected);
    EXPECT_EQ(refusal("1-99999999999999999999999"), "--batch: found \"1-99999999999999999999999\", " + expected);
    EXPECT_EQ(refusal("8-4"), "--batch: found \"8-4\", expected a range that goes up");
    EXPECT_THAT(refusal("1-64*1"), HasSubstr("multiply by 2 or more"));
    EXPECT_THAT(refusal("0-64*2"), HasSubstr("multiply by 2 or more"));
    EXPECT_THAT(refusal("1-64+0"), HasSubstr("a step of 1 or more"));
    EXPECT_EQ(refusal(""), "--batch: found \"\", expected values between commas");
    EXPECT_EQ(refusal("1,,2"), "--batch: found \"1,,2\", expected values between commas");
    EXPECT_EQ(refusal("1,"), "--batch: found \"1,\", expected values between commas");
}

TEST(Ranges, ThereIsAnEndToThem) {
    EXPECT_EQ(ranges("1-1000000").size(), 1'000'000U);
    EXPECT_EQ(refusal("1-1000001"), "--batch: more than a million values");
    EXPECT_THAT(ranges("1-1000000000000000*1000000"), ElementsAre("1", "1000000", "1000000000000"));
}

}  // namespace
}  // namespace roofline::ask
