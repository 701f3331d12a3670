#include "roofline/analyze/json_scan.hpp"

#include <gtest/gtest.h>

namespace roofline::analyze {
namespace {

TEST(Nanoseconds, AreExactWhereADoubleIsNot) {
    std::int64_t time = 0;
    ASSERT_TRUE(nanoseconds("3844899253287.557", time));
    EXPECT_EQ(time, 3'844'899'253'287'557);
    ASSERT_TRUE(nanoseconds("0.0006", time));
    EXPECT_EQ(time, 1);  // rounded
    ASSERT_TRUE(nanoseconds("12", time));
    EXPECT_EQ(time, 12'000);
    ASSERT_TRUE(nanoseconds("\"7.5\"", time));  // some tools write numbers in quotes
    EXPECT_EQ(time, 7'500);
    ASSERT_TRUE(nanoseconds("-2.5", time));
    EXPECT_EQ(time, -2'500);
    ASSERT_TRUE(nanoseconds("1.5e3", time));
    EXPECT_EQ(time, 1'500'000);
    for (const char* bad : {"", "x", "NaN", "Infinity", "1e999", "99999999999999999999", "-"})
        EXPECT_FALSE(nanoseconds(bad, time)) << bad;
}

TEST(JsonScan, AStringEndsAtAQuoteThatIsNotEscaped) {
    JsonScan scan(R"("a\"b\\" 1 )");
    EXPECT_EQ(scan.string(), R"(a\"b\\)");
    EXPECT_EQ(scan.value(), "1");
    EXPECT_TRUE(scan.good());
}

TEST(JsonScan, RunsOutWhereverItIsCut) {
    const std::string whole = R"({"a": [1, {"b": "c]}\\" }], "d": -2.5e3})";
    for (std::size_t size = 0; size < whole.size(); ++size) {
        JsonScan scan(std::string_view(whole).substr(0, size));
        scan.value();
        EXPECT_TRUE(scan.ran_out()) << size;
    }
    JsonScan scan(whole);
    EXPECT_EQ(scan.value(), whole);
}

TEST(Readable, ShowsEscapesAndHidesWhatATerminalWouldObey) {
    EXPECT_EQ(readable(R"(a\"b\u0041\/)"), "a\"bA/");
    EXPECT_EQ(readable("\x1b[31m\xff\u00e9"), "?[31m?\u00e9");
    EXPECT_EQ(readable(R"(\u001b)"), "?");
}

}  // namespace
}  // namespace roofline::analyze
