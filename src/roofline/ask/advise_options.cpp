#include "roofline/ask/advise_options.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "roofline/ask/parse.hpp"
#include "roofline/ask/traffic_options.hpp"
#include "roofline/decide/spread.hpp"
#include "roofline/io/tensors.hpp"

namespace roofline::ask {
namespace {

constexpr double most_devices = 100'000.0;
constexpr double most_drafted = 64.0;

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
Result<void> read_prices(const Library& library, const AdviseOptions& options, const Device& device,
                         decide::Surroundings& around) {
    for (const std::string& text : options.prices) {
        const std::size_t equals = text.find('=');
        const bool named = equals != std::string::npos;
        std::string name = device.name;
        if (named) {
            const auto other = library.device(text.substr(0, equals));
            if (!other) return fail(fmt::format("--price {}: {}", io::printable(text), other.error().text));
            name = other->name;
        }
        const auto price = parse_positive("--price", named ? text.substr(equals + 1) : text);
        if (!price) return std::unexpected(price.error());
        around.prices[name] = *price;
    }
    return {};
}

Result<void> read_devices(const Library& library, const AdviseOptions& options, const Device& device,
                          decide::Surroundings& around) {
    if (options.other_devices == "none") return {};
    std::string_view rest = options.other_devices;
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        const std::string name(rest.substr(0, comma));
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
        auto other = library.device(name);
        if (!other) return fail(fmt::format("--or-device: {}", other.error().text));
        if (other->name == device.name) continue;
        auto execution = library.execution(options.scenario.profile, options.scenario.calibration, *other);
        if (!execution) return std::unexpected(execution.error());
        around.devices.push_back({std::move(*other), std::move(*execution)});
    }
    return {};
}

Result<void> read_assumptions(const Library& library, const AdviseOptions& options, const predict::Setup& asked,
                              decide::Surroundings& around) {
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
    if (options.draft.empty() || options.draft == own_layers) {
        // A model that has layers for it guesses with these unless another is named.
        if (options.draft.empty() && !(asked.architecture && asked.architecture->predictors > 0.0)) return {};
        auto own = own_draft_of(asked);
        if (!own) return std::unexpected(own.error());
        around.draft = std::move(*own);
        return {};
    }
    auto model = library.model(options.draft);
    if (!model) return fail("--draft-model: " + model.error().text);
    around.draft = std::make_shared<const predict::Setup>(setup_of_model(std::move(*model)));
    return {};
}

Result<decide::Surroundings> look_around(const Library& library, const AdviseOptions& options,
                                         const predict::Setup& asked) {
    decide::Surroundings around;
    if (auto done = read_prices(library, options, asked.device, around); !done) return std::unexpected(done.error());
    if (auto done = read_devices(library, options, asked.device, around); !done) return std::unexpected(done.error());
    if (auto done = read_assumptions(library, options, asked, around); !done) return std::unexpected(done.error());
    auto engine = library.execution("engine", options.scenario.calibration, asked.device);
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
        auto setup = changed.setup(library);
        if (!setup) return std::unexpected(setup.error());
        around.figures.push_back({text, std::move(*setup)});
    }
    return around;
}

}  // namespace

void AdviseOptions::add_to(Form& form) {
    scenario.add_to(form);
    const char* group = "Advice (--set tries a changed figure as a move of its own)";
    form.text("--goal", goal, "What moves are ranked by")
        .in(group)
        .one_of({"tpot", "ttft", "throughput", "cost"})
        .shows_default();
    form.texts("--price", prices, "Money per hour of the device, or of another: b200-sxm=4.99")
        .in(group)
        .of_type("[NAME=]X");
    form.text("--or-device", other_devices, "Devices to try in its place, or none")
        .in(group)
        .shows_default()
        .of_type("NAMES");
    form.text("--draft-tokens", draft_tokens, "Speculative decoding: tokens guessed ahead of a step")
        .in(group)
        .shows_default()
        .of_type("N");
    form.text("--acceptance", acceptance, "Speculative decoding: share of guesses that are right")
        .in(group)
        .shows_default()
        .of_type("SHARE");
    form.text("--draft-cost", draft_cost, "Speculative decoding: of one guess, as a share of a step")
        .in(group)
        .shows_default()
        .of_type("SHARE");
    form.text(
            "--draft-model", draft,
            "Speculative decoding: what guesses; its time and memory then count for --draft-cost (default: the model's "
            "own MTP layers, mtp, where it has any)")
        .in(group)
        .of_type("MODEL");
    form.text("--cached-share", cached_share, "Share of the prompt imagined to be a cached prefix")
        .in(group)
        .shows_default()
        .of_type("SHARE");
}

Result<decide::Advice> AdviseOptions::answer(const Library& library) const {
    auto setup = scenario.setup(library, /*with_settings=*/false);
    if (!setup) return std::unexpected(setup.error());
    decide::Candidate asked;
    asked.setup = std::move(*setup);
    const auto around = look_around(library, *this, asked.setup);
    if (!around) return std::unexpected(around.error());
    return decide::advise(asked, goal_named(goal), *around);
}

}  // namespace roofline::ask
