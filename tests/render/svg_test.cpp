#include "roofline/render/chart/svg.hpp"

#include <gtest/gtest.h>

#include "roofline/render/chart/text_width.hpp"

namespace roofline::render::chart {
namespace {

TEST(SvgText, CannotBecomeMarkup) {
    EXPECT_EQ(escaped("<script>alert(\"1\" & '2')</script>"),
              "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;");
    Svg svg(100.0, 50.0, "</title><script>", "\"><g onload='x'>");
    svg.text({1.0, 2.0}, "]]></text><image href=\"x\"/>", "small");
    svg.open("point", {{"data-name", "\" onclick=\"x"}});
    svg.tooltip("</title><script>");
    svg.close();
    const std::string text = svg.finish();
    for (const char* mark : {"<script", "<image", "onload='", "onclick=\"x\""})
        EXPECT_EQ(text.find(mark), std::string::npos) << mark;
}

TEST(SvgText, HoldsNoByteThatXmlForbids) {
    EXPECT_EQ(escaped(std::string("a\0b\x01\x1f\x7f", 6)), "a b   ");
    EXPECT_EQ(escaped("caf\xc3\xa9"), "caf\xc3\xa9");
    EXPECT_EQ(escaped("\xff\xfe"), "\uFFFD\uFFFD");            // never UTF-8
    EXPECT_EQ(escaped("\xc3"), "\uFFFD");                      // cut off
    EXPECT_EQ(escaped("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
    EXPECT_EQ(escaped("\xc0\xaf"), "\uFFFD\uFFFD");            // overlong
}

TEST(Coordinate, HasTwoDecimalsAtMostAndNoNegativeZero) {
    EXPECT_EQ(coordinate(0.0), "0");
    EXPECT_EQ(coordinate(-0.001), "0");
    EXPECT_EQ(coordinate(12.5), "12.5");
    EXPECT_EQ(coordinate(100.0), "100");
    EXPECT_EQ(coordinate(1.0 / 3.0), "0.33");
}

TEST(TextWidth, GrowsWithLettersAndCountsCharactersNotBytes) {
    EXPECT_LT(text_width("iii", 12.0), text_width("mmm", 12.0));
    EXPECT_DOUBLE_EQ(text_width("ab", 24.0), 2.0 * text_width("ab", 12.0));
    EXPECT_EQ(length_of("na\xc3\xafve"), 5U);
    EXPECT_LT(text_width("\xc3\xa9", 12.0), text_width("ee", 12.0));
}

TEST(Shortened, IsNeverWiderThanAskedAndNeverCutsACharacterInTwo) {
    const std::string text = "attention \xe2\x86\x92 feed-forward network";
    for (double width = 10.0; width < 300.0; width += 7.0) {
        const std::string shorter = shortened(text, width, 12.0);
        EXPECT_TRUE(shorter == "\u2026" || text_width(shorter, 12.0) <= width) << width;
        EXPECT_EQ(escaped(shorter).find("\uFFFD"), std::string::npos) << width;
    }
    EXPECT_EQ(shortened("short", 200.0, 12.0), "short");
}

}  // namespace
}  // namespace roofline::render::chart
