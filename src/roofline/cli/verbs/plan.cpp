// roofline plan: which devices, how many, and how to spread a model over them, so that requests are answered in time.
#include <algorithm>
#include <chrono>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/ask/plan_options.hpp"
#include "roofline/cli/form.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/io/plan_json.hpp"
#include "roofline/render/chart/decisions.hpp"
#include "roofline/render/plan_text.hpp"

namespace roofline::cli {
namespace {

constexpr std::size_t rows_shown = 16;

struct Options {
    ask::PlanOptions question;
    ask::Form form;
    bool all = false;
    OutputOptions output;
    PlotOptions plot;
};

/// Everything that does not stand on the first page is on stderr, and only where somebody reads it.
void say_how_long(const std::vector<ask::Planned>& plans, double seconds) {
    if (::isatty(STDERR_FILENO) == 0) return;
    double candidates = 0.0;
    for (const ask::Planned& planned : plans) candidates += planned.plan.counts.candidates;
    fmt::print(stderr, "{:.0f} candidates in {:.2f} s\n", candidates, seconds);
}

/// With the commands that start the engines, where they were asked for.
std::string for_page(const std::vector<ask::Planned>& plans) {
    std::string text;
    for (const ask::Planned& planned : plans) {
        text += (text.empty() ? "" : "\n") +
                render::plan_text(planned.plan, planned.question, render::PlanForm::markdown, 0);
        if (!planned.emitted.empty()) text += "\n## how to start it\n\n```text\n" + planned.emitted + "```\n";
    }
    return text;
}

std::string worded(const std::vector<ask::Planned>& plans, const std::string& format, std::size_t rows) {
    std::string text;
    for (const ask::Planned& planned : plans) {
        if (!text.empty()) text += "\n";
        if (format == "csv")
            text += render::plan_csv(planned.plan, planned.question);
        else if (!planned.emitted.empty())
            text += planned.emitted;
        else
            text += render::plan_text(planned.plan, planned.question,
                                      format == "md" ? render::PlanForm::markdown : render::PlanForm::text, rows);
    }
    return text;
}

Drawing drawing_of(const std::vector<ask::Planned>& plans) {
    Drawing drawing{.title = plans.size() > 1 ? "Plans" : ""};
    for (const ask::Planned& planned : plans)
        drawing.charts.push_back(render::chart::plan_figure(planned.plan, planned.question));
    return drawing;
}

Result<int> run(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    const auto start = std::chrono::steady_clock::now();
    const auto plans = options.question.answer(this_machine());
    if (!plans) return std::unexpected(plans.error());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    say_how_long(*plans, seconds);
    const bool none = std::any_of(plans->begin(), plans->end(),
                                  [](const ask::Planned& planned) { return planned.plan.best.empty(); });
    const Shown shown{command, [&] { return drawing_of(*plans); }, [&] { return for_page(*plans); }};
    const std::string& format = options.output.format;
    const std::string text = format == "json"   ? ask::plans_text(*plans, {command, now_iso()})
                             : format == "html" ? shown.page()
                                                : worded(*plans, format, options.all ? 0 : rows_shown);
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    return none ? no_answer : done;
}

}  // namespace

void plan_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb = program.verb(
        "plan", "Which devices, how many, and how to spread a model over them, so that requests are answered in time?");
    options->question.has_time = true;
    options->question.add_to(options->form);
    add_to(verb, options->form);
    verb.add("--all", options->all, "Show the whole front");
    options->output.add_to(verb, {"table", "md", "csv", "json", "html"});
    options->plot.add_to(verb);
    verb.runs([&program, options] { return run(*options, program.command); });
}

}  // namespace roofline::cli
