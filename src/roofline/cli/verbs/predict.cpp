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

/// What --set changed, in words; empty where nothing was set.
Result<std::string> changed(const ask::Predicted& predicted, const ask::ScenarioOptions& asked) {
    if (asked.settings.empty()) return "";
    const auto baseline = asked.load(this_machine(), /*with_settings=*/false);
    if (!baseline) return std::unexpected(baseline.error());
    return render::changes(predict::predict(*baseline), predicted.report,
                           fmt::format("{}", fmt::join(asked.settings, ", ")));
}

std::string in_text(const ask::Predicted& predicted, const Options& options, const std::string& changes) {
    const auto detail = options.all ? render::Detail::all_operators : render::Detail::main_operators;
    std::string text = options.explain ? render::explain(predicted.scenario, predicted.report)
                                       : render::predict_text(predicted.scenario, predicted.report, detail);
    if (predicted.load)
        text += "\nunder load\n" + indented(render::load_text(predicted.load->traffic, predicted.load->answer));
    return text + changes;
}

std::string in_markdown(const ask::Predicted& predicted, bool all, bool explain, const std::string& changes) {
    const auto detail = all ? render::Detail::all_operators : render::Detail::main_operators;
    const auto as_it_is = [](std::string_view title, std::string_view lines) {
        return fmt::format("\n## {}\n\n```text\n{}```\n", title, lines);
    };
    std::string text = render::predict_markdown(predicted.scenario, predicted.report, detail);
    if (predicted.load)
        text += as_it_is("under load", render::load_text(predicted.load->traffic, predicted.load->answer));
    if (!changes.empty()) {
        const std::size_t end = changes.find('\n', 1);  // of its heading, which follows an empty line
        text += as_it_is(changes.substr(1, end - 1), changes.substr(end + 1));
    }
    if (explain) text += as_it_is("the arithmetic", render::explain(predicted.scenario, predicted.report));
    return text;
}

Result<int> run(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    const auto predicted = options.question.answer(this_machine());
    if (!predicted) return std::unexpected(predicted.error());
    const std::string& format = options.output.format;
    const bool for_programs = (format == "json" || format == "csv") && !options.plot.asked();
    const auto changes = for_programs ? Result<std::string>("") : changed(*predicted, options.question.scenario);
    if (!changes) return std::unexpected(changes.error());
    const Shown shown{
        command, [&] { return Drawing{.accounts = {predict::account_of(predicted->scenario, predicted->report)}}; },
        [&] { return in_markdown(*predicted, true, options.explain, *changes); }};
    const std::string text = format == "json"   ? ask::predicted_text(*predicted, {command, now_iso()})
                             : format == "html" ? shown.page()
                             : format == "csv"  ? render::predict_csv(predicted->report)
                             : format == "md"   ? in_markdown(*predicted, options.all, options.explain, *changes)
                                                : in_text(*predicted, options, *changes);
    if (auto done = options.output.write(text); !done) return std::unexpected(done.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    return predicted->has_answer() ? done : no_answer;
}

}  // namespace

void predict_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb = program.verb("predict", "How fast can it go, how fast will it go, and what holds it back?");
    options->question.has_time = true;
    options->question.add_to(options->form);
    add_to(verb, options->form);
    options->output.add_to(verb, {"table", "md", "csv", "json", "html"});
    options->plot.add_to(verb);
    verb.add("--explain", options->explain, "Show the arithmetic of every operator, line by line");
    verb.add("--all", options->all, "Show every operator, also those of less than 0.1% of the time");
    verb.runs([&program, options] { return run(*options, program.command); });
}

}  // namespace roofline::cli
