#include "roofline/cli/bench_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/render/numbers.hpp"
#include "roofline/render/table.hpp"

namespace roofline::cli {
namespace {

using bench::Outcome;
using bench::StageRun;
using bench::StepOutcome;
using render::Align;

std::string spelt(const render::Table& table, bool markdown) {
    return markdown ? render::as_markdown(table) + "\n" : render::as_text(table, "  ");
}

std::string stage_title(const StageRun& stage) {
    const AccountStage& part = stage.stage;
    std::string text = part.name == "decode" ? fmt::format("decode step, batch {}, context {}",
                                                           render::grouped(part.batch), render::grouped(part.context))
                                             : fmt::format("prefill of {} tokens, batch {}",
                                                           render::grouped(part.tokens), render::grouped(part.batch));
    if (!stage.dtype.empty()) text += ", " + stage.dtype;
    return text;
}

std::string share(double part, double whole) {
    return whole > 0.0 ? render::percent(part / whole) : "-";
}

render::Table steps_table(const bench::Run& run) {
    render::Table table{{{"whole step", Align::left},
                         {"by", Align::left},
                         {"measured"},
                         {"spread"},
                         {"tokens/s"},
                         {"attention"},
                         {"FFN"},
                         {"other"},
                         {"bound", Align::left},
                         {"limit"},
                         {"attainable"},
                         {"expected"},
                         {"of limit"}},
                        {}};
    // Some layers have no FFN.
    const auto part = [](double seconds) { return seconds > 0.0 ? render::time(Seconds(seconds)) : "-"; };
    for (const StageRun& stage : run.stages) {
        const Times& times = stage.stage.times;
        for (const StepOutcome& step : stage.steps) {
            if (!step.problem.empty()) continue;
            const double measured = step.timing.median;
            table.rows.push_back(
                {stage_title(stage), step.launch.empty() ? step.backend : step.backend + ", " + step.launch,
                 render::time(Seconds(measured)),
                 render::time(Seconds(step.timing.low)) + " to " + render::time(Seconds(step.timing.high)),
                 render::plain(stage.stage.produced / measured), part(step.attention), part(step.ffn), part(step.other),
                 std::string(name(stage.bound)), render::time(times.limit), render::time(times.attainable),
                 render::time(times.expected), share(times.limit.value, measured)});
        }
    }
    const auto apart = [](const StageRun& stage) {
        return std::any_of(stage.steps.begin(), stage.steps.end(),
                           [](const StepOutcome& step) { return step.attention + step.ffn > 0.0; });
    };
    if (!std::any_of(run.stages.begin(), run.stages.end(), apart)) {
        for (const char* column : {"attention", "FFN", "other"}) table.drop(column);
    }
    if (!run.roofs_known) {
        for (const char* column : {"bound", "limit", "attainable", "expected", "of limit"}) table.drop(column);
    }
    return table;
}

render::Table operators_table(const bench::Run& run, const StageRun& stage) {
    std::vector<std::string> shown;  // backends that ran anything here
    for (const std::string& backend : run.backends) {
        const bool ran = std::any_of(stage.outcomes.begin(), stage.outcomes.end(), [&](const auto& outcomes) {
            return std::any_of(outcomes.begin(), outcomes.end(), [&](const Outcome& outcome) {
                return outcome.backend == backend && outcome.measured();
            });
        });
        if (ran) shown.push_back(backend);
    }
    render::Table table{{{"operator", Align::left}, {"x"}, {"shape", Align::left}}, {}};
    for (const std::string& backend : shown) table.columns.push_back({backend});
    table.columns.push_back({"GB/s"});
    const auto counts_integers = [](const Record& record) { return render::peak_unit(record.work.type) == "OP/s"; };
    const bool mixed = std::any_of(stage.stage.records.begin(), stage.stage.records.end(), counts_integers);
    table.columns.push_back({mixed ? "rate" : "GFLOP/s"});  // norms and residuals are never in integers
    if (shown.size() > 1) table.columns.push_back({"fastest", Align::left});
    if (run.roofs_known) {
        table.columns.push_back({"bound", Align::left});
        for (const char* column : {"limit", "attainable", "of limit", "of roof"}) table.columns.push_back({column});
    }
    for (std::size_t i = 0; i < stage.planned.size(); ++i) {
        const Record& record = stage.stage.records[i];
        const Outcome* best = bench::winner(stage.outcomes[i]);
        if (!stage.planned[i].task || best == nullptr) continue;
        std::vector<std::string> row = {record.name, render::grouped(record.count), describe(*stage.planned[i].task)};
        for (const std::string& backend : shown) {
            const auto found = std::find_if(stage.outcomes[i].begin(), stage.outcomes[i].end(),
                                            [&](const Outcome& outcome) { return outcome.backend == backend; });
            row.push_back(found != stage.outcomes[i].end() && found->measured()
                              ? render::time(Seconds(found->timing.median))
                              : "-");
        }
        const double seconds = best->timing.median;
        const double limit = record.times.limit.value / record.count;
        const double attainable = record.times.attainable.value / record.count;
        const double bytes = best->bytes;
        row.push_back(bytes > 0.0 ? fmt::format("{:.1f}", bytes / seconds / 1e9) : "-");
        row.push_back(best->flops > 0.0 ? fmt::format("{:.1f}", best->flops / seconds / 1e9) : "-");
        if (mixed && best->flops > 0.0) row.back() += fmt::format(" G{}", render::peak_unit(record.work.type));
        if (shown.size() > 1) row.push_back(best->backend);
        if (run.roofs_known) {
            const Verdict verdict = judge(record.work, limit_roofs(run.account.device));
            row.emplace_back(name(verdict.bound));
            row.push_back(render::time(Seconds(limit)));
            row.push_back(render::time(Seconds(attainable)));
            row.push_back(share(limit, seconds));
            row.push_back(share(attainable, seconds));
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

/// Each reason once, with those it holds for, and in which of several number types where not in all of them.
class Reasons {
  public:
    explicit Reasons(const bench::Run& run) {
        for (const StageRun& stage : run.stages) add_to(types_, stage.dtype);
    }

    void add(const std::string& reason, const std::string& whom, const std::string& type) {
        auto& names = entry(reasons_, reason);
        add_to(entry(names, whom), type);
    }

    std::vector<std::string> lines() const {
        std::vector<std::string> lines;
        for (const auto& [reason, names] : reasons_) {
            std::vector<std::string> whom;
            for (const auto& [name, types] : names) {
                const bool all = types.size() == types_.size();
                whom.push_back(all ? name : fmt::format("{} in {}", name, fmt::join(types, " and ")));
            }
            lines.push_back(fmt::format("not run: {} ({})", fmt::join(whom, ", "), reason));
        }
        return lines;
    }

  private:
    using Types = std::vector<std::string>;
    template <class Value>
    using Named = std::vector<std::pair<std::string, Value>>;  // in the order they came

    static void add_to(Types& types, const std::string& type) {
        if (std::ranges::find(types, type) == types.end()) types.push_back(type);
    }
    template <class Value>
    static Value& entry(Named<Value>& all, const std::string& name) {
        const auto known = std::ranges::find(all, name, &std::pair<std::string, Value>::first);
        return known != all.end() ? known->second : all.emplace_back(name, Value{}).second;
    }

    Types types_;
    Named<Named<Types>> reasons_;
};

std::vector<std::string> what_was_not_run(const bench::Run& run) {
    Reasons reasons(run);
    for (const StageRun& stage : run.stages) {
        if (stage.outcomes.empty()) continue;
        const auto note = [&](const std::string& reason, const std::string& whom) {
            reasons.add(reason, whom, stage.dtype);
        };
        for (std::size_t i = 0; i < stage.planned.size(); ++i) {
            const std::string& name = stage.stage.records[i].name;
            if (!stage.planned[i].task) {
                note(stage.planned[i].reason, name);
                continue;
            }
            const bool nobody = bench::winner(stage.outcomes[i]) == nullptr;
            const bool all_declined = std::all_of(stage.outcomes[i].begin(), stage.outcomes[i].end(),
                                                  [](const Outcome& outcome) { return outcome.declined; });
            for (const Outcome& outcome : stage.outcomes[i]) {
                const bool broken = outcome.problem.starts_with("wrong") || outcome.problem.starts_with("failed");
                const bool matters = broken || (nobody && outcome.declined == all_declined);
                if (!outcome.measured() && matters) note(outcome.backend + ": " + outcome.problem, name);
            }
        }
        if (!stage.no_step.empty()) note(stage.no_step, "whole step");
        for (const StepOutcome& step : stage.steps) {
            if (!step.problem.empty()) note(step.backend + ": " + step.problem, "whole step");
        }
    }
    return reasons.lines();
}

std::string heading(const std::string& text, bool markdown) {
    return markdown ? "\n## " + text + "\n\n" : "\n" + text + "\n";
}

}  // namespace

std::string bench_text(const bench::Run& run, bool markdown) {
    std::string text = markdown ? "# " + run.account.title + "\n\n" : run.account.title + "\n";
    for (std::size_t i = 0; i < run.backends.size(); ++i)
        text += fmt::format("{}{:10} {}\n", markdown ? "- " : "  ", run.backends[i], run.descriptions[i]);
    if (run.threads > 0) text += fmt::format("{}{:10} {}\n", markdown ? "- " : "  ", "threads", run.threads);
    const bool any_step = std::any_of(run.stages.begin(), run.stages.end(),
                                      [](const StageRun& stage) { return bench::winner(stage.steps) != nullptr; });
    if (any_step) text += heading("whole steps", markdown) + spelt(steps_table(run), markdown);
    for (const StageRun& stage : run.stages) {
        const render::Table table = operators_table(run, stage);
        if (table.rows.empty()) continue;
        text += heading("operators of a " + stage_title(stage), markdown) + spelt(table, markdown);
    }
    std::vector<std::string> notes = run.account.notes;
    for (std::string& line : what_was_not_run(run)) notes.push_back(std::move(line));
    if (!notes.empty()) {
        text += heading("notes", markdown);
        for (const std::string& line : notes) text += (markdown ? "- " : "  - ") + line + "\n";
    }
    return text;
}

}  // namespace roofline::cli
