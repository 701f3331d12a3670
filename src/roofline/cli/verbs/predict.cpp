// roofline predict: how fast can it go, how fast will it go, and what holds it back?
#include <memory>

#include <fmt/format.h>

#include "roofline/cli/output.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/cli/scenario_options.hpp"
#include "roofline/cli/traffic_options.hpp"
#include "roofline/io/load_json.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/render/load_text.hpp"
#include "roofline/render/predict_text.hpp"

namespace roofline::cli {
namespace {

struct Options {
    ScenarioOptions scenario;
    OutputOptions output;
    TrafficOptions traffic;
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
    const auto scenario = options.scenario.load();
    if (!scenario) return std::unexpected(scenario.error());
    const predict::Report report = predict::predict(*scenario);
    std::optional<serving::Traffic> traffic;
    std::optional<serving::Answer> load;
    if (!options.traffic.absent()) {
        const auto setup = options.scenario.setup();
        if (!setup) return std::unexpected(setup.error());
        auto asked = options.traffic.load(options.scenario, *setup);
        if (!asked) return std::unexpected(asked.error());
        traffic = std::move(*asked);
        if (report.fit.fits) {
            auto answered = serving::answer(*scenario, *traffic);
            if (!answered) return std::unexpected(answered.error());
            load = std::move(*answered);
        }
    }

    const auto detail = options.all ? render::Detail::all_operators : render::Detail::main_operators;
    std::string text;
    if (options.output.format == "json") {
        io::OrderedJson json = io::report_json(*scenario, report, {command, now_iso()});
        if (load) json["load"] = io::load_json(*traffic, *load);
        text = io::dump(json);
    } else if (options.output.format == "csv") {
        text = render::predict_csv(report);
    } else if (options.explain) {
        text = render::explain(*scenario, report);
    } else {
        text = options.output.format == "md" ? render::predict_markdown(*scenario, report, detail)
                                             : render::predict_text(*scenario, report, detail);
    }
    const bool for_people = options.output.format == "table" || options.output.format == "md";
    if (for_people && load) {
        const bool markdown = options.output.format == "md";
        text += markdown ? "\n## under load\n\n```text\n" : "\nunder load\n";
        text += markdown ? render::load_text(*traffic, *load) + "```\n" : indented(render::load_text(*traffic, *load));
    }
    if (for_people && !options.scenario.settings.empty()) {
        const auto baseline = options.scenario.load(/*with_settings=*/false);
        if (!baseline) return std::unexpected(baseline.error());
        text += render::changes(predict::predict(*baseline), report,
                                fmt::format("{}", fmt::join(options.scenario.settings, ", ")));
    }
    if (auto done = options.output.write(text); !done) return std::unexpected(done.error());
    const bool overloaded = load && (load->pools ? load->pools->overloaded : load->expected.overloaded);
    return report.fit.fits && !overloaded ? done : no_answer;
}

}  // namespace

void predict_verb(Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* verb =
        program.app.add_subcommand("predict", "How fast can it go, how fast will it go, and what holds it back?");
    options->scenario.add_to(*verb);
    options->traffic.add_to(*verb);
    options->output.add_to(*verb, {"table", "md", "csv", "json"});
    verb->add_flag("--explain", options->explain, "Show the arithmetic of every operator, line by line");
    verb->add_flag("--all", options->all, "Show every operator, also those of less than 0.1% of the time");
    verb->callback(
        [&program, options] { program.action = [&program, options] { return run(*options, program.command); }; });
}

}  // namespace roofline::cli
