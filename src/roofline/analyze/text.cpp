#include "roofline/analyze/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include <fmt/format.h>

#include "roofline/analyze/spelling.hpp"
#include "roofline/render/numbers.hpp"
#include "roofline/render/table.hpp"

namespace roofline::analyze {
namespace {

using render::Align;
using render::Table;

/// As a table says it.
std::string bound_of(const Record& record, const Analysis& analysis, const Roofs& roofs) {
    if (record.kind == Kind::idle) return "waiting";
    if (record.kind == Kind::unattributed) return "unknown";
    return analysis.device_known ? std::string(name(held_by(record, roofs))) : "-";
}

double share(Seconds part, Seconds whole) {
    return whole.value > 0.0 ? part / whole : 0.0;
}

std::string of(Seconds best, Seconds measured) {
    if (best.value <= 0.0 || measured.value <= 0.0) return "-";
    return render::percent(best / measured);
}

/// No time at all is one that nothing is known of.
std::string known_time(Seconds time) {
    return time.value > 0.0 ? render::time(time) : "-";
}

Seconds measured(const Record& record) {
    return record.times.measured.value_or(Seconds{});
}

/// What a record could win at most: down to what the machine can do, where that is known.
Seconds headroom(const Record& record) {
    if (record.kind == Kind::unattributed) return Seconds{};
    const Seconds best = record.times.attainable;
    return measured(record) > best ? measured(record) - best : Seconds{};
}

std::string shortened(const std::string& text, std::size_t most) {
    if (text.size() <= most) return text;
    std::size_t cut = most - 3;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;  // never inside a character
    return text.substr(0, cut) + "...";
}

/// By what could be won, then by time.
std::vector<Record> ranked(const AccountStage& stage, bool device_known) {
    std::vector<Record> records = stage.records;
    std::stable_sort(records.begin(), records.end(), [&](const Record& a, const Record& b) {
        const double first = device_known ? headroom(a).value : 0.0;
        const double second = device_known ? headroom(b).value : 0.0;
        if (first != second) return first > second;
        return measured(a) > measured(b);
    });
    return records;
}

bool is_inferred(const Analysis& analysis, const std::string& name) {
    return std::find(analysis.inferred.begin(), analysis.inferred.end(), name) != analysis.inferred.end();
}

/// The bytes that an intensity is told by: those of memory; of what never leaves the chip, those there.
Bytes counted_by(const Work& work) {
    return work.at(Level::memory).value > 0.0 ? work.at(Level::memory) : work.at(Level::cache);
}

/// Benchmarks time whole steps: what their operators need is the model's word, and no time stands beside it.
bool is_timed(const AccountStage& stage) {
    return std::any_of(stage.records.begin(), stage.records.end(),
                       [](const Record& record) { return measured(record).value > 0.0; });
}

Table needs_table(const AccountStage& stage, const Analysis& analysis) {
    Table table;
    table.columns = {{"operator", Align::left}, {"x"}, {"FLOPs"}, {"memory"}, {"on chip"}, {"FLOP/B"}, {"limit"}};
    for (const Record& record : stage.records) {
        const Bytes links = record.work.at(Level::peer) + record.work.at(Level::host) + record.work.at(Level::network);
        table.rows.push_back({shortened(record.name, 58), counted(record.count), render::flops(record.work.flops),
                              render::bytes(record.work.at(Level::memory) + links),
                              render::bytes(record.work.at(Level::cache)),
                              render::intensity(intensity(record.work.flops, counted_by(record.work))),
                              render::time(record.times.limit)});
    }
    if (!analysis.device_known) table.drop("limit");
    return table;
}

Table record_table(const AccountStage& stage, const Analysis& analysis, const TextOptions& options, Record* rest) {
    Table table;
    table.columns = {{options.by == "record" ? "operator" : options.by, Align::left},
                     {"x"},
                     {"time"},
                     {"share"},
                     {"FLOPs"},
                     {"memory"},
                     {analysis.counted_bytes ? "from L2" : "on chip"},
                     {"FLOP/B"},
                     {"bound", Align::left},
                     {"of limit"},
                     {"of attainable"},
                     {"could win"}};
    const auto records = ranked(stage, analysis.device_known);
    const Seconds wall = stage.times.measured.value_or(Seconds{});
    const Roofs roofs = attainable_roofs(analysis.account.device);
    std::size_t shown = 0;
    for (const Record& record : records) {
        if (options.top > 0 && shown >= options.top) {
            rest->count += 1.0;
            rest->times.measured = measured(*rest) + measured(record);
            rest->times.limit += headroom(record);
            continue;
        }
        ++shown;
        const bool explained = record.kind != Kind::unattributed && record.kind != Kind::idle;
        const Bytes links = record.work.at(Level::peer) + record.work.at(Level::host) + record.work.at(Level::network);
        const Bytes memory = record.work.at(Level::memory) + links;
        table.rows.push_back(
            {shortened(record.name, 58) + (is_inferred(analysis, record.name) ? " ~" : ""),
             record.kind == Kind::idle ? "" : counted(record.count), render::time(measured(record)),
             render::percent(share(measured(record), wall)), explained ? render::flops(record.work.flops) : "",
             explained ? render::bytes(memory) : "", explained ? render::bytes(record.work.at(Level::cache)) : "",
             explained ? render::intensity(intensity(record.work.flops, counted_by(record.work))) : "",
             bound_of(record, analysis, roofs), explained ? of(record.times.limit, measured(record)) : "",
             explained ? of(record.times.attainable, measured(record)) : "",
             explained && analysis.device_known ? render::time(headroom(record)) : ""});
    }
    if (!analysis.device_known) {
        for (const char* column : {"bound", "of limit", "of attainable", "could win"}) table.drop(column);
    }
    return table;
}

Table stage_table(const Analysis& analysis) {
    Table table;
    table.columns = {
        {"stage", Align::left}, {"steps"}, {"batch"},      {"tokens"},  {"context"}, {"wall"}, {"busy"}, {"idle"},
        {"tokens/s"},           {"limit"}, {"attainable"}, {"of limit"}};
    for (std::size_t i = 0; i < analysis.account.stages.size(); ++i) {
        const AccountStage& stage = analysis.account.stages[i];
        const Seconds wall = stage.times.measured.value_or(Seconds{});
        const bool known = i < analysis.time_went.size();
        const Seconds idle = known ? analysis.time_went[i].idle : Seconds{};
        table.rows.push_back({stage.name, counted(stage.repetitions), stage.batch > 0.0 ? counted(stage.batch) : "-",
                              stage.tokens > 0.0 ? counted(stage.tokens) : "-",
                              stage.context > 0.0 ? counted(stage.context) : "-", render::time(wall),
                              known ? render::time(wall - idle) : "-", known ? render::percent(share(idle, wall)) : "-",
                              stage.produced > 0.0 ? render::plain(stage.tokens_per_second(wall)) : "-",
                              known_time(stage.times.limit), known_time(stage.times.attainable),
                              analysis.device_known ? of(stage.times.limit, wall) : "-"});
    }
    if (!analysis.device_known) {
        for (const char* column : {"limit", "attainable", "of limit"}) table.drop(column);
    }
    return table;
}

Table step_table(const Analysis& analysis, std::size_t top) {
    Table table;
    table.columns = {{"step", Align::left}, {"at"}, {"wall"}, {"busy"}, {"kernels"}, {"tokens"}, {"context"}};
    const std::size_t most = top == 0 ? analysis.steps.size() : std::max<std::size_t>(top, 1);
    for (std::size_t i = 0; i < std::min(most, analysis.steps.size()); ++i) {
        const StepTime& step = analysis.steps[i];
        table.rows.push_back({shortened(step.name, 40), render::time(Seconds(step.begin_s)), render::time(step.wall),
                              render::time(step.busy), counted(step.kernels),
                              step.tokens > 0.0 ? counted(step.tokens) : "-",
                              step.context > 0.0 ? counted(step.context) : "-"});
    }
    return table;
}

Table stream_table(const Analysis& analysis) {
    Table table;
    table.columns = {{"stream", Align::left}, {"kernels"}, {"attributed"}, {"unattributed"}, {"idle"}, {"= wall"}};
    for (const StreamTime& stream : analysis.streams) {
        table.rows.push_back({stream.name, counted(stream.kernels), render::time(stream.attributed),
                              render::time(stream.unattributed), render::time(stream.idle), render::time(stream.wall)});
    }
    return table;
}

/// Empty where no kernel is known to have a role: copies alone have none.
std::string roles_line(const AccountStage& stage) {
    const bool any = std::any_of(stage.records.begin(), stage.records.end(), [](const Record& record) {
        return record.kind != Kind::idle && record.kind != Kind::unattributed && record.kind != Kind::copy;
    });
    if (!any) return "";
    Bytes weights;
    Bytes kv;
    Bytes all;
    Bytes chip;
    Bytes links;
    for (const Record& record : stage.records) {
        weights += record.weights;
        kv += record.kv;
        all += record.work.at(Level::memory);
        chip += record.work.at(Level::cache);
        links += record.work.at(Level::peer) + record.work.at(Level::host);
    }
    const Bytes rest = Bytes(std::max(0.0, (all - weights - kv).value)) + chip;
    std::string text =
        fmt::format("bytes by role: weights {}, keys and values {}, activations {} (of which {} fit on the chip)",
                    render::bytes(weights), render::bytes(kv), render::bytes(rest), render::bytes(chip));
    if (links.value >= 1024.0) text += fmt::format(", over links {}", render::bytes(links));
    return text;
}

std::string went_line(const WhereTimeWent& went) {
    std::string text =
        fmt::format("where the time went: computing {}", render::percent(share(went.computing, went.wall)));
    if (went.communicating.value > 0.0)
        text += fmt::format(", exposed communication {}", render::percent(share(went.communicating, went.wall)));
    if (went.hidden_communication.value > 0.0)
        text += fmt::format(" (communication hidden behind it {})",
                            render::percent(share(went.hidden_communication, went.wall)));
    if (went.copying.value > 0.0) text += fmt::format(", copies {}", render::percent(share(went.copying, went.wall)));
    text += fmt::format(", idle {}", render::percent(share(went.idle, went.wall)));
    if (went.idle.value > 0.0)
        text += fmt::format(" (waiting for the next launch {}, for a host busy elsewhere {})",
                            render::percent(share(went.idle_launch, went.wall)),
                            render::percent(share(went.idle_host, went.wall)));
    return text;
}

/// What stands behind the share of kernel time that is explained.
std::string_view explained_by(const Analysis& analysis) {
    if (!analysis.counted_bytes) return "explained by operators with FLOPs and bytes";
    const bool flops =
        std::any_of(analysis.account.stages.begin(), analysis.account.stages.end(), [](const AccountStage& stage) {
            return std::any_of(stage.records.begin(), stage.records.end(),
                               [](const Record& record) { return record.work.flops.value > 0.0; });
        });
    return flops ? "with FLOPs and bytes counted" : "with bytes counted; FLOPs are not on this page";
}

/// The layer that repeats, on average.
std::string layer_line(const AccountStage& stage, const Analysis& analysis) {
    double layers = 0.0;
    for (const StepTime& step : analysis.steps) {
        if (step.stage == stage.name) layers = step.layers;
    }
    Record sum;
    sum.count = 0.0;
    for (const Record& record : stage.records) {
        if (!record.name.starts_with("layers.")) continue;
        sum.count += record.count;
        sum.times.measured = measured(sum) + measured(record);
        sum.times.attainable += record.times.attainable;
    }
    if (layers < 2.0 || sum.count <= 0.0) return "";
    std::string text = fmt::format("one of {:.0f} layers on average: {} in {} operators", layers,
                                   render::time(measured(sum) / layers), counted(sum.count / layers));
    if (sum.times.attainable.value > 0.0)
        text += fmt::format(", {} attainable", render::time(sum.times.attainable / layers));
    return text;
}

std::string group_line(const AccountStage& stage) {
    std::array<Seconds, group_count> times{};
    Seconds idle{};
    Seconds sum{};
    for (const Record& record : stage.records) {
        (record.kind == Kind::idle ? idle : times[index(record.group)]) += measured(record);
        sum += measured(record);
    }
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < group_count; ++i) {
        if (times[i].value > 0.0) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return times[a] > times[b]; });
    std::string text = "by group:";
    for (const std::size_t i : order)
        text += fmt::format(" {} {},", name(static_cast<Group>(i)), render::percent(share(times[i], sum)));
    text += fmt::format(" idle {}", render::percent(share(idle, sum)));
    return text;
}

bool wanted(const AccountStage& stage, const TextOptions& options) {
    return options.stage.empty() || stage.name.starts_with(options.stage);
}

/// Faster than light: never clipped, but said.
void faster_than_limit(const AccountStage& stage, std::vector<std::string>& lines) {
    for (const Record& record : stage.records) {
        if (record.kind == Kind::unattributed || record.kind == Kind::idle) continue;
        const double ratio = share(record.times.limit, measured(record));
        if (ratio <= 1.02) continue;
        lines.push_back(
            fmt::format("{} is faster than its limit ({}): what it reads was still on the chip from the kernel or step "
                        "before, which "
                        "shapes do not tell",
                        record.name, render::percent(ratio)));
        if (lines.size() >= 3) return;
    }
}

}  // namespace

std::string counted(double value) {
    return value == static_cast<double>(static_cast<std::int64_t>(value)) ? render::grouped(value)
                                                                          : render::plain(value);
}

std::vector<AccountStage> cut(const Analysis& analysis, const std::string& by) {
    if (by == "operator" && !analysis.by_operator.empty()) return analysis.by_operator;
    if (by == "kernel" && !analysis.by_kernel.empty()) return analysis.by_kernel;
    if (by != "group") return analysis.account.stages;
    std::vector<AccountStage> result;
    for (const AccountStage& stage : analysis.account.stages) {
        AccountStage grouped = stage;
        grouped.records.clear();
        for (const Record& record : stage.records) {
            const bool apart =
                record.kind == Kind::idle || record.kind == Kind::unattributed || record.kind == Kind::copy;
            const std::string title = record.kind == Kind::unattributed       ? "unattributed"
                                      : apart && record.group == Group::other ? std::string(name(record.kind))
                                                                              : std::string(name(record.group));
            auto same = std::find_if(grouped.records.begin(), grouped.records.end(),
                                     [&](const Record& other) { return other.name == title; });
            if (same == grouped.records.end()) {
                grouped.records.push_back(record);
                grouped.records.back().name = title;
                continue;
            }
            if (record.work.flops > same->work.flops) {
                same->work.engine = record.work.engine;
                same->work.type = record.work.type;
            }
            same->count += record.count;
            same->work.flops += record.work.flops;
            for (const Level level : all_levels) same->work.at(level) += record.work.at(level);
            same->weights += record.weights;
            same->kv += record.kv;
            same->times.limit += record.times.limit;
            same->times.attainable += record.times.attainable;
            same->times.measured = measured(*same) + measured(record);
        }
        result.push_back(std::move(grouped));
    }
    return result;
}

std::string analysis_text(const Analysis& analysis, const TextOptions& options) {
    const Account& account = analysis.account;
    std::string text = options.markdown ? "# " + account.title + "\n\n" : account.title + "\n";
    text += line(
        fmt::format("{}, {} events{}", analysis.format, render::grouped(analysis.events),
                    analysis.layers > 1.0 ? fmt::format(", a layer that repeats {:.0f} times", analysis.layers) : ""),
        options);
    text +=
        line(fmt::format("device    {}{}", account.device.title.empty() ? account.device.name : account.device.title,
                         analysis.device_known && !has_measured_ceilings(account.device)
                             ? " (no measured ceilings: attainable is the datasheet's)"
                             : ""),
             options);
    if (!account.model.empty()) text += line("model     " + account.model, options);
    if (analysis.kernel_time.value > 0.0) {
        text += line(
            fmt::format("kernels   {} in all, {} of it {}", render::time(analysis.kernel_time),
                        render::percent(share(analysis.explained_time, analysis.kernel_time)), explained_by(analysis)),
            options);
    }
    for (const std::string& note : account.notes) text += line("note      " + note, options);
    text += "\n";

    const bool any_found = std::any_of(
        analysis.diagnoses.begin(), analysis.diagnoses.end(),
        [&](const Diagnosis& found) { return found.stage.empty() || found.stage.starts_with(options.stage); });
    if (any_found) {
        text += heading("what holds it back", options);
        for (const Diagnosis& diagnosis : analysis.diagnoses) {
            if (!diagnosis.stage.empty() && !diagnosis.stage.starts_with(options.stage)) continue;
            text += line(diagnosis.words, options);
            if (!diagnosis.evidence.empty()) text += line("    seen: " + diagnosis.evidence, options);
            if (!diagnosis.advice.empty()) text += line("    do:   " + diagnosis.advice, options);
        }
        text += "\n";
    }

    if (!account.stages.empty()) {
        text += heading("stages, each step on average", options);
        text += spelt(stage_table(analysis), options) + "\n";
    }
    const bool any_kernels = std::any_of(analysis.steps.begin(), analysis.steps.end(),
                                         [](const StepTime& step) { return step.kernels > 0.0; });
    if (analysis.steps.size() > 1 && any_kernels) {
        text += heading("steps", options);
        text += spelt(step_table(analysis, options.top), options);
        if (options.top > 0 && analysis.steps.size() > options.top)
            text += line(fmt::format("and {} more", analysis.steps.size() - options.top), options);
        text += "\n";
    }

    const auto stages = cut(analysis, options.by);
    for (std::size_t i = 0; i < stages.size(); ++i) {
        const AccountStage& stage = stages[i];
        if (!wanted(stage, options) || stage.records.empty()) continue;
        const bool of_steps = stage.name != "outside steps" && !analysis.steps.empty();
        text += heading(fmt::format("{}, {}{}", stage.name, render::time(stage.times.measured.value_or(Seconds{})),
                                    !is_timed(stage) ? " a step; what its operators need"
                                    : of_steps       ? " a step"
                                                     : ""),
                        options);
        Record rest;
        rest.count = 0.0;
        const bool timed = is_timed(stage);
        text += spelt(timed ? record_table(stage, analysis, options, &rest) : needs_table(stage, analysis), options);
        if (rest.count > 0.0) {
            const std::string win =
                rest.times.limit.value > 0.0 ? fmt::format(" ({} to win)", render::time(rest.times.limit)) : "";
            text += line(fmt::format("and {:.0f} more of {} together{}; --top 0 shows all", rest.count,
                                     render::time(measured(rest)), win),
                         options);
        }
        if (timed) text += line(group_line(account.stages[i]), options);
        if (const std::string average = layer_line(account.stages[i], analysis); timed && !average.empty())
            text += line(average, options);
        if (i < analysis.time_went.size()) text += line(went_line(analysis.time_went[i]), options);
        if (const std::string roles = roles_line(stage); !analysis.counted_bytes && !roles.empty())
            text += line(roles, options);
        if (!analysis.inferred.empty())
            text += line("~ FLOPs and bytes are inferred: the file holds no shapes there", options);
        std::vector<std::string> lines;
        faster_than_limit(stage, lines);
        for (const std::string& said : lines) text += line(said, options);
        text += "\n";
    }

    if (!analysis.joined.empty()) {
        text += heading("against the prediction", options);
        Table table;
        table.columns = {
            {"stage", Align::left}, {"operator", Align::left}, {"limit"}, {"expected"}, {"real"}, {"real / expected"},
            {"difference"}};
        std::map<std::string, std::size_t> shown;  // by stage
        for (const Joined& row : analysis.joined) {
            if (!options.stage.empty() && !row.stage.starts_with(options.stage)) continue;
            if (options.top > 0 && shown[row.stage]++ >= options.top) continue;
            table.rows.push_back({row.stage, row.name, render::time(row.limit),
                                  row.expected.value > 0.0 ? render::time(row.expected) : "-",
                                  row.measured.value > 0.0 ? render::time(row.measured) : "-",
                                  row.expected.value > 0.0 && row.measured.value > 0.0
                                      ? fmt::format("{:.2f}x", row.measured / row.expected)
                                      : "-",
                                  (row.measured < row.expected ? "-" : "+") +
                                      render::time(row.measured < row.expected ? row.expected - row.measured
                                                                               : row.measured - row.expected)});
        }
        text += spelt(table, options) + "\n";
    }

    if (!analysis.memory_notes.empty()) {
        text += heading("memory", options);
        for (const std::string& note : analysis.memory_notes) text += line(note, options);
        text += "\n";
    }
    if (!analysis.streams.empty()) {
        text += heading("streams: attributed + unattributed + idle = wall", options);
        text += spelt(stream_table(analysis), options);
        if (analysis.whole.wall.value > 0.0) text += line("together: " + went_line(analysis.whole), options);
        text += "\n";
    }
    if (!analysis.unattributed.empty()) {
        text += heading("not attributed", options);
        Table table;
        table.columns = {{"name", Align::left}, {"x"}, {"time"}, {"why", Align::left}};
        const std::size_t most = options.top == 0 ? analysis.unattributed.size() : options.top;
        for (std::size_t i = 0; i < std::min(most, analysis.unattributed.size()); ++i) {
            const Unexplained& entry = analysis.unattributed[i];
            table.rows.push_back(
                {shortened(entry.name, 70), counted(entry.count), render::time(entry.time), entry.why});
        }
        text += spelt(table, options);
        if (most < analysis.unattributed.size())
            text += line(fmt::format("and {} more", analysis.unattributed.size() - most), options);
        text += "\n";
    }
    while (text.ends_with("\n\n")) text.pop_back();
    return text;
}

std::string analysis_csv(const std::vector<Analysis>& analyses, const TextOptions& options) {
    Table table;
    table.columns = {{"file"},     {"stage"},   {"name"},         {"group"},       {"kind"},       {"count"},
                     {"time_s"},   {"flops"},   {"memory_bytes"}, {"cache_bytes"}, {"link_bytes"}, {"weight_bytes"},
                     {"kv_bytes"}, {"limit_s"}, {"attainable_s"}, {"bound"}};
    for (const Analysis& analysis : analyses) {
        const Roofs roofs = attainable_roofs(analysis.account.device);
        for (const AccountStage& stage : cut(analysis, options.by)) {
            if (!wanted(stage, options)) continue;
            for (const Record& record : stage.records) {
                const auto number = [](double value) { return fmt::format("{}", value); };
                const Bytes links =
                    record.work.at(Level::peer) + record.work.at(Level::host) + record.work.at(Level::network);
                table.rows.push_back(
                    {analysis.file, stage.name, record.name, std::string(name(record.group)),
                     std::string(name(record.kind)), number(record.count), number(measured(record).value),
                     number(record.work.flops.value), number(record.work.at(Level::memory).value),
                     number(record.work.at(Level::cache).value), number(links.value), number(record.weights.value),
                     number(record.kv.value), number(record.times.limit.value), number(record.times.attainable.value),
                     analysis.device_known ? bound_of(record, analysis, roofs) : ""});
            }
        }
    }
    return render::as_csv(table);
}

}  // namespace roofline::analyze
