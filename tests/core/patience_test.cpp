#include "roofline/core/patience.hpp"

#include <gtest/gtest.h>

namespace roofline {
namespace {

TEST(Patience, IsEndlessWhereNobodySetALimit) {
    EXPECT_FALSE(out_of_patience());
}

TEST(Patience, EndsWhenItsLimitSaysSoAndStaysOver) {
    int asked = 0;
    {
        const Patience limit([&] { return ++asked == 3; });
        EXPECT_FALSE(out_of_patience());
        EXPECT_FALSE(out_of_patience());
        EXPECT_TRUE(out_of_patience());
        EXPECT_TRUE(out_of_patience());
        EXPECT_EQ(asked, 3);
    }
    EXPECT_FALSE(out_of_patience());
}

TEST(Patience, OfAnInnerLimitGivesWayToTheOuterOne) {
    const Patience outer([] { return false; });
    {
        const Patience inner([] { return true; });
        EXPECT_TRUE(out_of_patience());
    }
    EXPECT_FALSE(out_of_patience());
}

}  // namespace
}  // namespace roofline
