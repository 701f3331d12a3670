// The front of candidates that none beats.
#include "roofline/decide/pareto.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace roofline::decide {
namespace {

std::vector<int> kept(const Front<int>& front) {
    std::vector<int> items;
    for (const auto& entry : front.entries()) items.push_back(entry.item);
    std::sort(items.begin(), items.end());
    return items;
}

TEST(Pareto, KeepsWhatNoneBeats) {
    Front<int> front;
    EXPECT_TRUE(front.offer({10, 10, 1}, 1));
    EXPECT_TRUE(front.offer({20, 5, 1}, 2));   // more a device, less a user
    EXPECT_FALSE(front.offer({9, 10, 1}, 3));  // beaten by 1
    EXPECT_TRUE(front.offer({5, 5, 0.5}, 4));  // worse in both, but cheaper
    EXPECT_EQ(kept(front), (std::vector{1, 2, 4}));
    EXPECT_TRUE(front.offer({20, 10, 0.5}, 5));  // beats them all
    EXPECT_EQ(kept(front), (std::vector{5}));
}

TEST(Pareto, OfEqualsTheFirstStays) {
    Front<int> front;
    EXPECT_TRUE(front.offer({1, 2, 3}, 1));
    EXPECT_FALSE(front.offer({1, 2, 3}, 2));
    EXPECT_EQ(kept(front), (std::vector{1}));
}

TEST(Pareto, IsTheSameAsComparingAllWithAll) {
    std::mt19937_64 random(7);
    const auto digit = [&] { return static_cast<double>(random() % 12); };
    for (int round = 0; round < 50; ++round) {
        std::vector<Merits> all;
        Front<int> front;
        for (int i = 0; i < 60; ++i) {
            all.push_back({digit(), digit(), digit()});
            front.offer(all.back(), i);
        }
        std::vector<int> expected;
        for (int i = 0; i < 60; ++i) {
            bool beaten = false;
            for (int j = 0; j < 60; ++j) {
                const auto& a = all[static_cast<std::size_t>(j)];
                const auto& b = all[static_cast<std::size_t>(i)];
                beaten |= j != i && beats(a, b) && (j < i || !beats(b, a));
            }
            if (!beaten) expected.push_back(i);
        }
        EXPECT_EQ(kept(front), expected);
    }
}

}  // namespace
}  // namespace roofline::decide
