// JsonText against the tree: the same document must give the same bytes.
#include "roofline/io/json_text.hpp"

#include <bit>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "roofline/io/report_json.hpp"

namespace roofline::io {
namespace {

TEST(JsonText, WritesWhatTheTreeWrites) {
    const OrderedJson tree = {
        {"schema", "a/1"},
        {"empty", OrderedJson::object()},
        {"none", OrderedJson::array()},
        {"numbers", {0.0, -0.0, 1.0, 0.1, 1e21, 1e-7, 123456789.0, 5e-324, 1.7976931348623157e308}},
        {"whole", -42},
        {"nested", {{"list", {{{"a", true}}, {{"b", nullptr}}}}, {"texts", {"x", "y"}}}}};
    JsonText json;
    json.object([&] {
        json.add("schema", "a/1");
        json.object("empty", [] {});
        json.array("none", [] {});
        json.array("numbers", [&] {
            for (const double value : {0.0, -0.0, 1.0, 0.1, 1e21, 1e-7, 123456789.0, 5e-324, 1.7976931348623157e308})
                json.add(value);
        });
        json.add("whole", -42);
        json.object("nested", [&] {
            json.array("list", [&] {
                json.object([&] { json.add("a", true); });
                json.object([&] { json.add("b", nullptr); });
            });
            json.add("texts", std::vector<std::string>{"x", "y"});
        });
    });
    EXPECT_EQ(std::move(json).finish(), dump(tree));

    JsonText from_tree;
    from_tree.object([&] { from_tree.add("tree", tree); });
    EXPECT_EQ(std::move(from_tree).finish(), dump(OrderedJson{{"tree", tree}}));
}

TEST(JsonText, EscapesAsTheTreeDoes) {
    // A quote, a backslash, control characters, DEL, two and four bytes of UTF-8, and bytes that are none.
    for (const std::string text : {"", "plain", "a\"b", "a\\b", "line\nline\ttab\x01", "\x7f", "grün",
                                   "\xf0\x9f\x98\x80", "broken \xff\xc3", "\xc3"}) {
        JsonText json;
        json.object([&] { json.add(text, text); });
        EXPECT_EQ(std::move(json).finish(), dump(OrderedJson{{text, text}}));
    }
}

TEST(JsonText, WhatIsNoNumberIsNull) {
    JsonText json;
    json.object([&] {
        json.add("infinite", std::numeric_limits<double>::infinity());
        json.add("unknown", std::numeric_limits<double>::quiet_NaN());
        json.add("absent", std::optional<double>());
        json.add("there", std::optional(2.5));
    });
    EXPECT_EQ(std::move(json).finish(),
              "{\n  \"infinite\": null,\n  \"unknown\": null,\n  \"absent\": null,\n  \"there\": 2.5\n}\n");
}

TEST(JsonText, EveryDoubleHasTheDigitsOfTheTree) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 20'000; ++i) {
        const double value = std::bit_cast<double>(random());
        JsonText json;
        json.object([&] { json.add("v", value); });
        ASSERT_EQ(std::move(json).finish(), dump(OrderedJson{{"v", finite(value)}}));
    }
}

}  // namespace
}  // namespace roofline::io
