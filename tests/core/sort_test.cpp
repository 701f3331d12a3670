#include "roofline/core/sort.hpp"

#include <string>

#include <gtest/gtest.h>

namespace roofline {
namespace {

TEST(Sort, GivesTheOrderOfTheStandardOneToTheLastTie) {
    unsigned state = 1;
    for (const std::size_t count : {0U, 1U, 2U, 3U, 5U, 8U, 100U, 1000U}) {
        std::vector<std::pair<int, std::string>> things;
        for (std::size_t i = 0; i < count; ++i) {
            state = state * 1664525U + 1013904223U;
            things.emplace_back(static_cast<int>((state >> 16U) % 7U), std::to_string(i));  // seven keys: many ties
        }
        const auto less = [](const auto& a, const auto& b) { return a.first < b.first; };
        auto expected = things;
        std::stable_sort(expected.begin(), expected.end(), less);
        sort_stably(things, less);
        EXPECT_EQ(things, expected) << count;
    }
}

}  // namespace
}  // namespace roofline
