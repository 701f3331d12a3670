#include "roofline/io/names.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace roofline::io {
namespace {

const std::vector<std::string>& devices() {
    static const std::vector<std::string> names = {"a100-sxm-80gb", "h100-pcie", "h100-sxm", "h200-sxm", "tpu-v4"};
    return names;
}

TEST(Normalised, CaseSpacesDashesUnderscoresAndColonsDoNotMatter) {
    EXPECT_EQ(normalised("H100_SXM"), "h100sxm");
    EXPECT_EQ(normalised("h100-sxm"), "h100sxm");
    EXPECT_EQ(normalised("  H100 SXM "), "h100sxm");
    EXPECT_EQ(normalised("llama3.1:8b"), "llama3.18b");
    EXPECT_EQ(normalised(""), "");
}

TEST(Normalised, DotsSlashesAndPlusesDoMatter) {
    EXPECT_NE(normalised("qwen2.5"), normalised("qwen25"));
    EXPECT_NE(normalised("a/b"), normalised("ab"));
    EXPECT_NE(normalised("command-r+"), normalised("command-r"));
}

TEST(Normalised, BytesAboveAsciiAreHandled) {
    EXPECT_EQ(normalised("Caf\xC3\xA9"), "caf\xC3\xA9");
}

TEST(Nearest, ASlipOfTheFingersFindsTheName) {
    EXPECT_EQ(nearest("h100-sxn", devices()).at(0), "h100-sxm");   // one letter replaced
    EXPECT_EQ(nearest("h10-sxm", devices()).at(0), "h100-sxm");    // one left out
    EXPECT_EQ(nearest("h100-smx", devices()).at(0), "h100-sxm");   // two swapped: one step, not two
    EXPECT_EQ(nearest("h1000-sxm", devices()).at(0), "h100-sxm");  // one too many
}

TEST(Nearest, PartOfANameFindsAllThatHaveItShortestFirst) {
    EXPECT_EQ(nearest("h100", devices()), (std::vector<std::string>{"h100-sxm", "h100-pcie"}));
    EXPECT_EQ(nearest("80gb", devices()), (std::vector<std::string>{"a100-sxm-80gb"}));
}

TEST(Nearest, ASlipInTheFirstWordsFindsTheLongerNames) {
    const std::vector<std::string> names = {"a10", "h100-pcie", "h100-sxm", "h20"};
    EXPECT_EQ(nearest("h101", names), (std::vector<std::string>{"h100-sxm", "h100-pcie", "h20"}));
    EXPECT_EQ(nearest("h1oo", names), std::vector<std::string>{}) << "two slips in four letters";
    EXPECT_EQ(nearest("cpu", devices()), std::vector<std::string>{}) << "tpu-v4 is another thing";
}

TEST(Nearest, AmongEquallyNearNamesTheOneThatBeginsAlikeComesFirst) {
    const std::vector<std::string> names = {"a10", "h20", "m1"};
    EXPECT_EQ(nearest("h10", names), (std::vector<std::string>{"h20", "a10", "m1"}));
}

TEST(Nearest, TheBeginningOfANameComesBeforeASlipInAnother) {
    const std::vector<std::string> names = {"a10", "h100-pcie", "h100-sxm", "h20"};
    EXPECT_EQ(nearest("h10", names), (std::vector<std::string>{"h100-sxm", "h100-pcie", "h20"}));
}

TEST(Nearest, ANameWithItsVersionLeftOutIsNear) {
    const std::vector<std::string> models = {"gemma-2-9b", "llama-3.1-8b", "qwen3-8b"};
    const auto near = nearest("llama-8b", models);
    ASSERT_FALSE(near.empty()) << "names.cpp promises that llama-8b finds llama-3.1-8b";
    EXPECT_EQ(near[0], "llama-3.1-8b");
}

TEST(Nearest, GivesNoMoreThanAskedFor) {
    const std::vector<std::string> many = {"aa1", "aa2", "aa3", "aa4", "aa5"};
    EXPECT_EQ(nearest("aa", many).size(), 3U);
    EXPECT_EQ(nearest("aa", many, 2).size(), 2U);
    EXPECT_EQ(nearest("aa", many), (std::vector<std::string>{"aa1", "aa2", "aa3"}));
}

TEST(Nearest, WhatIsFarFromEverythingFindsNothing) {
    EXPECT_TRUE(nearest("banana-split-9000", devices()).empty());
    EXPECT_TRUE(nearest("h100", {}).empty());
}

TEST(Nearest, EndlessInputIsCutAndHarmless) {
    EXPECT_TRUE(nearest(std::string(100'000, 'z'), devices()).empty());
}

TEST(Suggestion, ReadsAsASentence) {
    const std::vector<std::string> names = {"aa1", "aa2", "aa3", "bbbbbbbbbbbb"};
    EXPECT_EQ(suggestion("aa", names), "; did you mean aa1, aa2 or aa3?");
    EXPECT_EQ(suggestion("h100", devices()), "; did you mean h100-sxm or h100-pcie?");
    EXPECT_EQ(suggestion("bbbbbbbbbbb", names), "; did you mean bbbbbbbbbbbb?");
    EXPECT_EQ(suggestion("something else entirely", names), "");
}

}  // namespace
}  // namespace roofline::io
