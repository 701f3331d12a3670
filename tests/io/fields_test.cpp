#include "roofline/io/fields.hpp"

#include <string>

#include <gtest/gtest.h>

namespace roofline::io {
namespace {

/// The problem of a text that must not parse.
std::string parse_problem(std::string_view text) {
    const auto json = parse_json(text, "f.json");
    return json ? "parsed: " + json->dump() : json.error().text;
}

Json parsed(std::string_view text) {
    auto json = parse_json(text, "f.json");
    EXPECT_TRUE(json.has_value()) << (json ? "" : json.error().text);
    return json ? *json : Json::object();
}

/// What one access of an object complains about; "" if nothing.
template <class Access>
std::string complaint(std::string_view object, const Access& access) {
    const Json json = parsed(object);
    std::optional<Problem> problem;
    Fields fields(json, "f.json", "", problem);
    access(fields);
    return problem ? problem->text : "";
}

bool is_one_line(std::string_view text) {
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < 0x20) return false;
    }
    return !text.empty();
}

// ---- parse_json

TEST(ParseJson, ReadsPlainJson) {
    const Json json = parsed(R"({"a": [1, 2.5, "x", null, true]})");
    EXPECT_EQ(json["a"].size(), 5U);
    EXPECT_EQ(json["a"][1], 2.5);
}

TEST(ParseJson, ErrorsNameFileLineAndColumn) {
    // Third line: two spaces, "b" in columns 3 to 5, a space, and the bracket that should be a colon in column 7.
    EXPECT_EQ(parse_problem("{\n  \"a\": 1,\n  \"b\" ]\n}"), "f.json: line 3, column 7: not valid JSON");
    // tru} : the brace in column 10 is where "true" ceases to be possible.
    EXPECT_EQ(parse_problem(R"({"a": tru})"), "f.json: line 1, column 10: not valid JSON");
}

TEST(ParseJson, WhatFollowsTheValueIsAnErrorToo) {
    EXPECT_EQ(parse_problem("{}\n}"), "f.json: line 2, column 1: not valid JSON");
}

TEST(ParseJson, ATrailingCommaIsAnError) {
    EXPECT_EQ(parse_problem(R"({"a": 1,})"), "f.json: line 1, column 9: not valid JSON");
}

TEST(ParseJson, CommentsAreAnError) {
    EXPECT_EQ(parse_problem("// x\n{}"), "f.json: line 1, column 1: not valid JSON");
}

TEST(ParseJson, ATruncatedFileIsSaidToEndEarly) {
    EXPECT_EQ(parse_problem(R"({"a": [1, 2)"), "f.json: line 1: the file ends in the middle of its JSON");
    EXPECT_EQ(parse_problem("{\n\"a\":\n"), "f.json: line 3: the file ends in the middle of its JSON");
    EXPECT_EQ(parse_problem(R"({"a": "unfinished)"), "f.json: line 1: the file ends in the middle of its JSON");
}

TEST(ParseJson, AnEmptyFileIsSaidToEndEarly) {
    EXPECT_EQ(parse_problem(""), "f.json: line 1: the file ends in the middle of its JSON");
    EXPECT_EQ(parse_problem("\xEF\xBB\xBF"), "f.json: line 1: the file ends in the middle of its JSON");
}

TEST(ParseJson, AByteOrderMarkIsSkipped) {
    EXPECT_EQ(parsed("\xEF\xBB\xBF{\"a\": 1}")["a"], 1);
    // Columns count from the first character a person sees.
    EXPECT_EQ(parse_problem("\xEF\xBB\xBF[}"), "f.json: line 1, column 2: not valid JSON");
}

TEST(ParseJson, ADepthBombIsRefusedWithoutRecursion) {
    const std::string bomb(100'000, '[');
    EXPECT_EQ(parse_problem(bomb), "f.json: nested more than 200 levels deep");
    std::string objects;
    for (int i = 0; i < 50'000; ++i) objects += "{\"a\":";
    EXPECT_EQ(parse_problem(objects), "f.json: nested more than 200 levels deep");
}

TEST(ParseJson, TwoHundredLevelsAreFineAndOneMoreIsNot) {
    const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
    EXPECT_TRUE(parse_json(nested(200), "f.json").has_value());
    EXPECT_FALSE(parse_json(nested(201), "f.json").has_value());
}

TEST(ParseJson, BracketsInStringsAreNotDepth) {
    EXPECT_TRUE(parse_json("{\"a\": \"\\\"" + std::string(1000, '[') + "\"}", "f.json").has_value());
}

TEST(ParseJson, PythonsInfinitiesAndNansDoNotStandInTheWay) {
    const Json json = parsed(R"({"a": Infinity, "b": -Infinity, "c": NaN, "d": [NaN, 7], "e": 8})");
    EXPECT_EQ(json["d"][1], 7);
    EXPECT_EQ(json["e"], 8);
    for (const char* key : {"a", "b", "c"}) EXPECT_FALSE(json[key].is_number()) << key;
}

TEST(ParseJson, InfinityIsNeverANumberThatIsUsed) {
    for (const char* literal : {"Infinity", "-Infinity", "NaN"}) {
        const std::string object = std::string("{\"a\": ") + literal + "}";
        EXPECT_NE(complaint(object, [](Fields& f) { f.size("a"); }), "") << literal;
        EXPECT_NE(complaint(object, [](Fields& f) { f.number_or("a", 1.0); }), "") << literal;
        EXPECT_NE(complaint(object, [](Fields& f) { f.positive("a"); }), "") << literal;
    }
}

TEST(ParseJson, InfinityAndNanInsideStringsAreLeftAlone) {
    const Json json = parsed(R"({"Infinity": "NaN and -Infinity", "b": "\"NaN", "c": "x\\", "d": NaN})");
    EXPECT_EQ(json["Infinity"], "NaN and -Infinity");
    EXPECT_EQ(json["b"], "\"NaN");
    EXPECT_EQ(json["c"], "x\\");
}

TEST(ParseJson, PositionsStayRightBehindAPythonLiteral) {
    // {"a": -Infinity, "b": ]} : -Infinity is 9 characters from column 7, so the bracket is in column 23.
    EXPECT_EQ(parse_problem(R"({"a": -Infinity, "b": ]})"), "f.json: line 1, column 23: not valid JSON");
}

TEST(ParseJson, NumbersBeyondADoubleAreRefusedAndThoseBeyondAnIntegerAreNot) {
    EXPECT_NE(parse_problem(R"({"a": 1e400})").find("f.json: line 1"), std::string::npos);
    const Json json = parsed(R"({"a": 123456789012345678901234567890, "b": -99999999999999999999, "c": 1e-400})");
    EXPECT_DOUBLE_EQ(json["a"].get<double>(), 1.2345678901234568e29);
    EXPECT_DOUBLE_EQ(json["b"].get<double>(), -1e20);
    EXPECT_EQ(json["c"].get<double>(), 0.0);
}

TEST(ParseJson, BytesThatAreNotUtf8AreRefused) {
    EXPECT_NE(parse_problem("{\"a\": \"\xff\xfe\"}").find("f.json: line 1"), std::string::npos);
}

// ---- describe

TEST(Describe, SaysWhatWasFound) {
    EXPECT_EQ(describe(Json()), "null");
    EXPECT_EQ(describe(Json::object()), "an object");
    EXPECT_EQ(describe(Json::array()), "a list");
    EXPECT_EQ(describe(Json(true)), "true");
    EXPECT_EQ(describe(Json(-3)), "-3");
    EXPECT_EQ(describe(Json(0.5)), "0.5");
    EXPECT_EQ(describe(Json("x")), "\"x\"");
    EXPECT_EQ(describe(Json(std::string(1000, 'x'))), "a string");
}

TEST(Describe, StaysOnOneLineWhateverAFileHolds) {
    EXPECT_TRUE(is_one_line(describe(Json("two\nlines")))) << describe(Json("two\nlines"));
    EXPECT_TRUE(is_one_line(describe(Json("\x1b[31mred")))) << "an escape sequence reaches the terminal";
}

// ---- accessors

TEST(Fields, SizesAreWholePositiveAndBounded) {
    const auto size = [](Fields& f) { f.size("n"); };
    EXPECT_EQ(complaint(R"({"n": 1})", size), "");
    EXPECT_EQ(complaint(R"({"n": 1000000000})", size), "");
    EXPECT_EQ(complaint(R"({"n": 4096.0})", size), "");
    EXPECT_EQ(complaint(R"({})", size), "f.json: n is missing");
    EXPECT_EQ(complaint(R"({"n": null})", size), "f.json: n is missing");
    EXPECT_EQ(complaint(R"({"n": 0})", size), "f.json: n is 0, expected a whole number from 1 to 1e+09");
    EXPECT_EQ(complaint(R"({"n": -3})", size), "f.json: n is -3, expected a whole number from 1 to 1e+09");
    EXPECT_EQ(complaint(R"({"n": 0.5})", size), "f.json: n is 0.5, expected a whole number from 1 to 1e+09");
    EXPECT_EQ(complaint(R"({"n": 1e30})", size), "f.json: n is 1e+30, expected a whole number from 1 to 1e+09");
    EXPECT_EQ(complaint(R"({"n": 1000000001})", size),
              "f.json: n is 1000000001, expected a whole number from 1 to 1e+09");
    EXPECT_EQ(complaint(R"({"n": "32"})", size), "f.json: n is \"32\", expected a whole number from 1 to 1e+09");
    EXPECT_EQ(complaint(R"({"n": true})", size), "f.json: n is true, expected a whole number from 1 to 1e+09");
    EXPECT_EQ(complaint(R"({"n": [1]})", size), "f.json: n is a list, expected a whole number from 1 to 1e+09");
}

TEST(Fields, ASizeThatIsWrongReadsAsOneSoThatNothingDividesByZero) {
    const Json json = parsed(R"({"zero": 0, "text": "x"})");
    std::optional<Problem> problem;
    Fields fields(json, "f.json", "", problem);
    EXPECT_EQ(fields.size("zero"), 1.0);
    EXPECT_EQ(fields.size("text"), 1.0);
    EXPECT_EQ(fields.size("absent"), 1.0);
    EXPECT_EQ(fields.positive("zero"), 1.0);
}

TEST(Fields, OptionalSizesFallBackOnlyWhenAbsentOrNull) {
    const Json json = parsed(R"({"a": 7, "b": null})");
    std::optional<Problem> problem;
    Fields fields(json, "f.json", "", problem);
    EXPECT_EQ(fields.size_or("a", 3.0), 7.0);
    EXPECT_EQ(fields.size_or("b", 3.0), 3.0);
    EXPECT_EQ(fields.size_or("c", 3.0), 3.0);
    EXPECT_FALSE(problem.has_value());
    EXPECT_EQ(complaint(R"({"n": 0})", [](Fields& f) { f.size_or("n", 3.0); }),
              "f.json: n is 0, expected a whole number from 1 to 1e+09");
}

TEST(Fields, CountsMayBeZeroButNotNegative) {
    const auto count = [](Fields& f) { f.count_or("n", 5.0); };
    EXPECT_EQ(complaint(R"({"n": 0})", count), "");
    EXPECT_EQ(complaint(R"({})", count), "");
    EXPECT_EQ(complaint(R"({"n": -1})", count), "f.json: n is -1, expected a whole number from 0 to 1e+09");
    EXPECT_EQ(complaint(R"({"n": 1e30})", count), "f.json: n is 1e+30, expected a whole number from 0 to 1e+09");
    EXPECT_EQ(complaint(R"({"n": 1.5})", count), "f.json: n is 1.5, expected a whole number from 0 to 1e+09");
}

TEST(Fields, TheFirstOfSeveralNamesThatIsThereCounts) {
    const Json json = parsed(R"({"second": 2, "third": 3, "first": null})");
    std::optional<Problem> problem;
    Fields fields(json, "f.json", "", problem);
    EXPECT_EQ(fields.size_of_any({"first", "second", "third"}), 2.0);
    EXPECT_FALSE(problem.has_value());
    EXPECT_EQ(complaint(R"({})", [](Fields& f) { f.size_of_any({"first", "second"}); }), "f.json: first is missing");
    EXPECT_EQ(complaint(R"({"second": -2})", [](Fields& f) { f.size_of_any({"first", "second"}); }),
              "f.json: second is -2, expected a whole number from 1 to 1e+09");
}

TEST(Fields, NumbersMayBeAnythingFinite) {
    const Json json = parsed(R"({"a": -0.5, "b": 1e30})");
    std::optional<Problem> problem;
    Fields fields(json, "f.json", "", problem);
    EXPECT_EQ(fields.number_or("a", 1.0), -0.5);
    EXPECT_EQ(fields.number_or("b", 1.0), 1e30);
    EXPECT_EQ(fields.number_or("absent", 1.25), 1.25);
    EXPECT_FALSE(problem.has_value());
    EXPECT_EQ(complaint(R"({"n": "1"})", [](Fields& f) { f.number_or("n", 1.0); }),
              "f.json: n is \"1\", expected a number");
}

TEST(Fields, PositiveNumbersAreAboveZeroAndBelowNonsense) {
    const auto positive = [](Fields& f) { f.positive("n"); };
    EXPECT_EQ(complaint(R"({"n": 0.001})", positive), "");
    EXPECT_EQ(complaint(R"({})", positive), "f.json: n is missing");
    EXPECT_EQ(complaint(R"({"n": 0})", positive), "f.json: n is 0, expected a number above zero");
    EXPECT_EQ(complaint(R"({"n": -2.5})", positive), "f.json: n is -2.5, expected a number above zero");
    EXPECT_EQ(complaint(R"({"n": {}})", positive), "f.json: n is an object, expected a number above zero");
    EXPECT_NE(complaint(R"({"n": 1e30})", positive), "");
}

TEST(Fields, FlagsAreTrueOrFalseAndNothingElse) {
    const auto flag = [](Fields& f) { f.flag("n", true); };
    EXPECT_EQ(complaint(R"({"n": false})", flag), "");
    EXPECT_EQ(complaint(R"({})", flag), "");
    EXPECT_EQ(complaint(R"({"n": 1})", flag), "f.json: n is 1, expected true or false");
    EXPECT_EQ(complaint(R"({"n": "true"})", flag), "f.json: n is \"true\", expected true or false");
    const Json json = parsed(R"({"n": false})");
    std::optional<Problem> problem;
    Fields fields(json, "f.json", "", problem);
    EXPECT_FALSE(fields.flag("n", true));
    EXPECT_TRUE(fields.flag("absent", true));
}

TEST(Fields, TextsAreStrings) {
    const auto text = [](Fields& f) { f.text("n"); };
    EXPECT_EQ(complaint(R"({"n": ""})", text), "");
    EXPECT_EQ(complaint(R"({})", text), "f.json: n is missing");
    EXPECT_EQ(complaint(R"({"n": 5})", text), "f.json: n is 5, expected a string");
    EXPECT_EQ(complaint(R"({"n": 5})", [](Fields& f) { f.text_or("n", "x"); }), "f.json: n is 5, expected a string");
    EXPECT_EQ(complaint(R"({})", [](Fields& f) { f.text_or("n", "x"); }), "");
}

TEST(Fields, ListsHoldOneKindOfThing) {
    const auto texts = [](Fields& f) { f.texts("n"); };
    const auto numbers = [](Fields& f) { f.numbers("n"); };
    EXPECT_EQ(complaint(R"({"n": ["a", "b"]})", texts), "");
    EXPECT_EQ(complaint(R"({})", texts), "");
    EXPECT_EQ(complaint(R"({"n": "a"})", texts), "f.json: n is \"a\", expected a list of strings");
    EXPECT_EQ(complaint(R"({"n": ["a", 7]})", texts), "f.json: n holds 7, expected only strings");
    EXPECT_EQ(complaint(R"({"n": [1, 2.5, -3]})", numbers), "");
    EXPECT_EQ(complaint(R"({"n": 4})", numbers), "f.json: n is 4, expected a list of numbers");
    EXPECT_EQ(complaint(R"({"n": [1, null]})", numbers), "f.json: n holds null, expected only numbers");
    EXPECT_EQ(complaint(R"({"n": [1, NaN]})", numbers).substr(0, 15), "f.json: n holds");
}

TEST(Fields, OnlyTheFirstProblemIsKept) {
    const Json json = parsed(R"({"a": -1, "b": "x"})");
    std::optional<Problem> problem;
    Fields fields(json, "f.json", "", problem);
    EXPECT_FALSE(fields.failed());
    fields.size("a");
    EXPECT_TRUE(fields.failed());
    fields.size("b");
    fields.text("absent");
    fields.complain("c", "is another");
    ASSERT_TRUE(problem.has_value());
    EXPECT_EQ(problem->text, "f.json: a is -1, expected a whole number from 1 to 1e+09");
}

TEST(Fields, AChildsProblemIsItsParentsProblem) {
    const Json json = parsed(R"({"outer": {"inner": {"n": 0.5}}})");
    std::optional<Problem> problem;
    Fields fields(json, "f.json", "", problem);
    fields.child("outer").child("inner").size("n");
    EXPECT_TRUE(fields.failed());
    ASSERT_TRUE(problem.has_value());
    EXPECT_EQ(problem->text, "f.json: outer.inner.n is 0.5, expected a whole number from 1 to 1e+09");
}

TEST(Fields, ElementsOfAListAreNamedByTheirPlace) {
    const auto ids = [](Fields& f) {
        for (Fields& item : f.child("top").children("list")) item.text("id");
    };
    EXPECT_EQ(complaint(R"({"top": {"list": [{"id": "a"}, {"id": 4}]}})", ids),
              "f.json: top.list[1].id is 4, expected a string");
    EXPECT_EQ(complaint(R"({"top": {"list": [{"id": "a"}, 9]}})", ids), "f.json: top.list[1] is 9, expected an object");
    EXPECT_EQ(complaint(R"({"top": {"list": {}}})", ids), "f.json: top.list is an object, expected a list");
    EXPECT_EQ(complaint(R"({"top": {}})", ids), "");
}

TEST(Fields, AChildThatIsNoObjectOrMissingIsNamed) {
    const auto child = [](Fields& f) { f.child("outer").text("n"); };
    EXPECT_EQ(complaint(R"({"outer": 7})", child), "f.json: outer is 7, expected an object");
    EXPECT_EQ(complaint(R"({"outer": null})", child), "f.json: outer is missing");
    EXPECT_EQ(complaint(R"({})", child), "f.json: outer is missing");
}

TEST(Fields, AFileThatIsNoObjectIsSaidToBeSo) {
    const Json json = parsed("[1, 2]");
    std::optional<Problem> problem;
    Fields fields(json, "f.json", "", problem);
    ASSERT_TRUE(problem.has_value());
    EXPECT_EQ(problem->text, "f.json: the file is a list, expected an object");
    EXPECT_TRUE(fields.keys().empty());
    EXPECT_FALSE(fields.has("a"));
}

TEST(Fields, AKeyThatIsNullIsNotThere) {
    const Json json = parsed(R"({"a": null, "b": false})");
    std::optional<Problem> problem;
    const Fields fields(json, "f.json", "", problem);
    EXPECT_FALSE(fields.has("a"));
    EXPECT_TRUE(fields.has("b"));
    EXPECT_EQ(fields.keys(), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace roofline::io
