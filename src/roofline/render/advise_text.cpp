#include "roofline/render/advise_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/render/numbers.hpp"
#include "roofline/render/predict_text.hpp"
#include "roofline/render/table.hpp"

namespace roofline::render {
namespace {

using decide::Advice;
using decide::Goal;
using decide::Outcome;
using decide::Score;
using decide::Verdict;

constexpr double million = 1e6;
constexpr double hour = 3600.0;

std::string goal_title(const Advice& advice) {
    switch (advice.goal) {
        case Goal::tpot:
            return "time per token";
        case Goal::ttft:
            return "first token";
        case Goal::throughput:
            return "tokens/s/device";
        case Goal::cost:
            return advice.price ? "money/M tokens" : "device time/M tokens";
    }
    return "";
}

/// One of a goal's times in the unit that people ask for.
std::string in_unit(Goal goal, Seconds seconds, std::optional<double> price) {
    switch (goal) {
        case Goal::tpot:
        case Goal::ttft:
            return time(seconds);
        case Goal::throughput:
            return plain(seconds.value > 0.0 ? 1.0 / seconds.value : 0.0);
        case Goal::cost:
            return price ? fmt::format("{:.4g}", million * seconds.value * *price / hour)
                         : plain(million * seconds.value) + " s";
    }
    return "";
}

std::string goal_value(const Advice& advice, const Score& score, std::optional<double> price) {
    return in_unit(advice.goal, score.of(advice.goal).expected, price);
}

std::string goal_range(const Advice& advice, const Score& score, std::optional<double> price) {
    const Times& times = score.of(advice.goal);
    std::string low = in_unit(advice.goal, times.expected_low, price);
    std::string high = in_unit(advice.goal, times.expected_high, price);
    if (advice.goal == Goal::throughput) std::swap(low, high);
    return span_of(low, high);
}

std::string gain_text(const Advice& advice, double gain) {
    return advice.asked.fit.fits ? fmt::format("{:.2f}x", gain) : "-";
}

std::string share_of_memory(const Score& score) {
    if (!score.fit.capacity || score.fit.capacity->value <= 0.0) return bytes(score.fit.total());
    return percent(score.fit.total() / *score.fit.capacity);
}

/// What the other goals make of it: a move that wins one often loses another.
struct Side {
    const char* title;
    Goal goal;
};
constexpr Side sides[] = {
    {"first token", Goal::ttft}, {"time per token", Goal::tpot}, {"tokens/s/device", Goal::throughput}};

bool is_shown(const Side& side, Goal goal) {
    return side.goal != goal && !(side.goal == Goal::throughput && goal == Goal::cost);
}

/// What is shown together: settings by what came of them, then what cannot be had by a setting.
enum class Part { help, change_nothing, hurt, other_devices, what_if };

const char* title_of(Part part, bool fits) {
    switch (part) {
        case Part::help:
            return fits ? "settings that help" : "settings that make it fit";
        case Part::change_nothing:
            return "settings that change nothing (less than 1% either way)";
        case Part::hurt:
            return "settings that hurt this goal";
        case Part::other_devices:
            return "other devices";
        case Part::what_if:
            return "what if (not to be had by a setting)";
    }
    return "";
}

bool belongs(const Outcome& outcome, Part part) {
    if (outcome.verdict >= Verdict::does_not_fit) return false;
    if (outcome.what_if) return part == Part::what_if;
    if (outcome.machines == decide::Machines::other) return part == Part::other_devices;
    return static_cast<int>(outcome.verdict) == static_cast<int>(part);
}

Table outcome_table(const Advice& advice, Part part) {
    Table table{
        {{"move", Align::left}, {goal_title(advice)}, {"range"}, {"gain"}, {"held back by", Align::left}, {"devices"}},
        {}};
    for (const Side& side : sides) {
        if (is_shown(side, advice.goal)) table.columns.push_back({side.title});
    }
    table.columns.push_back({"memory"});
    table.columns.push_back({"flags", Align::left});
    for (const Outcome& outcome : advice.outcomes) {
        if (!belongs(outcome, part)) continue;
        const Score& score = outcome.score;
        std::vector<std::string> row = {outcome.variant,
                                        goal_value(advice, score, outcome.price),
                                        goal_range(advice, score, outcome.price),
                                        gain_text(advice, outcome.gain),
                                        std::string(name(score.bound(advice.goal))),
                                        grouped(score.devices)};
        for (const Side& side : sides) {
            if (is_shown(side, advice.goal)) row.push_back(in_unit(side.goal, score.of(side.goal).expected, {}));
        }
        row.push_back(share_of_memory(score));
        row.push_back(outcome.flags);
        table.rows.push_back(std::move(row));
    }
    const bool one_device = std::ranges::all_of(table.rows, [](const auto& row) { return row[5] == "1"; });
    if (one_device) table.drop("devices");
    if (!advice.asked.fit.fits) table.drop("gain");
    if (std::ranges::all_of(table.rows, [](const auto& row) { return row.back().empty(); })) table.drop("flags");
    return table;
}

/// A name and what is to be said of it; names of which the same is said share a line.
void add_shared(std::vector<std::pair<std::string, std::string>>& lines, const std::string& name,
                const std::string& said) {
    const auto same = std::ranges::find_if(lines, [&](const auto& line) { return line.second == said; });
    if (same == lines.end()) {
        lines.emplace_back(name, said);
    } else {
        same->first += ", " + name;
    }
}

std::vector<std::string> joined(const std::vector<std::pair<std::string, std::string>>& lines) {
    std::vector<std::string> result;
    for (const auto& [names, said] : lines) result.push_back(names + ": " + said);
    return result;
}

std::vector<std::string> costs(const Advice& advice, Part part) {
    std::vector<std::pair<std::string, std::string>> lines;
    for (const Outcome& outcome : advice.outcomes) {
        if (belongs(outcome, part)) add_shared(lines, outcome.variant, outcome.costs);
    }
    return joined(lines);
}

std::string amount(const decide::Resource& resource) {
    if (!resource.amount) return "";
    switch (resource.kind) {
        case decide::ResourceKind::compute:
            return with_unit(*resource.amount, peak_unit(resource.name));
        case decide::ResourceKind::bandwidth:
            return with_unit(*resource.amount, "B/s");
        default:
            return bytes(Bytes(*resource.amount));
    }
}

Table sensitivity_table(const Advice& advice) {
    Table table{{{"resource", Align::left}, {"now"}, {"doubled buys"}, {"elasticity"}, {"", Align::left}}, {}};
    for (const decide::Sensitivity& row : advice.sensitivities) {
        table.rows.push_back({row.resource.title, amount(row.resource), fmt::format("{:.2f}x", row.doubled),
                              row.elasticity ? fmt::format("{:.2f}", *row.elasticity) : "-", row.note});
    }
    if (std::ranges::all_of(advice.sensitivities, [](const auto& row) { return row.note.empty(); })) table.drop("");
    return table;
}

std::string asked_line(const Advice& advice) {
    const Score& score = advice.asked;
    const Times& times = score.of(advice.goal);
    std::string line =
        fmt::format("{} {} (limit {}, range {}), held back by {}", goal_title(advice),
                    goal_value(advice, score, advice.price), in_unit(advice.goal, times.limit, advice.price),
                    goal_range(advice, score, advice.price), name(score.bound(advice.goal)));
    for (const Side& side : sides) {
        if (is_shown(side, advice.goal))
            line += fmt::format("; {} {}", side.title, in_unit(side.goal, score.of(side.goal).expected, {}));
    }
    return line;
}

std::string goal_line(Goal goal) {
    switch (goal) {
        case Goal::tpot:
            return "time per output token";
        case Goal::ttft:
            return "time to first token";
        case Goal::throughput:
            return "output tokens per second and device, prompts included";
        case Goal::cost:
            return "cost of a million output tokens, prompts included";
    }
    return "";
}

std::string compute_bound_line(const Advice& advice) {
    const decide::ComputeBoundBatch& bound = advice.compute_bound;
    if (!bound.batch) return "decode stays memory-bound at every batch: caches grow with it as fast as the work does";
    std::string line = *bound.batch <= 1.0
                           ? std::string("decode is compute-bound at any batch")
                           : fmt::format("decode becomes compute-bound at a batch of {}", grouped(*bound.batch));
    if (!bound.largest) return line;
    return line + (bound.fits() ? fmt::format(", which fits (largest {})", grouped(*bound.largest))
                                : fmt::format(", which does not fit (largest {})", grouped(*bound.largest)));
}

std::vector<std::string> combination_lines(const Advice& advice, const decide::Combination& combination) {
    std::string chain;
    for (std::size_t i = 0; i < combination.parts.size(); ++i) {
        // Gains are of all parts so far.
        chain += fmt::format("{}{}", i > 0 ? ", with " : "", combination.parts[i]);
        if (advice.asked.fit.fits) chain += fmt::format(" {:.2f}x", combination.gains[i]);
    }
    std::string numbers = fmt::format(
        "{} {} (range {}), held back by {}", goal_title(advice), goal_value(advice, combination.score, advice.price),
        goal_range(advice, combination.score, advice.price), name(combination.score.bound(advice.goal)));
    for (const Side& side : sides) {
        if (is_shown(side, advice.goal)) {
            numbers +=
                fmt::format("; {} {}", side.title, in_unit(side.goal, combination.score.of(side.goal).expected, {}));
        }
    }
    numbers += fmt::format("; {} of memory", share_of_memory(combination.score));
    if (combination.score.devices > 1.0) numbers += fmt::format(", {} devices", grouped(combination.score.devices));
    std::vector<std::string> lines = {chain, numbers};
    if (!combination.flags.empty()) lines.push_back(fmt::format("flags: {}", fmt::join(combination.flags, " ")));
    return lines;
}

std::string headline(const Advice& advice) {
    double compute = 1.0;
    double memory = 1.0;
    for (const decide::Sensitivity& row : advice.sensitivities) {
        if (row.resource.name == "compute") compute = row.doubled;
        if (row.resource.name == "memory.bandwidth") memory = row.doubled;
    }
    std::string text = fmt::format("doubling compute buys {:.2f}x; doubling memory bandwidth {:.2f}x", compute, memory);
    // Sorted: the first row buys most.
    if (!advice.sensitivities.empty()) {
        const decide::Sensitivity& most = advice.sensitivities.front();
        if (most.doubled > compute && most.doubled > memory)
            text += fmt::format("; {} {:.2f}x", most.resource.title, most.doubled);
    }
    return advice.asked.fit.fits ? text : text + " (as if it fitted)";
}

/// What does not fit or apply is a name and why.
std::vector<std::string> reasons(const Advice& advice, Verdict verdict) {
    std::vector<std::pair<std::string, std::string>> lines;
    for (const Outcome& outcome : advice.outcomes) {
        if (outcome.verdict != verdict) continue;
        add_shared(lines, outcome.variant,
                   verdict == Verdict::does_not_apply
                       ? outcome.reason
                       : fmt::format("takes {}, {} too much", bytes(outcome.score.fit.total()),
                                     bytes(outcome.score.fit.shortfall())));
    }
    return joined(lines);
}

template <class Heading, class Rows, class Between, class Line>
void write_body(const Advice& advice, const Heading& heading, const Rows& rows, const Between& between,
                const Line& line) {
    heading(headline(advice));
    rows(sensitivity_table(advice));
    for (const Part part : {Part::help, Part::change_nothing, Part::hurt, Part::other_devices, Part::what_if}) {
        const Table table = outcome_table(advice, part);
        if (table.rows.empty() && part != Part::help) continue;
        heading(title_of(part, advice.asked.fit.fits));
        if (table.rows.empty()) {
            line("none of those that were tried");
            continue;
        }
        rows(table);
        if (part != Part::help && part != Part::what_if) continue;
        between();
        for (const std::string& text : costs(advice, part)) line(text);
    }
    if (!advice.combinations.empty()) heading("best combinations");
    for (const decide::Combination& combination : advice.combinations) {
        line(advice.asked.fit.fits ? fmt::format("{}: {}", combination.title, gain_text(advice, combination.gain))
                                   : combination.title);
        for (const std::string& text : combination_lines(advice, combination)) line("  " + text);
    }
    heading("batch");
    line(compute_bound_line(advice));
    for (const Verdict verdict : {Verdict::does_not_fit, Verdict::does_not_apply}) {
        const auto lines = reasons(advice, verdict);
        if (!lines.empty()) heading(verdict == Verdict::does_not_fit ? "does not fit" : "does not apply here");
        for (const std::string& text : lines) line(text);
    }
    if (!advice.notes.empty()) heading("notes");
    for (const std::string& note : advice.notes) line(note);
}

}  // namespace

std::string advise_text(const Advice& advice) {
    std::string text = fmt::format("{} on {}\n", advice.scenario.model_title, advice.scenario.device.title);
    for (const std::string& line : question_lines(advice.scenario, advice.asked.fit)) text += "  " + line + "\n";
    text += fmt::format("  goal     {}\n", goal_line(advice.goal));
    text += fmt::format("  now      {}\n", asked_line(advice));
    write_body(
        advice, [&](const std::string& title) { text += fmt::format("\n{}\n", title); },
        [&](const Table& table) { text += as_text(table, "  "); }, [] {},
        [&](const std::string& line) {
            text += (line.starts_with("  ") ? "    " : "  - ") + line.substr(line.find_first_not_of(' ')) + "\n";
        });
    return text;
}

std::string advise_markdown(const Advice& advice) {
    std::string text = fmt::format("# {} on {}\n\n", advice.scenario.model_title, advice.scenario.device.title);
    for (const std::string& line : question_lines(advice.scenario, advice.asked.fit)) text += "- " + line + "\n";
    text += fmt::format("- goal: {}\n- now: {}\n", goal_line(advice.goal), asked_line(advice));
    write_body(
        advice, [&](const std::string& title) { text += fmt::format("\n## {}\n\n", title); },
        [&](const Table& table) { text += as_markdown(table); }, [&] { text += "\n"; },
        [&](const std::string& line) {
            text += (line.starts_with("  ") ? "  - " : "- ") + line.substr(line.find_first_not_of(' ')) + "\n";
        });
    return text;
}

std::string advise_csv(const Advice& advice) {
    Table table{{{"move"},
                 {"variant"},
                 {"verdict"},
                 {"gain"},
                 {"bound"},
                 {"devices"},
                 {"batch"},
                 {"ttft_s"},
                 {"tpot_s"},
                 {"output_tokens_per_s_per_device"},
                 {"memory_bytes"},
                 {"flags"},
                 {"costs"},
                 {"reason"}},
                {}};
    const auto number = [](double value) { return fmt::format("{}", value); };
    for (const Outcome& outcome : advice.outcomes) {
        if (outcome.verdict == Verdict::does_not_apply) {
            table.rows.push_back({outcome.move, outcome.variant, std::string(name(outcome.verdict)), "", "", "", "", "",
                                  "", "", "", "", outcome.costs, outcome.reason});
            continue;
        }
        const Score& score = outcome.score;
        const bool ranked = outcome.verdict != Verdict::does_not_fit && advice.asked.fit.fits;
        table.rows.push_back({outcome.move, outcome.variant, std::string(name(outcome.verdict)),
                              ranked ? number(outcome.gain) : "", std::string(name(score.bound(advice.goal))),
                              number(score.devices), number(score.batch), number(score.ttft.expected.value),
                              number(score.tpot.expected.value), number(score.rate()), number(score.fit.total().value),
                              outcome.flags, outcome.costs, ""});
    }
    return as_csv(table);
}

}  // namespace roofline::render
