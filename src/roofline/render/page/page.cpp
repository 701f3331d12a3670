#include "roofline/render/page/page.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "roofline/render/chart/account_charts.hpp"
#include "roofline/render/chart/spots.hpp"
#include "roofline/render/chart/svg.hpp"
#include "roofline/render/numbers.hpp"
#include "roofline/render/page/markdown.hpp"
#include "roofline/render/table.hpp"

namespace roofline::render {
namespace {

using chart::escaped;

constexpr std::size_t most_cards = 6;
constexpr std::size_t long_table = 12;  // rows; nobody scrolls past more to find the picture

std::string head_of(std::string_view title) {
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; img-src data:\">\n"
        "<title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n",
        escaped(title), page_style());
}

std::string foot_of(std::string_view command) {
    std::string text;
    if (!command.empty()) text += fmt::format("<footer><code>{}</code></footer>\n", escaped(command));
    return text +
           fmt::format("</main>\n<div id=\"tip\" role=\"status\"></div>\n<script>\n{}</script>\n</body>\n</html>\n",
                       page_script());
}

std::string figure_of(const std::string& svg, bool zooms) {
    return fmt::format(
        "<figure class=\"{}\"><div class=\"picture\">\n{}</div><button type=\"button\">whole "
        "picture</button></figure>\n",
        zooms ? "zooms" : "still", svg);
}

std::size_t stages_of(std::span<const Account> accounts) {
    std::size_t stages = 0;
    for (const Account& account : accounts) stages += account.stages.size();
    return stages;
}

/// The figures one came for; with many stages a table says it better.
std::string cards_of(std::span<const Account> accounts) {
    if (stages_of(accounts) == 0 || stages_of(accounts) > most_cards) return "";
    std::string text = "<div class=\"answers\">\n";
    for (std::size_t a = 0; a < accounts.size(); ++a) {
        for (const AccountStage& stage : accounts[a].stages) {
            const Seconds shown = chart::shown_time(stage.times);
            std::string what = chart::describe_stage(stage);
            if (accounts.size() > 1) what = chart::short_title(accounts, a) + ": " + what;
            const std::string rate =
                stage.produced > 0.0 ? plain(stage.tokens_per_second(shown)) + " tokens/s" : render::time(shown);
            text += fmt::format("<div class=\"answer\"><span>{}</span><b>{}</b><span>{}{}", escaped(what), rate,
                                render::time(shown), stage.times.measured ? " measured" : " expected");
            // A run that was traced without shapes has no limit.
            if (stage.times.limit.value > 0.0)
                text += fmt::format(", limit {}, attainable {}", render::time(stage.times.limit),
                                    render::time(stage.times.attainable));
            text += "</span></div>\n";
        }
    }
    return text + "</div>\n";
}

std::string controls_of(std::span<const Account> accounts) {
    std::vector<std::string> stages;
    std::set<Group> groups;
    for (const Account& account : accounts) {
        for (const AccountStage& stage : account.stages) {
            if (std::find(stages.begin(), stages.end(), stage.name) == stages.end()) stages.push_back(stage.name);
            for (const Record& record : stage.records) groups.insert(record.group);
        }
    }
    std::string text = "<div class=\"controls\"><span>show</span>";
    const auto box = [&](std::string_view key, std::string_view value, std::string_view shown) {
        text += fmt::format("<label><input type=\"checkbox\" checked data-key=\"{}\" value=\"{}\">{}</label>", key,
                            escaped(value), escaped(shown));
    };
    for (const std::string& stage : stages) box("stage", stage, stage);
    for (const Group group : groups) box("group", name(group), name(group));
    for (std::size_t a = 0; a < accounts.size() && accounts.size() > 1; ++a)
        box("report", fmt::format("{}", a), chart::short_title(accounts, a));
    return text + "</div>\n";
}

/// Of one operator there is nothing to switch off, and only the roofline says anything.
bool has_several_operators(std::span<const Account> accounts) {
    std::size_t operators = 0;
    for (const Account& account : accounts) {
        for (const AccountStage& stage : account.stages) operators += stage.records.size();
    }
    return operators > 1;
}

std::string figures_of(const std::vector<std::string>& charts) {
    std::string text;
    for (const std::string& svg : charts) text += figure_of(svg, false);
    return text;
}

std::string account_figures_of(const Page& page) {
    std::string text;
    const bool any = has_several_operators(page.accounts);
    if (any) text += controls_of(page.accounts);
    for (const chart::AccountChart& one : chart::account_charts()) {
        if (any || (one.name == "roofline" && !page.accounts.empty()))
            text += figure_of(one.draw(page.accounts, page.look), one.name == "roofline");
    }
    return text;
}

bool any_expected(std::span<const Account> accounts) {
    for (const Account& account : accounts) {
        for (const AccountStage& stage : account.stages) {
            if (chart::has_expected(stage.times)) return true;
        }
    }
    return false;
}

Table stages_table(std::span<const Account> accounts) {
    Table table{{{"report", Align::left},
                 {"stage", Align::left},
                 {"tokens/s"},
                 {"measured"},
                 {"expected"},
                 {"attainable"},
                 {"limit"},
                 {"of limit"}},
                {}};
    for (std::size_t a = 0; a < accounts.size(); ++a) {
        for (const AccountStage& stage : accounts[a].stages) {
            const Seconds shown = chart::shown_time(stage.times);
            table.rows.push_back({chart::short_title(accounts, a), chart::describe_stage(stage),
                                  stage.produced > 0.0 ? plain(stage.tokens_per_second(shown)) : "-",
                                  stage.times.measured ? render::time(*stage.times.measured) : "-",
                                  chart::has_expected(stage.times) ? render::time(stage.times.expected) : "-",
                                  render::time(stage.times.attainable), render::time(stage.times.limit),
                                  shown.value > 0.0 ? percent(stage.times.limit.value / shown.value) : "-"});
        }
    }
    return table;
}

Table operators_table(std::span<const Account> accounts) {
    Table table{{{"operator", Align::left}, {"report", Align::left}, {"stage", Align::left}, {"group", Align::left}},
                {}};
    for (const char* title : {"x", "FLOPs", "memory", "FLOP/B", "rate"}) table.columns.push_back({title});
    table.columns.push_back({"held back by", Align::left});
    for (const char* title : {"limit", "attainable", "expected", "measured", "share"}) table.columns.push_back({title});
    for (std::size_t a = 0; a < accounts.size(); ++a) {
        for (const AccountStage& stage : accounts[a].stages) {
            double total = 0.0;
            for (const Record& record : stage.records) total += chart::shown_time(record.times).value;
            for (const Record& record : stage.records) {
                const Bytes memory = record.work.at(Level::memory);
                const double seconds = chart::shown_time(record.times).value;
                const double rate = seconds > 0.0 ? record.work.flops.value / seconds : 0.0;
                table.rows.push_back({record.name, chart::short_title(accounts, a), stage.name,
                                      std::string(name(record.group)), grouped(record.count), flops(record.work.flops),
                                      bytes(memory), render::intensity(intensity(record.work.flops, memory)),
                                      rate > 0.0 ? flops(Flops(rate)) + "/s" : "-",
                                      std::string(name(time_under(record.work, limit_roofs(accounts[a].device)).bound)),
                                      render::time(record.times.limit), render::time(record.times.attainable),
                                      chart::has_expected(record.times) ? render::time(record.times.expected) : "-",
                                      record.times.measured ? render::time(*record.times.measured) : "-",
                                      total > 0.0 ? percent(seconds / total) : "-"});
            }
        }
    }
    return table;
}

}  // namespace

std::string accounts_markdown(std::span<const Account> accounts) {
    std::string text = fmt::format("# {}\n", chart::common_title(accounts));
    if (stages_of(accounts) > 0) {
        for (const auto& [title, written] :
             {std::pair{"stages", &stages_table}, std::pair{"every operator", &operators_table}}) {
            Table table = written(accounts);
            if (accounts.size() == 1) table.drop("report");
            if (!chart::has_measured(accounts)) table.drop("measured");
            if (!any_expected(accounts)) table.drop("expected");
            text += fmt::format("\n## {}\n\n{}", title, as_markdown(table));
        }
    }
    std::string notes;
    for (const Account& account : accounts) {
        for (const std::string& note : account.notes) notes += fmt::format("- {}\n", note);
    }
    return notes.empty() ? text : text + "\n## notes\n\n" + notes;
}

std::string write_page(const Page& page) {
    const ReadMarkdown report = read_markdown(page.report);
    std::string text = head_of(page.title.empty() ? report.title : page.title);
    if (!page.report_first) text += cards_of(page.accounts);
    const std::string early = (page.report_first ? "" : account_figures_of(page)) + figures_of(page.charts);
    const bool chart_before_all = report.sections.front().longest_table > long_table;
    if (chart_before_all) text += early;
    for (std::size_t i = 0; i < report.sections.size(); ++i) {
        text += fmt::format("<section>\n{}</section>\n", report.sections[i].html);
        if (i == 0 && !chart_before_all) text += early;
    }
    if (page.report_first) text += account_figures_of(page);
    return text + figures_of(page.more) + foot_of(page.command);
}

}  // namespace roofline::render
