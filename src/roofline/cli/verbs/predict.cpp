// roofline predict: how fast can it go, how fast will it go, and what holds it back?
#include <memory>

#include <fmt/format.h>

#include "roofline/cli/output.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/cli/scenario_options.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/render/predict_text.hpp"

namespace roofline::cli {
namespace {

struct Options {
    ScenarioOptions scenario;
    OutputOptions output;
    bool explain = false;
    bool all = false;
};

Result<int> run(const Options& options, const std::string& command) {
    const auto scenario = options.scenario.load();
    if (!scenario) return std::unexpected(scenario.error());
    const predict::Report report = predict::predict(*scenario);

    const auto detail = options.all ? render::Detail::all_operators : render::Detail::main_operators;
    std::string text;
    if (options.output.format == "json") {
        text = io::dump(io::report_json(*scenario, report, {command, now_iso()}));
    } else if (options.output.format == "csv") {
        text = render::predict_csv(report);
    } else if (options.explain) {
        text = render::explain(*scenario, report);
    } else {
        text = options.output.format == "md" ? render::predict_markdown(*scenario, report, detail)
                                             : render::predict_text(*scenario, report, detail);
    }
    const bool for_people = options.output.format == "table" || options.output.format == "md";
    if (for_people && !options.scenario.settings.empty()) {
        const auto baseline = options.scenario.load(/*with_settings=*/false);
        if (!baseline) return std::unexpected(baseline.error());
        text += render::changes(predict::predict(*baseline), report,
                                fmt::format("{}", fmt::join(options.scenario.settings, ", ")));
    }
    if (auto done = options.output.write(text); !done) return std::unexpected(done.error());
    return report.fit.fits ? done : no_answer;
}

}  // namespace

void predict_verb(Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* verb =
        program.app.add_subcommand("predict", "How fast can it go, how fast will it go, and what holds it back?");
    options->scenario.add_to(*verb);
    options->output.add_to(*verb, {"table", "md", "csv", "json"});
    verb->add_flag("--explain", options->explain, "Show the arithmetic of every operator, line by line");
    verb->add_flag("--all", options->all, "Show every operator, also those of less than 0.1% of the time");
    verb->callback(
        [&program, options] { program.action = [&program, options] { return run(*options, program.command); }; });
}

}  // namespace roofline::cli
