// Tables as spreadsheets and Python write them, and what is said about those that are none.
#include "roofline/assess/csv.hpp"

#include <gtest/gtest.h>

namespace roofline::assess {
namespace {

using Cells = std::vector<std::string>;

CsvTable table_of(std::string_view text) {
    auto table = CsvTable::parse(text, "t.csv");
    EXPECT_TRUE(table.has_value()) << table.error().text;
    return table ? std::move(*table) : CsvTable();
}

std::string problem_with(std::string_view text) {
    const auto table = CsvTable::parse(text, "t.csv");
    EXPECT_FALSE(table.has_value());
    return table ? "" : table.error().text;
}

Cells cells_of(std::string_view line) {
    const CsvTable table = table_of("a,b,c\n" + std::string(line));
    EXPECT_EQ(table.rows().size(), 1U);
    return table.rows().empty() ? Cells{} : table.rows().front().cells;
}

TEST(Csv, AHeaderAndItsRows) {
    const CsvTable table = table_of("gpu,op,time_us\nh100,gemm,3.5\nl40s,gemm,7\n");
    EXPECT_EQ(table.file(), "t.csv");
    EXPECT_EQ(table.columns(), (Cells{"gpu", "op", "time_us"}));
    ASSERT_EQ(table.rows().size(), 2U);
    EXPECT_EQ(table.rows()[0].cells, (Cells{"h100", "gemm", "3.5"}));
    EXPECT_EQ(table.rows()[0].line, 2);
    EXPECT_EQ(table.rows()[1].line, 3);
    EXPECT_TRUE(table.has("op"));
    EXPECT_FALSE(table.has("Op"));
    EXPECT_FALSE(table.has(""));
}

TEST(Csv, TheLastLineNeedsNoEnd) {
    EXPECT_EQ(table_of("a,b\n1,2").rows().size(), 1U);
    EXPECT_EQ(table_of("a,b\n1,2\n").rows().size(), 1U);
    EXPECT_EQ(table_of("a,b").rows().size(), 0U);
    EXPECT_EQ(cells_of("1,2,"), (Cells{"1", "2", ""}));
    EXPECT_EQ(cells_of(",,"), (Cells{"", "", ""}));
}

TEST(Csv, QuotesHoldCommasLineEndsAndDoubledQuotes) {
    EXPECT_EQ(cells_of(R"("1,5",b,c)"), (Cells{"1,5", "b", "c"}));
    EXPECT_EQ(cells_of(R"(a,"say ""no""",c)"), (Cells{"a", R"(say "no")", "c"}));
    EXPECT_EQ(cells_of(R"("""","",c)"), (Cells{"\"", "", "c"}));
    EXPECT_EQ(cells_of("a,\"two\nlines\",c"), (Cells{"a", "two\nlines", "c"}));
    EXPECT_EQ(cells_of("a,\"two\r\nlines\",c\r\n"), (Cells{"a", "two\r\nlines", "c"}));
    EXPECT_EQ(cells_of(R"(5" disk,b,c)"), (Cells{R"(5" disk)", "b", "c"})) << "inside a plain cell it is a letter";
}

TEST(Csv, ALineNumberCountsTheLinesInsideQuotes) {
    const CsvTable table = table_of("a,b\n\"1\n1\n1\",2\n3,4\n");
    ASSERT_EQ(table.rows().size(), 2U);
    EXPECT_EQ(table.rows()[0].line, 2) << "where the row begins";
    EXPECT_EQ(table.rows()[1].line, 5);
}

TEST(Csv, CarriageReturnsAndTheMarkOfASpreadsheetAreNotContent) {
    const CsvTable table = table_of("\xEF\xBB\xBFgpu,op\r\nh100,gemm\r\n\r\nl40s,gemm\r\n");
    EXPECT_EQ(table.columns(), (Cells{"gpu", "op"}));
    ASSERT_EQ(table.rows().size(), 2U);
    EXPECT_EQ(table.rows()[0].cells, (Cells{"h100", "gemm"}));
    EXPECT_EQ(table.rows()[1].line, 4) << "the empty line counts";
}

TEST(Csv, EmptyLinesAreNoRows) {
    const CsvTable table = table_of("\n\na,b\n\n1,2\n\n\n3,4\n\n");
    EXPECT_EQ(table.columns(), (Cells{"a", "b"}));
    ASSERT_EQ(table.rows().size(), 2U);
    EXPECT_EQ(table.rows()[0].line, 5);
    EXPECT_EQ(table.rows()[1].line, 8);
}

TEST(Csv, ARaggedRowIsOneLineWithItsPlaceWhatWasFoundAndWhatWasExpected) {
    EXPECT_EQ(problem_with("a,b,c\n1,2,3\n1,2\n"), "t.csv:3: found 2 cells, expected 3 as in the header");
    EXPECT_EQ(problem_with("a,b\r\n1,2,3\r\n"), "t.csv:2: found 3 cells, expected 2 as in the header");
    EXPECT_EQ(problem_with("a,b\n\"1\n1\",2\n\n1\n"), "t.csv:5: found 1 cells, expected 2 as in the header");
}

TEST(Csv, AQuoteThatIsNeverClosedIsNamedWithItsLine) {
    EXPECT_EQ(problem_with("a,b\n1,2\n3,\"4\n5,6\n"), "t.csv:3: a quote is opened here and never closed");
    EXPECT_EQ(problem_with("\"a,b\n1,2\n"), "t.csv:1: a quote is opened here and never closed");
    EXPECT_EQ(problem_with("a,b\n1,\""), "t.csv:2: a quote is opened here and never closed");
    EXPECT_EQ(problem_with("a,b\n1,\"2\"\""), "t.csv:2: a quote is opened here and never closed");
}

TEST(Csv, AnEmptyFileIsNoTable) {
    for (const char* text : {"", "\n\n", "\r\n", "\xEF\xBB\xBF", "\xEF\xBB\xBF\n"})
        EXPECT_EQ(problem_with(text), "t.csv: found nothing, expected a table with a header line") << text;
}

TEST(Csv, CellsByTheirColumn) {
    const CsvTable table = table_of("n,word,none\n 3.5 ,x,\n");
    const CsvTable::Row& row = table.rows().front();
    EXPECT_EQ(table.number(row, "n"), 3.5);
    EXPECT_EQ(table.text(row, "n"), " 3.5 ");
    EXPECT_EQ(table.text(row, "word"), "x");
    EXPECT_EQ(table.number(row, "word"), std::nullopt);
    EXPECT_EQ(table.number(row, "none"), std::nullopt);
    EXPECT_EQ(table.text(row, "absent"), "");
    EXPECT_EQ(table.number(row, "absent"), std::nullopt);
}

TEST(Csv, NumbersMayHaveSpacesAroundThem) {
    EXPECT_EQ(parse_number("42"), 42.0);
    EXPECT_EQ(parse_number(" 42"), 42.0);
    EXPECT_EQ(parse_number("42  "), 42.0);
    EXPECT_EQ(parse_number("-1.5e-3"), -1.5e-3);
    EXPECT_EQ(parse_number("1E6"), 1e6);
    EXPECT_EQ(parse_number(".5"), 0.5);
    EXPECT_EQ(parse_number("0"), 0.0);
}

TEST(Csv, WhatIsNotOneFiniteNumberIsNone) {
    for (const char* text :
         {"",    " ",     "inf",   "-inf", "INF", "infinity", "nan",  "NaN", "-nan",  "nan(1)", "1e999", "-1e999",
          "abc", "12abc", "abc12", "1 2",  "1,5", "1_000",    "0x10", "--1", "1.2.3", "3us",    "e5",    "."})
        EXPECT_EQ(parse_number(text), std::nullopt) << text;
}

}  // namespace
}  // namespace roofline::assess
