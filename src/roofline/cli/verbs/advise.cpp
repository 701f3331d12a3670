// roofline advise: what should I change, and what would each change really buy?
#include "roofline/decide/advise.hpp"

#include <memory>

#include <fmt/format.h>

#include "roofline/cli/execution_options.hpp"
#include "roofline/cli/load.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/cli/scenario_options.hpp"
#include "roofline/decide/spread.hpp"
#include "roofline/io/advice_json.hpp"
#include "roofline/io/tensors.hpp"
#include "roofline/render/advise_text.hpp"

namespace roofline::cli {
namespace {

constexpr double most_devices = 100'000.0;
constexpr double most_drafted = 64.0;

// What people have or can rent, when nothing else is named.
constexpr const char* usual_devices = "h100-sxm,h200-sxm,b200-sxm,mi300x,mi355x,l40s,rtx-4090,rtx-5090";

struct Options {
    ScenarioOptions scenario;
    OutputOptions output;
    std::string goal = "tpot";
    std::vector<std::string> prices;
    std::string other_devices = usual_devices;
    std::string acceptance = "0.7";
    std::string draft_tokens = "3";
    std::string draft_cost = "0.05";
    std::string cached_share = "0.5";
};

Result<double> parse_fraction(const char* option, const std::string& text) {
    const auto value = parse_positive(option, text);
    if (!value) return value;
    if (*value >= 1.0)
        return fail(fmt::format("{}: found \"{}\", expected a share above 0 and below 1", option, io::printable(text)));
    return value;
}

decide::Goal goal_named(const std::string& text) {
    for (const decide::Goal goal : {decide::Goal::ttft, decide::Goal::throughput, decide::Goal::cost}) {
        if (text == decide::name(goal)) return goal;
    }
    return decide::Goal::tpot;
}

/// "2.50" for the device asked about, "b200-sxm=4.99" for another.
Result<void> read_prices(const Options& options, const Device& device, decide::Surroundings& around) {
    for (const std::string& text : options.prices) {
        const std::size_t equals = text.find('=');
        const bool named = equals != std::string::npos;
        std::string name = device.name;
        if (named) {
            const auto other = load_device(text.substr(0, equals));
            if (!other) return fail(fmt::format("--price {}: {}", io::printable(text), other.error().text));
            name = other->name;
        }
        const auto price = parse_positive("--price", named ? text.substr(equals + 1) : text);
        if (!price) return std::unexpected(price.error());
        around.prices[name] = *price;
    }
    return {};
}

Result<void> read_devices(const Options& options, const Device& device, decide::Surroundings& around) {
    if (options.other_devices == "none") return {};
    std::string_view rest = options.other_devices;
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        const std::string name(rest.substr(0, comma));
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
        auto other = load_device(name);
        if (!other) return fail(fmt::format("--or-device: {}", other.error().text));
        if (other->name == device.name) continue;
        auto execution = load_execution(options.scenario.profile, options.scenario.calibration, *other);
        if (!execution) return std::unexpected(execution.error());
        around.devices.push_back({std::move(*other), std::move(*execution)});
    }
    return {};
}

Result<void> read_assumptions(const Options& options, decide::Surroundings& around) {
    decide::Speculation& speculation = around.speculation;
    for (const auto& [option, text, target] :
         {std::tuple{"--acceptance", &options.acceptance, &speculation.acceptance},
          std::tuple{"--draft-cost", &options.draft_cost, &speculation.draft_cost},
          std::tuple{"--cached-share", &options.cached_share, &around.cached_share}}) {
        const auto value = parse_fraction(option, *text);
        if (!value) return std::unexpected(value.error());
        *target = *value;
    }
    const auto drafted = parse_whole("--draft-tokens", options.draft_tokens, 1.0, most_drafted);
    if (!drafted) return std::unexpected(drafted.error());
    speculation.draft_tokens = *drafted;
    return {};
}

Result<decide::Surroundings> look_around(const Options& options, const predict::Setup& asked) {
    decide::Surroundings around;
    if (auto done = read_prices(options, asked.device, around); !done) return std::unexpected(done.error());
    if (auto done = read_devices(options, asked.device, around); !done) return std::unexpected(done.error());
    if (auto done = read_assumptions(options, around); !done) return std::unexpected(done.error());
    auto engine = load_execution("engine", options.scenario.calibration, asked.device);
    if (!engine) return std::unexpected(engine.error());
    around.engine = std::move(*engine);
    const DeploymentOptions& deployment = options.scenario.deployment;
    around.node = node_size(asked.device);
    if (!deployment.node.empty()) {
        const auto node = parse_whole("--node-size", deployment.node, 1.0, most_devices);
        if (!node) return std::unexpected(node.error());
        around.node = *node;
    }
    around.most_devices = std::max(around.node, asked.deployment().devices());
    if (!deployment.devices.empty()) {
        const auto devices = parse_whole("--devices", deployment.devices, 1.0, most_devices);
        if (!devices) return std::unexpected(devices.error());
        around.most_devices = *devices;
    }
    for (const std::string& text : options.scenario.settings) {
        ScenarioOptions changed = options.scenario;
        changed.settings = {text};
        auto setup = changed.setup();
        if (!setup) return std::unexpected(setup.error());
        around.figures.push_back({text, std::move(*setup)});
    }
    return around;
}

Result<int> run(const Options& options, const std::string& command) {
    auto setup = options.scenario.setup(/*with_settings=*/false);
    if (!setup) return std::unexpected(setup.error());
    decide::Candidate asked;
    asked.setup = std::move(*setup);
    const auto around = look_around(options, asked.setup);
    if (!around) return std::unexpected(around.error());
    const auto advice = decide::advise(asked, goal_named(options.goal), *around);
    if (!advice) return std::unexpected(advice.error());

    std::string text;
    if (options.output.format == "json") {
        text = io::dump(io::advice_json(*advice, {command, now_iso()}));
    } else if (options.output.format == "csv") {
        text = render::advise_csv(*advice);
    } else {
        text = options.output.format == "md" ? render::advise_markdown(*advice) : render::advise_text(*advice);
    }
    if (auto done = options.output.write(text); !done) return std::unexpected(done.error());
    return advice->asked.fit.fits ? done : no_answer;
}

}  // namespace

void advise_verb(Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* verb =
        program.app.add_subcommand("advise", "What should I change, and what would each change really buy?");
    options->scenario.add_to(*verb);
    options->output.add_to(*verb, {"table", "md", "csv", "json"});
    const char* group = "Advice (--set tries a changed figure as a move of its own)";
    verb->add_option("--goal", options->goal, "What moves are ranked by")
        ->group(group)
        ->check(CLI::IsMember({"tpot", "ttft", "throughput", "cost"}))
        ->capture_default_str();
    verb->add_option("--price", options->prices, "Money per hour of the device, or of another: b200-sxm=4.99")
        ->group(group)
        ->allow_extra_args(false)
        ->type_name("[NAME=]X");
    verb->add_option("--or-device", options->other_devices, "Devices to try in its place, or none")
        ->group(group)
        ->capture_default_str()
        ->type_name("NAMES");
    verb->add_option("--draft-tokens", options->draft_tokens, "Speculative decoding: tokens guessed ahead of a step")
        ->group(group)
        ->capture_default_str()
        ->type_name("N");
    verb->add_option("--acceptance", options->acceptance, "Speculative decoding: share of guesses that are right")
        ->group(group)
        ->capture_default_str()
        ->type_name("SHARE");
    verb->add_option("--draft-cost", options->draft_cost, "Speculative decoding: of one guess, as a share of a step")
        ->group(group)
        ->capture_default_str()
        ->type_name("SHARE");
    verb->add_option("--cached-share", options->cached_share, "Share of the prompt imagined to be a cached prefix")
        ->group(group)
        ->capture_default_str()
        ->type_name("SHARE");
    verb->callback(
        [&program, options] { program.action = [&program, options] { return run(*options, program.command); }; });
}

}  // namespace roofline::cli
