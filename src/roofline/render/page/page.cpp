#include "roofline/render/page/page.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "roofline/render/chart/account_charts.hpp"
#include "roofline/render/chart/spots.hpp"
#include "roofline/render/chart/svg.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::render {
namespace {

using chart::escaped;

std::string head_of(std::string_view title) {
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src "
        "'unsafe-inline'; img-src "
        "data:\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n",
        escaped(title), page_style(), escaped(title));
}

std::string foot_of(std::string_view command) {
    std::string text;
    if (!command.empty()) text += fmt::format("<footer><code>{}</code></footer>\n", escaped(command));
    return text +
           fmt::format("</main>\n<div id=\"tip\" role=\"status\"></div>\n<script>\n{}</script>\n</body>\n</html>\n",
                       page_script());
}

std::string figure_of(const std::string& svg, bool zooms) {
    return fmt::format("<figure class=\"{}\">\n{}<button type=\"button\">whole picture</button>\n</figure>\n",
                       zooms ? "zooms" : "still", svg);
}

/// A number of a table: how it is shown, and how it is sorted.
std::string number_cell(const std::string& shown, double value) {
    return fmt::format("<td data-value=\"{}\">{}</td>", std::isfinite(value) ? fmt::format("{:.9g}", value) : "1e300",
                       escaped(shown));
}
std::string word_cell(std::string_view text) {
    return fmt::format("<td class=\"words\">{}</td>", escaped(text));
}

std::string row_of(std::span<const Account> accounts, std::size_t a, const AccountStage& stage, const Record& record,
                   double total) {
    const double memory = record.work.at(Level::memory).value;
    const double seconds = chart::shown_time(record.times).value;
    const double intense = intensity(record.work.flops, Bytes(memory)).value;
    const double rate = seconds > 0.0 ? record.work.flops.value / seconds : 0.0;
    std::string row = fmt::format("<tr data-name=\"{}\" data-stage=\"{}\" data-group=\"{}\" data-report=\"{}\">",
                                  escaped(record.name), escaped(stage.name), name(record.group), a);
    if (accounts.size() > 1) row += word_cell(chart::short_title(accounts, a));
    row += word_cell(stage.name) + word_cell(record.name) + word_cell(name(record.group));
    row += number_cell(grouped(record.count), record.count);
    row += number_cell(flops(record.work.flops), record.work.flops.value);
    row += number_cell(bytes(Bytes(memory)), memory);
    row += number_cell(render::intensity(FlopsPerByte(intense)), intense);
    row += number_cell(rate > 0.0 ? flops(Flops(rate)) + "/s" : "-", rate);
    row += word_cell(name(time_under(record.work, limit_roofs(accounts[a].device)).bound));
    row += number_cell(render::time(record.times.limit), record.times.limit.value);
    row += number_cell(render::time(record.times.attainable), record.times.attainable.value);
    row += number_cell(render::time(record.times.expected), record.times.expected.value);
    if (chart::has_measured(accounts)) {
        const auto& measured = record.times.measured;
        row += number_cell(measured ? render::time(*measured) : "-", measured ? measured->value : -1.0);
    }
    row += number_cell(total > 0.0 ? percent(seconds / total) : "-", total > 0.0 ? seconds / total : 0.0);
    return row + "</tr>\n";
}

std::string table_of(std::span<const Account> accounts) {
    std::string text = "<div class=\"table\"><table>\n<thead><tr>";
    const auto head = [&](std::string_view title, bool words) {
        text += fmt::format("<th{}><button type=\"button\">{}</button></th>", words ? " class=\"words\"" : "", title);
    };
    if (accounts.size() > 1) head("report", true);
    head("stage", true), head("operator", true), head("group", true);
    for (const char* title : {"x", "FLOPs", "memory", "FLOP/B", "rate"}) head(title, false);
    head("held back by", true);
    for (const char* title : {"limit", "attainable", "expected"}) head(title, false);
    if (chart::has_measured(accounts)) head("measured", false);
    head("share", false);
    text += "</tr></thead>\n<tbody>\n";
    for (std::size_t a = 0; a < accounts.size(); ++a) {
        for (const AccountStage& stage : accounts[a].stages) {
            double total = 0.0;
            for (const Record& record : stage.records) total += chart::shown_time(record.times).value;
            for (const Record& record : stage.records) text += row_of(accounts, a, stage, record, total);
        }
    }
    return text + "</tbody>\n</table></div>\n";
}

std::string answers_of(std::span<const Account> accounts) {
    std::string text = "<div class=\"answers\">\n";
    for (std::size_t a = 0; a < accounts.size(); ++a) {
        for (const AccountStage& stage : accounts[a].stages) {
            const Seconds shown = chart::shown_time(stage.times);
            std::string what = chart::describe_stage(stage);
            if (accounts.size() > 1) what = chart::short_title(accounts, a) + ": " + what;
            const std::string rate =
                stage.produced > 0.0 ? plain(stage.tokens_per_second(shown)) + " tokens/s" : render::time(shown);
            text += fmt::format(
                "<div class=\"answer\"><span>{}</span><b>{}</b><span>{}{}, limit {}, attainable {}</span></div>\n",
                escaped(what), rate, render::time(shown), stage.times.measured ? " measured" : " expected",
                render::time(stage.times.limit), render::time(stage.times.attainable));
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

}  // namespace

std::string account_page(std::span<const Account> accounts, std::string_view command) {
    const std::string title = chart::common_title(accounts);
    std::string text = head_of(title);
    bool any = false;
    for (const Account& account : accounts) any = any || !account.stages.empty();
    if (any) text += answers_of(accounts) + controls_of(accounts);
    for (const chart::AccountChart& one : chart::account_charts()) {
        if (any || one.name == "roofline") text += figure_of(one.draw(accounts, {}), one.name == "roofline");
    }
    if (any)
        text +=
            "<h2>Every operator</h2>\n<p class=\"lead\">A click on a heading sorts; the wheel zooms in the "
            "roofline.</p>\n" +
            table_of(accounts);
    std::string notes;
    for (const Account& account : accounts) {
        for (const std::string& note : account.notes) notes += fmt::format("<li>{}</li>\n", escaped(note));
    }
    if (!notes.empty()) text += "<ul class=\"notes\">\n" + notes + "</ul>\n";
    return text + foot_of(command);
}

std::string chart_page(const std::vector<std::string>& charts, std::string_view title, std::string_view command) {
    std::string text = head_of(title);
    for (const std::string& svg : charts) text += figure_of(svg, false);
    return text + foot_of(command);
}

}  // namespace roofline::render
