#include "roofline/cli/compare_text.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "roofline/render/numbers.hpp"
#include "roofline/render/table.hpp"

namespace roofline::cli {
namespace {

using assess::Change;
using assess::Comparison;
using assess::Row;
using assess::Side;
using assess::StageComparison;

std::string letter(std::size_t side) {
    return side < 26 ? std::string(1, static_cast<char>('A' + side)) : fmt::format("#{}", side + 1);
}

std::string value_text(const Row& row, const Side& side) {
    if (!side.value) return "-";
    if (row.unit.empty()) return render::plain(*side.value);
    return render::with_unit(*side.value, row.unit == "FLOP/s" ? render::peak_unit(row.name) : row.unit);
}

std::string ratio_text(const Side& side) {
    return side.ratio ? fmt::format("{:.3f}", *side.ratio) : "-";
}

std::string change_text(const Row& row, const Side& side) {
    if (!side.change) return "";
    const std::string word(name(*side.change));
    if (!side.ratio || *side.change == Change::same) return word;
    const bool up = *side.ratio > 1.0;
    if (row.unit == "s") {  // of times, how much faster or slower says more than a ratio below one
        return up ? fmt::format("{} (+{})", word, render::percent(*side.ratio - 1.0))
                  : fmt::format("{} (-{})", word, render::percent(1.0 - *side.ratio));
    }
    return fmt::format("{} ({}{})", word, up ? "+" : "-", render::percent(up ? *side.ratio - 1.0 : 1.0 - *side.ratio));
}

/// Columns of the sides, the first of them called so.
render::Table table_headed(std::size_t sides, std::string first) {
    render::Table table;
    table.columns.push_back({std::move(first), render::Align::left});
    for (std::size_t i = 0; i < sides; ++i) table.columns.push_back({letter(i)});
    for (std::size_t i = 1; i < sides; ++i) {
        table.columns.push_back({letter(i) + "/A"});
        table.columns.push_back({sides > 2 ? letter(i) + " is" : "B is", render::Align::left});
    }
    return table;
}

void add(render::Table& table, const Row& row, std::string title) {
    std::vector<std::string> cells = {std::move(title)};
    for (const Side& side : row.sides) cells.push_back(value_text(row, side));
    for (std::size_t i = 1; i < row.sides.size(); ++i) {
        cells.push_back(ratio_text(row.sides[i]));
        cells.push_back(change_text(row, row.sides[i]));
    }
    table.rows.push_back(std::move(cells));
}

/// Of every stage only the whole.
render::Table stages_table(const Comparison& comparison) {
    render::Table table = table_headed(comparison.titles.size(), "stage");
    for (const StageComparison& stage : comparison.stages) add(table, stage.total, stage.name);
    return table;
}

/// Rows of one stage, or, where only stages are compared, of all.
render::Table table_of(const Comparison& comparison, std::span<const StageComparison> stages, std::size_t top) {
    const std::size_t sides = comparison.titles.size();
    render::Table table = table_headed(sides, comparison.devices ? "figure" : std::string(assess::name(comparison.by)));
    for (const StageComparison& stage : stages) {
        if (!comparison.devices) add(table, stage.total, stage.rows.empty() ? stage.name : stage.name + ", whole");
        for (std::size_t i = 0; i < stage.rows.size() && (top == 0 || i < top); ++i) {
            const Row& row = stage.rows[i];
            std::string title = row.name;
            for (std::size_t side = 0; side < sides; ++side) {
                const std::size_t merged = row.sides[side].merged.size();
                if (merged > 1 && row.name.find(" + ") == std::string::npos)
                    title += fmt::format(" ({} in {})", merged, letter(side));
            }
            add(table, row, title);
        }
    }
    return table;
}

/// "3 better, 1 worse, 2 appeared" over all stages, by side.
std::string tally(const Comparison& comparison, std::size_t side) {
    std::array<int, 5> counts{};
    const auto count = [&](const Row& row) {
        if (row.sides[side].change) ++counts[static_cast<std::size_t>(*row.sides[side].change)];
    };
    for (const StageComparison& stage : comparison.stages) {
        for (const Row& row : stage.rows) count(row);
        if (stage.rows.empty()) count(stage.total);
    }
    std::string text;
    for (const Change change : {Change::better, Change::worse, Change::same, Change::appeared, Change::vanished}) {
        const int number = counts[static_cast<std::size_t>(change)];
        if (number > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, name(change));
    }
    return text.empty() ? "nothing to compare" : text;
}

io::OrderedJson row_json(const Row& row) {
    io::OrderedJson json = {{"name", row.name}};
    if (!row.group.empty()) json["group"] = row.group;
    json["unit"] = row.unit;
    json["sides"] = io::OrderedJson::array();
    for (const Side& side : row.sides) {
        io::OrderedJson entry = {{"value", side.value ? io::finite(*side.value) : io::OrderedJson(nullptr)}};
        if (side.count > 0.0) entry["count"] = side.count;
        if (side.change) {
            entry["ratio"] = side.ratio ? io::finite(*side.ratio) : io::OrderedJson(nullptr);
            entry["change"] = name(*side.change);
        }
        if (!side.merged.empty()) entry["records"] = side.merged;
        json["sides"].push_back(std::move(entry));
    }
    return json;
}

std::string failure_text(const Comparison& comparison, const Comparison::Failure& failure) {
    std::string place =
        failure.stage == failure.name || failure.stage.empty() ? failure.name : failure.stage + ", " + failure.name;
    return fmt::format("{} is worse by {} in {} ({})", place, render::percent(failure.by), letter(failure.side),
                       comparison.titles[failure.side]);
}

}  // namespace

std::string compare_text(const Comparison& comparison, const Judgement& judgement, std::size_t top, bool markdown) {
    std::string text;
    for (std::size_t i = 0; i < comparison.titles.size(); ++i) {
        text += fmt::format("{}{}  {}{}\n", markdown ? "- " : "", letter(i), comparison.titles[i],
                            comparison.time_names[i].empty() ? "" : ", " + comparison.time_names[i]);
    }
    const auto spelt = [&](const render::Table& table, std::string_view indent) {
        return markdown ? render::as_markdown(table) : render::as_text(table, indent);
    };
    // What it comes to: the last thing a terminal shows, and the first of a page.
    std::string sums = "\n";
    for (std::size_t i = 1; i < comparison.titles.size(); ++i)
        sums += fmt::format("{}{} against A: {}\n", markdown ? "- " : "", letter(i), tally(comparison, i));
    if (judgement.fail_above) {
        sums +=
            judgement.failures.empty()
                ? fmt::format("nothing that counts is worse by more than {}\n", render::percent(*judgement.fail_above))
                : fmt::format("worse by more than {}:\n", render::percent(*judgement.fail_above));
        for (const Comparison::Failure& failure : judgement.failures)
            sums += "  " + failure_text(comparison, failure) + "\n";
    }
    if (markdown) text += sums;
    if (comparison.devices || comparison.by == assess::By::stage) {
        text += "\n" + spelt(table_of(comparison, comparison.stages, top), "");
    } else {
        constexpr std::size_t few = 2;  // stages that one sees at a glance
        if (comparison.stages.size() > few)
            text += (markdown ? "\n## whole stages\n\n" : "\nwhole stages\n") + spelt(stages_table(comparison), "  ");
        for (const StageComparison& stage : comparison.stages) {
            text += (markdown ? "\n## " + stage.name + "\n\n" : "\n" + stage.name + "\n") +
                    spelt(table_of(comparison, std::span(&stage, 1), top), "  ");
            if (top > 0 && stage.rows.size() > top)
                text += fmt::format("{}{} more with smaller differences (--top 0 shows all)\n", markdown ? "\n" : "  ",
                                    stage.rows.size() - top);
        }
    }
    text += markdown ? "\n" : sums;
    for (const std::string& note : comparison.notes) text += "note: " + note + "\n";
    return text;
}

std::string compare_csv(const Comparison& comparison) {
    render::Table table;
    for (const char* title : {"stage", "name", "group", "unit", "side", "title", "value", "count", "ratio", "change"})
        table.columns.push_back({title});
    const auto number = [](const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; };
    for (const StageComparison& stage : comparison.stages) {
        const auto add = [&](const Row& row, const std::string& row_name) {
            for (std::size_t i = 0; i < row.sides.size(); ++i) {
                const Side& side = row.sides[i];
                table.rows.push_back({stage.name, row_name, row.group, row.unit, letter(i), comparison.titles[i],
                                      number(side.value), side.count > 0.0 ? fmt::format("{}", side.count) : "",
                                      number(side.ratio), side.change ? std::string(name(*side.change)) : ""});
            }
        };
        if (!comparison.devices) add(stage.total, "");
        for (const Row& row : stage.rows) add(row, row.name);
    }
    return render::as_csv(table);
}

io::OrderedJson compare_json(const Comparison& comparison, const Judgement& judgement,
                             const std::vector<std::string>& files, const io::RunInfo& run) {
    io::OrderedJson json = {{"schema", "roofline.compare/1"},
                            {"run", {{"version", ROOFLINE_VERSION}, {"command", run.command}, {"time", run.time}}},
                            {"compares", comparison.devices ? "devices" : "reports"}};
    if (!comparison.devices) {
        json["by"] = assess::name(comparison.by);
        json["time"] = assess::name(comparison.time);
    }
    json["sides"] = io::OrderedJson::array();
    for (std::size_t i = 0; i < comparison.titles.size(); ++i) {
        io::OrderedJson side = {{"file", files[i]}, {"title", comparison.titles[i]}};
        if (!comparison.time_names[i].empty()) side["times"] = comparison.time_names[i];
        json["sides"].push_back(std::move(side));
    }
    json["stages"] = io::OrderedJson::array();
    for (const StageComparison& stage : comparison.stages) {
        io::OrderedJson entry = {{"stage", stage.name}};
        if (!comparison.devices) entry["whole"] = row_json(stage.total);
        entry["rows"] = io::OrderedJson::array();
        for (const Row& row : stage.rows) entry["rows"].push_back(row_json(row));
        json["stages"].push_back(std::move(entry));
    }
    json["failures"] = io::OrderedJson::array();
    for (const Comparison::Failure& failure : judgement.failures) {
        json["failures"].push_back(
            {{"stage", failure.stage}, {"name", failure.name}, {"side", failure.side}, {"worse_by", failure.by}});
    }
    json["fail_above"] = judgement.fail_above ? io::OrderedJson(*judgement.fail_above) : io::OrderedJson(nullptr);
    json["notes"] = comparison.notes;
    return json;
}

}  // namespace roofline::cli
