// roofline plan: which devices, how many, and how to spread a model over them, so that requests are answered in time.
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
#include "roofline/render/chart/figure.hpp"
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

Result<int> run(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    const auto start = std::chrono::steady_clock::now();
    const auto plans = options.question.answer(this_machine());
    if (!plans) return std::unexpected(plans.error());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    say_how_long(*plans, seconds);
    std::string text;
    int code = done;
    for (const ask::Planned& planned : *plans) {
        if (planned.plan.best.empty()) code = no_answer;
        if (!text.empty()) text += "\n";
        const std::size_t rows = options.all ? 0 : rows_shown;
        const bool markdown = options.output.format == "md";
        if (options.output.format == "csv")
            text += render::plan_csv(planned.plan, planned.question);
        else if (!planned.emitted.empty())
            text += planned.emitted;
        else
            text += render::plan_text(planned.plan, planned.question,
                                      markdown ? render::PlanForm::markdown : render::PlanForm::text, rows);
    }
    if (options.output.format == "json") text = ask::plans_text(*plans, {command, now_iso()});
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    if (options.plot.asked()) {
        std::vector<std::string> pictures;
        for (const ask::Planned& planned : *plans)
            pictures.push_back(render::chart::plan_figure(planned.plan, planned.question));
        if (auto drawn = options.plot.write_svg(render::chart::stacked(pictures, "Plans"), "Plans"); !drawn)
            return std::unexpected(drawn.error());
    }
    return code;
}

}  // namespace

void plan_verb(Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* verb = program.app.add_subcommand(
        "plan", "Which devices, how many, and how to spread a model over them, so that requests are answered in time?");
    options->question.add_to(options->form);
    add_to(*verb, options->form);
    verb->add_flag("--all", options->all, "Show the whole front");
    options->output.add_to(*verb, {"table", "md", "csv", "json"});
    options->plot.add_to(*verb);
    verb->callback(
        [&program, options] { program.action = [&program, options] { return run(*options, program.command); }; });
}

}  // namespace roofline::cli
