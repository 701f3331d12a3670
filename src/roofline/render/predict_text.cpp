#include "roofline/render/predict_text.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "roofline/render/numbers.hpp"
#include "roofline/render/table.hpp"

namespace roofline::render {
namespace {

using predict::Report;
using predict::Scenario;
using predict::StageKind;
using predict::StageReport;

std::string fit_line(const predict::Fit& fit) {
    const auto of_draft = [](Bytes part) {
        return part.value > 0.0 ? fmt::format(" ({} the draft's)", bytes(part)) : std::string();
    };
    std::string line = fmt::format("{} weights{} + {} KV and state{} + {} activations = {}", bytes(fit.weights),
                                   of_draft(fit.draft_weights), bytes(fit.kv), of_draft(fit.draft_kv),
                                   bytes(fit.activations), bytes(fit.total()));
    if (!fit.capacity) return line + "; the device's memory size is not known";
    line += fmt::format(" of {}", bytes(*fit.capacity));
    if (!fit.fits && fit.engine) {
        line = "DOES NOT FIT: " + line;
    } else if (!fit.fits) {
        return "DOES NOT FIT: " + line + fmt::format(", {} too much", bytes(fit.total() - *fit.capacity));
    }
    if (fit.largest_batch) line += fmt::format("; largest batch {}", grouped(*fit.largest_batch));
    if (fit.longest_context) line += fmt::format(", longest context {}", grouped(*fit.longest_context));
    return line;
}

/// F42 to F45: where the engine's memory goes.
std::string engine_line(const predict::EngineMemory& memory) {
    std::string line = fmt::format("{} at {:.4g}: {} of {}{}, less {} weights", memory.engine, memory.utilisation,
                                   bytes(memory.budget), bytes(memory.reported),
                                   memory.reported_known ? "" : " (datasheet)", bytes(memory.weights));
    if (memory.activations_inside) line += fmt::format(", {} trial run", bytes(memory.activations));
    if (memory.overhead.value > 0.0) line += fmt::format(", {} overhead", bytes(memory.overhead));
    if (memory.pool.value < 0.0)
        return line + fmt::format(": {} missing before any cache", bytes(Bytes(-memory.pool.value)));
    line += fmt::format(" = {} for caches", bytes(memory.pool));
    if (memory.cache.pools.empty()) return line;
    line += fmt::format(": {} tokens, {:.2f} sequences of {}; the batch takes {} in blocks of {}",
                        grouped(memory.pool_tokens), memory.concurrency, grouped(memory.longest),
                        bytes(memory.allocated), grouped(memory.cache.block_tokens));
    if (!memory.fits) line += fmt::format(", {} too much", bytes(memory.shortfall));
    return line;
}

std::string remedy_line(const predict::Remedy& remedy) {
    std::string line = remedy.change;
    if (remedy.moved.value > 0.0) {
        line += fmt::format(": {} over the host link in every step", bytes(remedy.moved));
        if (remedy.added) line += fmt::format(", {} more", time(*remedy.added));
    }
    return line + (remedy.approximate && remedy.moved.value == 0.0 ? " (approximate)" : "");
}

/// What follows the line of the fit: the engine's view, and what would make it fit.
std::vector<std::pair<std::string, std::string>> memory_lines(const predict::Fit& fit) {
    std::vector<std::pair<std::string, std::string>> lines;
    if (fit.engine) lines.emplace_back("engine", engine_line(*fit.engine));
    for (const predict::Remedy& remedy : fit.remedies)
        lines.emplace_back(lines.empty() || lines.back().first == "engine" ? "it fits" : "or",
                           "with " + remedy_line(remedy));
    return lines;
}

constexpr const char* hypothetical = "hypothetical: of such a device with memory enough, which this one is not";

std::string workload_line(const predict::Workload& workload) {
    std::string line = fmt::format("batch {}, prompt {}", grouped(workload.batch), grouped(workload.prompt));
    if (workload.cached > 0.0) line += fmt::format(" after a cached prefix of {}", grouped(workload.cached));
    line += fmt::format(", decode at context {}, {} tokens written", grouped(workload.decode_context()),
                        grouped(workload.generate));
    if (workload.chunk > 0.0) line += fmt::format(", chunks of {}", grouped(workload.chunk));
    return line;
}

std::string stage_title(const StageReport& stage) {
    switch (stage.kind) {
        case StageKind::prefill:
            return fmt::format("prefill of {} tokens", grouped(stage.tokens));
        case StageKind::decode:
            return fmt::format("decode step, batch {}, context {}", grouped(stage.batch), grouped(stage.context));
        case StageKind::mixed:
            return fmt::format("mixed step, {} prompt tokens beside {} decoding at context {}",
                               grouped(stage.tokens - stage.batch), grouped(stage.batch), grouped(stage.context));
    }
    return "";
}

/// Operators below this share of a stage are summed up in one line unless all are asked for.
constexpr double worth_a_line = 0.001;

double share_of(const StageReport& stage, std::size_t i) {
    const double total = stage.times.expected.value;
    return total > 0.0 ? stage.records[i].times.expected.value / total : 0.0;
}

/// Bytes over links of any kind.
Bytes over_links(const Work& work) {
    return work.at(Level::peer) + work.at(Level::network) + work.at(Level::host);
}

Table operator_table(const StageReport& stage, Detail detail) {
    Table table{{{"operator", Align::left},
                 {"x"},
                 {"FLOPs"},
                 {"memory"},
                 {"on chip"},
                 {"links"},
                 {"FLOP/B"},
                 {"bound", Align::left},
                 {"limit"},
                 {"expected"},
                 {"share"}},
                {}};
    std::size_t small = 0;
    Record rest;
    for (std::size_t i = 0; i < stage.records.size(); ++i) {
        const Record& record = stage.records[i];
        if (detail == Detail::main_operators && share_of(stage, i) < worth_a_line) {
            ++small;
            rest.work.flops += record.work.flops;
            for (const Level level : all_levels) rest.work.at(level) += record.work.at(level);
            rest.times.limit += record.times.limit;
            rest.times.expected += record.times.expected;
            continue;
        }
        table.rows.push_back({record.name, fmt::format("{:g}", record.count), flops(record.work.flops),
                              bytes(record.work.at(Level::memory)), bytes(record.work.at(Level::cache)),
                              bytes(over_links(record.work)), intensity(FlopsPerByte(stage.details[i].intensity)),
                              std::string(name(stage.details[i].bound)), time(record.times.limit),
                              time(record.times.expected), percent(share_of(stage, i))});
    }
    if (small > 0) {
        const double share =
            stage.times.expected.value > 0.0 ? rest.times.expected.value / stage.times.expected.value : 0.0;
        table.rows.push_back({fmt::format("{} smaller (--all shows them)", small), "", flops(rest.work.flops),
                              bytes(rest.work.at(Level::memory)), bytes(rest.work.at(Level::cache)),
                              bytes(over_links(rest.work)), "", "", time(rest.times.limit), time(rest.times.expected),
                              percent(share)});
    }
    const bool linked =
        std::ranges::any_of(stage.records, [](const Record& record) { return over_links(record.work).value > 0.0; });
    if (!linked) table.drop("links");
    return table;
}

/// Where eight of ten measurements should fall.
std::string range(const Times& times) {
    return span_of(time(times.expected_low), time(times.expected_high));
}

/// The answer before its reasons: one row a stage.
Table answer_table(const Report& report) {
    Table table{{{"stage", Align::left},
                 {"limit"},
                 {"attainable"},
                 {"expected"},
                 {"range"},
                 {"tokens/s"},
                 {"held back by", Align::left},
                 {"FLOP/B"},
                 {"ridge"},
                 {"of peak"},
                 {"of bandwidth"}},
                {}};
    for (const StageReport& stage : report.stages) {
        table.rows.push_back({stage_title(stage), time(stage.times.limit), time(stage.times.attainable),
                              time(stage.times.expected), range(stage.times),
                              plain(stage.tokens_per_second(stage.times.expected)),
                              std::string(name(stage.totals.bound)), intensity(FlopsPerByte(stage.totals.intensity)),
                              intensity(stage.ridge), percent(stage.use.of_peak), percent(stage.use.of_bandwidth)});
    }
    return table;
}

std::string stage_summary(const StageReport& stage) {
    const auto rate = [&](Seconds t) { return plain(stage.tokens_per_second(t)); };
    std::string text = fmt::format(
        "{}-bound: {} FLOP/B against a ridge of {} FLOP/B; {} and {} of memory traffic ({} weights, {} KV)\n",
        name(stage.totals.bound), intensity(FlopsPerByte(stage.totals.intensity)), intensity(stage.ridge),
        flops(Flops(stage.totals.flops)), bytes(Bytes(stage.totals.memory_bytes)),
        bytes(Bytes(stage.totals.weight_bytes)), bytes(Bytes(stage.totals.kv_bytes)));
    text += fmt::format("limit {} ({} tokens/s), attainable {} ({} tokens/s), expected {} ({} tokens/s)\n",
                        time(stage.times.limit), rate(stage.times.limit), time(stage.times.attainable),
                        rate(stage.times.attainable), time(stage.times.expected), rate(stage.times.expected));
    return text;
}

std::string group_line(const StageReport& stage) {
    std::vector<const predict::GroupShare*> groups;
    groups.reserve(stage.groups.size());
    for (const auto& group : stage.groups) groups.push_back(&group);
    std::stable_sort(groups.begin(), groups.end(), [](const auto* a, const auto* b) { return a->share > b->share; });
    std::string line;
    for (const auto* group : groups) {
        if (group->share < 0.0005) continue;
        line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name(group->group), percent(group->share));
    }
    return line;
}

/// Whose measurements the expected times rest on.
std::string calibration_line(const Scenario& scenario, const Report& report) {
    std::string line = fmt::format("profile {}", scenario.execution.profile.name);
    std::string sources;
    for (const predict::CalibrationShare& part : report.calibration)
        sources += fmt::format("{}{} {}", sources.empty() ? "" : "; ", part.source, percent(part.share));
    return sources.empty() ? line : line + ", calibration " + sources;
}

/// What tokens cost, and in which state: a batch that is always full, and nothing else to do.
std::string money_line(const Scenario& scenario, const predict::Money& money) {
    std::string text =
        fmt::format("at {:g} a device-hour, batch {} after batch:", *scenario.price, grouped(scenario.workload.batch));
    if (money.output) text += fmt::format(" {:.4g} per million output tokens, prompts included;", *money.output);
    if (money.decode) text += fmt::format(" {:.4g} per million in decode steps alone;", *money.decode);
    if (money.prompt) text += fmt::format(" {:.4g} per million prompt tokens;", *money.prompt);
    text.pop_back();
    return text;
}

std::string metrics_text(const Scenario& scenario, const Report& report) {
    const auto& m = report.metrics;
    std::string text = fmt::format("time to first token {} (limit {})", time(m.ttft.expected), time(m.ttft.limit));
    if (m.tpot.expected.value > 0.0) {
        text += fmt::format(", per further token {} (limit {}), {} output tokens/s\n", time(m.tpot.expected),
                            time(m.tpot.limit), plain(scenario.workload.batch / m.tpot.expected.value));
        text += fmt::format("whole request of {} + {} tokens {} (limit {})", grouped(scenario.workload.prompt),
                            grouped(scenario.workload.generate), time(m.request.expected), time(m.request.limit));
        if (m.joules_per_token) text += fmt::format(", {} a token at rated power", with_unit(*m.joules_per_token, "J"));
    }
    text += "\n";
    if (m.money) text += money_line(scenario, *m.money) + "\n";
    return text;
}

std::string deployment_line(const Scenario& scenario) {
    const model::Deployment& spread = scenario.deployment;
    std::string line = fmt::format("{}: {}", grouped(spread.devices()), describe(spread));
    if (spread.node > 0.0)
        line += fmt::format(", {} nodes of {}", grouped(std::ceil(spread.replica_devices() / spread.node)),
                            grouped(spread.node));
    if (spread.overlap > 0.0) line += fmt::format(", {} of communication hidden", percent(spread.overlap));
    if (spread.two_batches) line += ", two batches overlap";
    if (spread.host_weights > 0.0) line += fmt::format(", {} of weights in host memory", percent(spread.host_weights));
    if (spread.host_kv > 0.0) line += fmt::format(", {} of the cache in host memory", percent(spread.host_kv));
    return line;
}

std::string header(const Scenario& scenario, const Report& report) {
    std::string text = fmt::format("{} on {}\n", scenario.model_title, scenario.device.title);
    text += fmt::format("  model    {} parameters", grouped(report.parameters.total));
    if (report.parameters.active + report.parameters.embedding < 0.999 * report.parameters.total)
        text += fmt::format(", {} active", grouped(scenario.active_parameters));
    text += fmt::format("; weights {}, activations {}, KV cache {} ({} a token)\n", scenario.weight_types,
                        scenario.activation_type, scenario.kv_type, bytes(Bytes(report.kv_bytes_per_token)));
    text += fmt::format("  work     {}\n", workload_line(scenario.workload));
    if (scenario.deployment.devices() > 1.0) text += fmt::format("  devices  {}\n", deployment_line(scenario));
    text += fmt::format("  fit      {}{}\n", scenario.deployment.devices() > 1.0 ? "each: " : "", fit_line(report.fit));
    for (const auto& [label, line] : memory_lines(report.fit)) text += fmt::format("  {:<8} {}\n", label, line);
    text += fmt::format("  expected {}\n", calibration_line(scenario, report));
    if (!report.fit.fits) text += fmt::format("  times    {}\n", hypothetical);
    return text;
}

std::string filled(const std::string& text, const StageReport& stage, bool numbers,
                   const std::vector<model::Feature>& features) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '{') {
            result += text[i];
            continue;
        }
        const std::size_t end = text.find('}', i);
        const auto feature = static_cast<std::size_t>(std::stoi(text.substr(i + 1, end - i - 1)));
        result += numbers ? fmt::format("{}", stage.features[feature]) : model::describe(features[feature]);
        i = end;
    }
    return result;
}

}  // namespace

std::string span_of(const std::string& low, const std::string& high) {
    const std::size_t space = low.find(' ');
    const bool same_unit = space != std::string::npos && high.ends_with(low.substr(space));
    return (same_unit ? low.substr(0, space) : low) + "-" + high;
}

std::vector<std::string> question_lines(const Scenario& scenario, const predict::Fit& fit) {
    std::vector<std::string> lines = {fmt::format("types    weights {}, activations {}, KV cache {}",
                                                  scenario.weight_types, scenario.activation_type, scenario.kv_type),
                                      "work     " + workload_line(scenario.workload)};
    const bool several = scenario.deployment.devices() > 1.0;
    if (several) lines.push_back("devices  " + deployment_line(scenario));
    lines.push_back(std::string("fit      ") + (several ? "each: " : "") + fit_line(fit));
    if (fit.engine) lines.push_back("engine   " + engine_line(*fit.engine));
    if (!fit.fits) lines.push_back(std::string("times    ") + hypothetical);
    return lines;
}

std::string predict_text(const Scenario& scenario, const Report& report, Detail detail) {
    std::string text = header(scenario, report);
    text += "\n" + as_text(answer_table(report), "  ");
    for (const StageReport& stage : report.stages) {
        text += fmt::format("\n{}\n", stage_title(stage));
        text += as_text(operator_table(stage, detail), "  ");
        text += "  by group: " + group_line(stage) + "\n";
        std::string summary = stage_summary(stage);
        text += "  " + summary.insert(summary.find('\n') + 1, "  ");
    }
    text += report.fit.fits ? "\nrequest\n" : "\nrequest, hypothetical: it does not fit\n";
    std::string metrics = metrics_text(scenario, report);
    std::size_t at = 0;
    while (at < metrics.size()) {
        const std::size_t end = metrics.find('\n', at);
        text += "  " + metrics.substr(at, end - at + 1);
        at = end + 1;
    }
    if (!report.notes.empty()) text += "\nnotes\n";
    for (const std::string& note : report.notes) text += "  - " + note + "\n";
    return text;
}

std::string predict_markdown(const Scenario& scenario, const Report& report, Detail detail) {
    std::string text = fmt::format("# {} on {}\n\n- {}\n- {}\n", scenario.model_title, scenario.device.title,
                                   workload_line(scenario.workload), fit_line(report.fit));
    for (const auto& [label, line] : memory_lines(report.fit)) text += fmt::format("- {}: {}\n", label, line);
    text += fmt::format("- expected: {}\n", calibration_line(scenario, report));
    if (!report.fit.fits) text += fmt::format("- times: {}\n", hypothetical);
    text += "\n" + as_markdown(answer_table(report));
    for (const StageReport& stage : report.stages) {
        text += fmt::format("\n## {}\n\n", stage_title(stage));
        text += as_markdown(operator_table(stage, detail));
        text += "\n" + stage_summary(stage);
    }
    text += fmt::format("\n## request{}\n\n{}", report.fit.fits ? "" : ", hypothetical: it does not fit",
                        metrics_text(scenario, report));
    if (!report.notes.empty()) text += "\n## notes\n\n";
    for (const std::string& note : report.notes) text += "- " + note + "\n";
    return text;
}

std::string predict_csv(const Report& report) {
    Table table{{{"stage"},
                 {"name"},
                 {"kind"},
                 {"group"},
                 {"count"},
                 {"engine"},
                 {"type"},
                 {"flops"},
                 {"memory_bytes"},
                 {"cache_bytes"},
                 {"intensity"},
                 {"bound"},
                 {"limit_s"},
                 {"attainable_s"},
                 {"expected_s"},
                 {"expected_low_s"},
                 {"expected_high_s"}},
                {}};
    for (const StageReport& stage : report.stages) {
        for (std::size_t i = 0; i < stage.records.size(); ++i) {
            const Record& record = stage.records[i];
            const auto number = [](double value) { return fmt::format("{}", value); };
            table.rows.push_back({std::string(name(stage.kind)), record.name, std::string(name(record.kind)),
                                  std::string(name(record.group)), number(record.count),
                                  std::string(name(record.work.engine)), std::string(name(record.work.type)),
                                  number(record.work.flops.value), number(record.work.at(Level::memory).value),
                                  number(record.work.at(Level::cache).value), number(stage.details[i].intensity),
                                  std::string(name(stage.details[i].bound)), number(record.times.limit.value),
                                  number(record.times.attainable.value), number(record.times.expected.value),
                                  number(record.times.expected_low.value), number(record.times.expected_high.value)});
        }
    }
    return as_csv(table);
}

namespace {

std::string expected_line(const StageReport& stage, std::size_t i) {
    const Times& times = stage.records[i].times;
    const predict::Choice& choice = stage.choices[i];
    const double count = stage.records[i].count;
    std::string constants;
    for (std::size_t c = 0; c < choice.kernel_class->constants.size(); ++c) {
        const predict::Constant& constant = choice.kernel_class->constants[c];
        constants +=
            fmt::format("{}{} {:.3g}{}{}", c > 0 ? ", " : "", constant.name, choice.constants[c],
                        constant.unit == "fraction" ? "" : " ", constant.unit == "fraction" ? "" : constant.unit);
    }
    return fmt::format("  expected   {} ({}){}   [{}]\n             {} of {}: {}\n",
                       time(times.expected * (1.0 / count)),
                       range({.limit = {},
                              .attainable = {},
                              .expected = {},
                              .expected_low = times.expected_low * (1.0 / count),
                              .expected_high = times.expected_high * (1.0 / count),
                              .measured = {}}),
                       count > 1.0 ? fmt::format(" each, {} for all {:g}", time(times.expected), count) : "",
                       choice.kernel_class->formula, choice.kernel_class->name, choice.source, constants);
}

}  // namespace

std::string explain(const Scenario& scenario, const Report& report) {
    const Roofs roofs = limit_roofs(scenario.device);
    const auto& features = scenario.lowered.features;
    std::string text = header(scenario, report);
    text += "\nF- and E-numbers are formulas of docs/method.md.\n";
    for (const StageReport& stage : report.stages) {
        text += fmt::format("\n=== {} ===\n", stage_title(stage));
        for (std::size_t i = 0; i < stage.records.size(); ++i) {
            const Record& record = stage.records[i];
            const predict::OperatorTime& detail = stage.details[i];
            const model::Operator& op = scenario.lowered.operators[stage.operators[i]];
            const double count = record.count;
            text +=
                fmt::format("\n{}{}\n", record.name, count > 1.0 ? fmt::format("  (one of {:g} layers)", count) : "");
            text += fmt::format("  shapes     {}\n", filled(op.shape, stage, true, features));
            if (detail.flops > 0.0) {
                text += fmt::format("  FLOPs      {} = {}   [{}]\n", filled(op.flops_text, stage, false, features),
                                    flops(Flops(detail.flops / count)), op.formula);
                text += fmt::format("             {} = {}\n", filled(op.flops_text, stage, true, features),
                                    grouped(detail.flops / count));
            } else {
                text += fmt::format("  FLOPs      none   [{}]\n", op.formula);
            }
            if (detail.weight_bytes > 0.0) {
                const bool routed = op.formula == "F11";
                text += fmt::format("  weights    {}{} B   [{}]\n",
                                    routed ? filled(op.bytes_text, stage, true, features) + " = " : "",
                                    grouped(detail.weight_bytes / count), routed ? "F4, F22" : "F4");
            }
            if (detail.kv_bytes > 0.0) {
                text += fmt::format("  cache      {}{} B\n",
                                    op.bytes_text.empty() ? "" : filled(op.bytes_text, stage, true, features) + " = ",
                                    grouped(detail.kv_bytes / count));
            }
            const double activations =
                (detail.memory_bytes - detail.weight_bytes - detail.kv_bytes + detail.cache_bytes) / count;
            if (activations > 0.5) {
                text += fmt::format("  activation {} B, {}   [F34]\n", grouped(activations),
                                    detail.cache_bytes > 0.0 ? "stay on the chip" : "through memory");
            }
            const double flop_cost = roofs.flop_cost(record.work.engine, record.work.type);
            const double byte_cost = roofs.seconds_per_byte[index(Level::memory)];
            if (detail.flops > 0.0 && detail.memory_bytes > 0.0) {
                text +=
                    fmt::format("  intensity  {} / {} = {} FLOP/B   [F2]\n", flops(Flops(detail.flops / count)),
                                bytes(Bytes(detail.memory_bytes / count)), intensity(FlopsPerByte(detail.intensity)));
            }
            if (flop_cost > 0.0 && detail.flops > 0.0) {
                text += fmt::format("  ridge      {} {} at {} / {} = {} FLOP/B   [F3]\n", name(record.work.engine),
                                    name(record.work.type), with_unit(1.0 / flop_cost, peak_unit(record.work.type)),
                                    with_unit(1.0 / byte_cost, "B/s"), intensity(FlopsPerByte(byte_cost / flop_cost)));
            }
            std::string sides;
            if (detail.flops > 0.0 && flop_cost > 0.0)
                sides += fmt::format("compute {}", time(Seconds(detail.flops / count * flop_cost)));
            if (detail.memory_bytes > 0.0) {
                sides += fmt::format("{}memory {}", sides.empty() ? "" : ", ",
                                     time(Seconds(detail.memory_bytes / count * byte_cost)));
            }
            if (sides.empty()) sides = "nothing with a published ceiling: 0 s";
            text += fmt::format(
                "  time       {}: {}-bound, limit {}{}   [F1]\n", sides, name(detail.bound),
                time(Seconds(detail.limit / count)),
                count > 1.0 ? fmt::format(" each, {} for all {:g}", time(Seconds(detail.limit)), count) : "");
            text += expected_line(stage, i);
        }
        text += fmt::format(
            "\nstage\n  compute and memory summed over all operators, as if everything overlapped: {}   [F18]\n",
            time(stage.times.limit));
        text += fmt::format("  operators one after another under measured ceilings where known: {}   [F19]\n  {}",
                            time(stage.times.attainable), stage_summary(stage));
    }
    return text;
}

// A change of the expected time below this is less than what is known about it.
constexpr double worth_saying = 0.01;

std::string changes(const Report& before, const Report& after, const std::string& what) {
    std::string text = fmt::format("\nwhat {} changes\n", what);
    for (std::size_t s = 0; s < after.stages.size() && s < before.stages.size(); ++s) {
        const StageReport& old_stage = before.stages[s];
        const StageReport& new_stage = after.stages[s];
        const double ratio = new_stage.times.expected.value > 0.0
                                 ? old_stage.times.expected.value / new_stage.times.expected.value
                                 : 1.0;
        const bool same = std::fabs(ratio - 1.0) < worth_saying;
        text += fmt::format("  {:8} {} -> {} ", name(new_stage.kind), time(old_stage.times.expected),
                            time(new_stage.times.expected));
        if (same) {
            text += fmt::format("did not change: {} holds it back\n", name(old_stage.totals.bound));
        } else {
            text += fmt::format("({}x {}), {}-bound{}\n", plain(ratio > 1.0 ? ratio : 1.0 / ratio),
                                ratio > 1.0 ? "faster" : "slower", name(new_stage.totals.bound),
                                new_stage.totals.bound == old_stage.totals.bound
                                    ? ""
                                    : fmt::format(" (was {}-bound)", name(old_stage.totals.bound)));
        }
        std::vector<std::string> unchanged;
        double share = 0.0;
        for (std::size_t i = 0; i < new_stage.records.size() && i < old_stage.records.size(); ++i) {
            const double was = old_stage.records[i].times.expected.value;
            if (was > 0.0 && std::fabs(new_stage.records[i].times.expected.value / was - 1.0) < worth_saying) {
                unchanged.push_back(new_stage.records[i].name);
                share += was / old_stage.times.expected.value;
            }
        }
        if (!same && !unchanged.empty()) {
            text += fmt::format("           unchanged: {} of {} operators, {} of the old time", unchanged.size(),
                                new_stage.records.size(), percent(share));
            text += unchanged.size() <= 4 ? fmt::format(" ({})\n", fmt::join(unchanged, ", ")) : "\n";
        }
    }
    return text;
}

}  // namespace roofline::render
