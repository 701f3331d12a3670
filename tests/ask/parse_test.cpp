#include "roofline/ask/parse.hpp"

#include <gtest/gtest.h>

namespace roofline::ask {
namespace {

TEST(ParseDuration, TakesATimeAsTablesPrintIt) {
    EXPECT_EQ(parse_duration("--ttft", "500ms").value_or(0.0), 0.5);
    EXPECT_EQ(parse_duration("--ttft", "500 ms").value_or(0.0), 0.5);
    EXPECT_EQ(parse_duration("--ttft", "2  s").value_or(0.0), 2.0);
    for (const char* text : {"", "s", " s", "500", "500 m s", "5 00ms", "500ms ", " 500ms", "-1 s"})
        EXPECT_FALSE(parse_duration("--ttft", text).has_value()) << text;
}

}  // namespace
}  // namespace roofline::ask
