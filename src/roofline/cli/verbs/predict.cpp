// roofline predict: how fast can it go, how fast will it go, and what holds it back?
#include <memory>

#include <fmt/format.h>

#include "roofline/ask/predict_options.hpp"
#include "roofline/cli/form.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/predict/account.hpp"
#include "roofline/render/load_text.hpp"
#include "roofline/render/page/page.hpp"
#include "roofline/render/predict_text.hpp"

namespace roofline::cli {
namespace {

struct Options {
    ask::PredictOptions question;
    ask::Form form;
    OutputOptions output;
    PlotOptions plot;
    bool explain = false;
    bool all = false;
};

std::string indented(const std::string& lines) {
    std::string text;
    bool fresh = true;
    for (const char c : lines) {
        if (fresh && c != '\n') text += "  ";
        fresh = c == '\n';
        text += c;
    }
    return text;
}

Result<int> run(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    const auto predicted = options.question.answer(this_machine());
    if (!predicted) return std::unexpected(predicted.error());
    const predict::Scenario& scenario = predicted->scenario;
    const predict::Report& report = predicted->report;

    const auto detail = options.all ? render::Detail::all_operators : render::Detail::main_operators;
    std::string text;
    if (options.output.format == "json") {
        text = ask::predicted_text(*predicted, {command, now_iso()});
    } else if (options.output.format == "html") {
        text = render::account_page(std::vector{predict::account_of(scenario, report)}, command);
    } else if (options.output.format == "csv") {
        text = render::predict_csv(report);
    } else if (options.explain) {
        text = render::explain(scenario, report);
    } else {
        text = options.output.format == "md" ? render::predict_markdown(scenario, report, detail)
                                             : render::predict_text(scenario, report, detail);
    }
    const bool for_people = options.output.format == "table" || options.output.format == "md";
    if (for_people && predicted->load) {
        const bool markdown = options.output.format == "md";
        const std::string load = render::load_text(predicted->load->traffic, predicted->load->answer);
        text += markdown ? "\n## under load\n\n```text\n" : "\nunder load\n";
        text += markdown ? load + "```\n" : indented(load);
    }
    const ask::ScenarioOptions& asked = options.question.scenario;
    if (for_people && !asked.settings.empty()) {
        const auto baseline = asked.load(this_machine(), /*with_settings=*/false);
        if (!baseline) return std::unexpected(baseline.error());
        text +=
            render::changes(predict::predict(*baseline), report, fmt::format("{}", fmt::join(asked.settings, ", ")));
    }
    if (auto done = options.output.write(text); !done) return std::unexpected(done.error());
    if (options.plot.asked()) {
        if (auto drawn = options.plot.write(std::vector{predict::account_of(scenario, report)}); !drawn)
            return std::unexpected(drawn.error());
    }
    return predicted->has_answer() ? done : no_answer;
}

}  // namespace

void predict_verb(Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* verb =
        program.app.add_subcommand("predict", "How fast can it go, how fast will it go, and what holds it back?");
    options->question.add_to(options->form);
    add_to(*verb, options->form);
    options->output.add_to(*verb, {"table", "md", "csv", "json", "html"});
    options->plot.add_to(*verb);
    verb->add_flag("--explain", options->explain, "Show the arithmetic of every operator, line by line");
    verb->add_flag("--all", options->all, "Show every operator, also those of less than 0.1% of the time");
    verb->callback(
        [&program, options] { program.action = [&program, options] { return run(*options, program.command); }; });
}

}  // namespace roofline::cli
