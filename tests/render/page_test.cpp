// Reports as pages: nothing of them is lost, and nothing in them is taken for HTML.
#include "roofline/render/page/page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "render/sample_accounts.hpp"
#include "roofline/render/page/markdown.hpp"
#include "roofline/render/table.hpp"

namespace roofline::render {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Markdown, HeadingsTablesListsTextAndCodeBecomeTheirElements) {
    const ReadMarkdown read = read_markdown(
        "# A title\n\n- first, `--batch 1`\n  - below it\n\ntwo\nlines\n\n## sums\n\n"
        "| name | time |\n|---|---:|\n| a | 1 ms |\n| b | 2 ms |\n\n```text\n  as it is\n  runs   up to 96\n```\n");
    EXPECT_EQ(read.title, "A title");
    ASSERT_EQ(read.sections.size(), 2U);
    EXPECT_EQ(read.sections[0].html,
              "<ul>\n<li>first, <code>--batch 1</code></li>\n<li class=\"below\">below it</li>\n</ul>\n"
              "<p>two<br>\nlines</p>\n");
    EXPECT_EQ(read.sections[0].longest_table, 0U);
    EXPECT_EQ(read.sections[1].longest_table, 2U);
    for (const char* part :
         {"<h2>sums</h2>", "<th scope=\"col\" class=\"words\"><button type=\"button\">name</button></th>",
          "<th scope=\"col\"><button type=\"button\">time</button></th>",
          "<tr><td class=\"words\">b</td><td>2 ms</td></tr>",
          "<pre><span style=\"--hang:2ch\">  as it is\n</span><span style=\"--hang:9ch\">  runs   up to "
          "96\n</span></pre>"})
        EXPECT_THAT(read.sections[1].html, HasSubstr(part));
}

TEST(Markdown, ACellKeepsItsBarsAndTheTableItsShape) {
    const Table table{{{"a|b", Align::left}, {"c"}}, {{"x | y", "1\n2"}, {"|", "`"}}};
    const ReadMarkdown read = read_markdown(as_markdown(table));
    EXPECT_THAT(read.sections[0].html, HasSubstr("<button type=\"button\">a|b</button>"));
    EXPECT_THAT(read.sections[0].html, HasSubstr("<tr><td class=\"words\">x | y</td><td>1 2</td></tr>"));
    EXPECT_THAT(read.sections[0].html, HasSubstr("<tr><td class=\"words\">|</td><td>`</td></tr>"));
}

TEST(Markdown, NothingIsTakenForHtmlAndNothingIsFallenOver) {
    for (const char* text :
         {"", "\n\n", "#", "# ", "```", "```\n<b>", "|", "| <img src=x> |", "|<b>|\n|-", "- <b>`<i>`", "`",
          "# <script>", "## <b>\n<b>\n- <b>\n|<b>|", "| a |\n|---|\n| 1 | 2 | 3 |\n|"}) {
        const ReadMarkdown read = read_markdown(text);
        ASSERT_FALSE(read.sections.empty());
        for (const Section& section : read.sections) {
            EXPECT_THAT(section.html, Not(HasSubstr("<b>"))) << text;
            EXPECT_THAT(section.html, Not(HasSubstr("<img"))) << text;
        }
    }
    EXPECT_THAT(write_page({.report = "# <script>x"}), HasSubstr("<h1>&lt;script&gt;x</h1>"));
}

TEST(Page, ChartsFollowTheFirstLinesUnlessALongTableOrTheReportComesFirst) {
    const std::string few = "# t\n\nlead\n\n## more\n\nrest\n";
    std::string many = "| n |\n|---|\n";
    for (int i = 0; i < 20; ++i) many += "| row |\n";
    const std::vector<std::string> charts = {"<svg id=\"c\"></svg>\n"};
    const auto order = [](const std::string& page, const char* one, const char* two) {
        return page.find(one) != std::string::npos && page.find(one) < page.find(two);
    };
    const std::string usual = write_page({.report = few, .charts = charts});
    EXPECT_TRUE(order(usual, "lead", "id=\"c\""));
    EXPECT_TRUE(order(usual, "id=\"c\"", "rest"));
    EXPECT_TRUE(order(write_page({.report = many, .charts = charts}), "id=\"c\"", "<td class=\"words\">row"));
    EXPECT_TRUE(order(write_page({.report = few, .more = charts}), "rest", "id=\"c\""));
    // Charts of accounts wait for the end of the report where they are asked to; others do not.
    const std::vector accounts = {chart::testing::sample_account()};
    const std::string compared =
        write_page({.report = few, .charts = charts, .accounts = accounts, .report_first = true});
    EXPECT_TRUE(order(compared, "id=\"c\"", "rest"));
    EXPECT_TRUE(order(compared, "rest", "class=\"zooms\""));
}

TEST(Page, ManyStagesAreATableAndNotAWallOfCards) {
    Account account = chart::testing::sample_account();
    EXPECT_THAT(write_page({.accounts = std::vector{account}}), HasSubstr("class=\"answer\""));
    while (account.stages.size() < 7) account.stages.push_back(account.stages.front());
    EXPECT_THAT(write_page({.accounts = std::vector{account}}), Not(HasSubstr("class=\"answer\"")));
    EXPECT_THAT(accounts_markdown(std::vector{account}), HasSubstr("## stages\n\n| stage | tokens/s |"));
}

// What ran without a model to hold it against has no expected time: attainable stands in for it in the report.
TEST(Page, NothingIsExpectedWhereNothingWasPredicted) {
    Account account = chart::testing::sample_account();
    for (AccountStage& stage : account.stages) {
        stage.times.measured = stage.times.expected;
        stage.times.expected = stage.times.attainable;
        for (Record& record : stage.records) {
            record.times.measured = record.times.expected;
            record.times.expected = record.times.attainable;
        }
    }
    const std::vector accounts{account};
    const std::string page = write_page({.report = accounts_markdown(accounts), .accounts = accounts});
    EXPECT_THAT(page, Not(HasSubstr("expected")));
    EXPECT_THAT(page, HasSubstr("tokens/s attainable"));
    for (AccountStage& stage : account.stages) stage.times.expected = stage.times.attainable * 1.5;
    EXPECT_THAT(accounts_markdown(std::vector{account}), HasSubstr("| expected |"));
}

}  // namespace
}  // namespace roofline::render
