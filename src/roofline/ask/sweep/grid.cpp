#include "roofline/ask/sweep/grid.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "roofline/ask/parse.hpp"
#include "roofline/ask/scenario_options.hpp"
#include "roofline/ask/sweep/ranges.hpp"
#include "roofline/ask/traffic_options.hpp"

namespace roofline::ask {
namespace {

constexpr std::size_t most_rows = 1'000'000'000'000;
constexpr double most_tokens = 1e9;

/// The options that make up a workload, in the order of --help.
struct WorkOption {
    const char* name;
    std::string ScenarioOptions::* text;
    double predict::Workload::* field;
    double least;
};
constexpr std::array<WorkOption, 6> work_options = {{
    {"batch", &ScenarioOptions::batch, &predict::Workload::batch, 1.0},
    {"prompt", &ScenarioOptions::prompt, &predict::Workload::prompt, 1.0},
    {"context", &ScenarioOptions::context, &predict::Workload::context, 1.0},
    {"generate", &ScenarioOptions::generate, &predict::Workload::generate, 1.0},
    {"cached-prefix", &ScenarioOptions::cached, &predict::Workload::cached, 0.0},
    {"chunk", &ScenarioOptions::chunk, &predict::Workload::chunk, 0.0},
}};

const WorkOption* work_option(const std::string& name) {
    const auto found = std::find_if(work_options.begin(), work_options.end(),
                                    [&](const WorkOption& option) { return name == option.name; });
    return found != work_options.end() ? &*found : nullptr;
}

std::string column_of(std::string name) {
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

/// A file's name may have commas in it.
Result<std::vector<std::string>> values_of(const Option& option, const Library& library, const std::string& name,
                                           const std::string& text) {
    if (option.takes_numbers()) return parse_ranges(name, text);
    // Commas are part of a mix of lengths and of what is guessed ahead.
    const bool has_commas = option.type == "LENGTHS" || option.type == "K,ALPHA[,SHARE]";
    if (has_commas || library.has_file(text)) return std::vector<std::string>{text};
    return parse_list(name, text);
}

Result<std::vector<double>> work_values(const WorkOption& known, const std::vector<std::string>& texts) {
    std::vector<double> values;
    values.reserve(texts.size());
    for (const std::string& text : texts) {
        if (known.field == &predict::Workload::context && text == "prompt") {
            values.push_back(0.0);
            continue;
        }
        const auto value = parse_whole("--" + std::string(known.name), text, known.least, most_tokens);
        if (!value) return std::unexpected(value.error());
        values.push_back(*value);
    }
    return values;
}

/// `--set memory.bandwidth=1x,2x`: the path is the axis.
Result<SetupAxis> setting_axis(const std::string& text) {
    const std::size_t equals = text.find('=');
    SetupAxis axis{.column = text.substr(0, equals), .option = "set", .path = text.substr(0, equals), .values = {}};
    if (equals == std::string::npos) {
        axis.path.clear();
        axis.values = {text};  // whoever reads --set says what is wrong with it
        return axis;
    }
    auto values = parse_list("--set " + axis.path, std::string_view(text).substr(equals + 1));
    if (!values) return std::unexpected(values.error());
    axis.values = std::move(*values);
    return axis;
}

}  // namespace

std::pair<std::string, std::string> SetupAxis::argument(std::size_t value) const {
    return {option, path.empty() ? values[value] : path + "=" + values[value]};
}

Result<Grid> Grid::read(const Form& form, const Library& library) {
    Grid grid;
    grid.library_ = &library;
    const auto given = [&](std::string_view name) {
        return std::any_of(form.options().begin(), form.options().end(),
                           [&](const Option& option) { return option.key() == name && option.given; });
    };
    // `--params 8e9 h100-sxm`: the one position that is filled is then the device's.
    const bool device_first = given("params") && !given("device");
    const ScenarioOptions usual;
    for (const Option& option : form.options()) {
        const std::string name = option.key();
        const std::string spelt = "--" + name;
        if (const WorkOption* known = work_option(name)) {
            const std::string text = option.given ? *option.text : usual.*(known->text);
            const auto texts = values_of(option, library, spelt, text);
            if (!texts) return std::unexpected(texts.error());
            auto values = work_values(*known, *texts);
            if (!values) return std::unexpected(values.error());
            const bool always = name == "batch" || name == "prompt" || name == "context";
            grid.work_axes_.push_back({column_of(name), known->field, std::move(*values), always || option.given});
            continue;
        }
        if (!option.given || name == "stage") continue;
        if (name == "set") {
            for (const std::string& text : *option.texts) {
                auto axis = setting_axis(text);
                if (!axis) return std::unexpected(axis.error());
                grid.setup_axes_.push_back(std::move(*axis));
            }
            continue;
        }
        SetupAxis axis;
        axis.column = column_of(device_first && name == "model" ? "device" : name);
        axis.option = name;
        axis.numbers = option.takes_numbers();
        axis.deployment = option.group == "Deployment";
        auto values = values_of(option, library, spelt, option.flag != nullptr ? "true" : *option.text);
        if (!values) return std::unexpected(values.error());
        axis.values = std::move(*values);
        grid.setup_axes_.push_back(std::move(axis));
    }
    for (const WorkAxis& axis : grid.work_axes_) {
        grid.rows_per_setup_ *= axis.values.size();
        if (grid.rows_per_setup_ > most_rows) return fail("more than a million million rows");
    }
    grid.rows_ = grid.rows_per_setup_;
    for (const SetupAxis& axis : grid.setup_axes_) {
        grid.rows_ *= axis.values.size();
        if (grid.rows_ > most_rows) return fail("more than a million million rows");
    }
    return grid;
}

bool Grid::spreads_devices() const {
    return std::any_of(setup_axes_.begin(), setup_axes_.end(), [](const SetupAxis& axis) { return axis.deployment; });
}

bool Grid::has(const std::string& option) const {
    return std::any_of(setup_axes_.begin(), setup_axes_.end(),
                       [&](const SetupAxis& axis) { return axis.option == option; });
}

bool Grid::under_load() const {
    return has("saturated") || has("rate") || has("concurrency") || has("trace");
}

std::vector<std::size_t> Grid::setup_values(std::size_t setup) const {
    std::vector<std::size_t> values(setup_axes_.size());
    for (std::size_t i = setup_axes_.size(); i-- > 0;) {
        values[i] = setup % setup_axes_[i].values.size();
        setup /= setup_axes_[i].values.size();
    }
    return values;
}

Result<AskedThere> Grid::asked(std::size_t setup) const {
    const std::vector<std::size_t> values = setup_values(setup);
    std::vector<Argument> arguments;
    for (std::size_t i = 0; i < values.size(); ++i) arguments.push_back(setup_axes_[i].argument(values[i]));
    return asked_with(arguments);
}

Result<AskedThere> Grid::asked_with(const std::vector<Argument>& arguments) const {
    Form form;
    ScenarioOptions options;
    TrafficOptions traffic;
    options.add_to(form);
    traffic.add_to(form);
    for (const auto& [key, value] : arguments) {
        if (auto done = form.find(key)->take(value); !done) return std::unexpected(done.error());
    }
    auto setup = options.setup(*library_);
    if (!setup) return std::unexpected(setup.error());
    AskedThere asked;
    asked.setup = std::move(*setup);
    if (traffic.absent()) {
        if (auto good = traffic.check_absent(); !good) return std::unexpected(good.error());
        if (traffic.price.empty()) return asked;
        const auto price = parse_positive("--price", traffic.price);
        if (!price) return std::unexpected(price.error());
        asked.price = *price;
        return asked;
    }
    if (!traffic.draft.empty()) {
        auto draft = traffic.draft_setup(*library_, options, asked.setup);
        if (!draft) return std::unexpected(draft.error());
        asked.setup.draft = std::move(*draft);
    }
    auto loaded = traffic.load(*library_, options, asked.setup);
    if (!loaded) return std::unexpected(loaded.error());
    asked.traffic = std::move(*loaded);
    asked.prompts_given = !traffic.prompts.empty() || !traffic.trace.empty();
    asked.outputs_given = !traffic.outputs.empty() || !traffic.trace.empty();
    return asked;
}

void Grid::fill(std::size_t row, predict::Workload& workload) const {
    std::size_t rest = row % rows_per_setup_;
    for (std::size_t i = work_axes_.size(); i-- > 0;) {
        const WorkAxis& axis = work_axes_[i];
        workload.*axis.field = axis.values[rest % axis.values.size()];
        rest /= axis.values.size();
    }
}

Result<void> Grid::check_values() const {
    // How many devices there are and how a model is cut goes together or not; everything else stands by itself.
    const auto alone = [&](const SetupAxis* checked, std::size_t value, const SetupAxis* devices, std::size_t device) {
        std::vector<Argument> arguments;
        for (const SetupAxis& axis : setup_axes_) {
            if (&axis == checked) {
                arguments.push_back(axis.argument(value));
            } else if (&axis == devices) {
                arguments.push_back(axis.argument(device));
            } else if (!axis.deployment) {
                arguments.push_back(axis.argument(0));
            }
        }
        return asked_with(arguments);
    };
    if (const auto first = alone(nullptr, 0, nullptr, 0); !first) return std::unexpected(first.error());
    const auto named = std::find_if(setup_axes_.begin(), setup_axes_.end(),
                                    [](const SetupAxis& axis) { return axis.column == "device"; });
    const SetupAxis* devices = named != setup_axes_.end() ? &*named : nullptr;
    for (const SetupAxis& axis : setup_axes_) {
        for (std::size_t value = axis.deployment ? 0 : 1; value < axis.values.size(); ++value) {
            auto answer = alone(&axis, value, nullptr, 0);
            // What one device does not offer (a link to a host) another one may.
            const std::size_t others = axis.deployment && devices != nullptr ? devices->values.size() : 1;
            for (std::size_t other = 1; other < others && !answer; ++other) {
                if (auto elsewhere = alone(&axis, value, devices, other)) answer = std::move(elsewhere);
            }
            if (!answer) return std::unexpected(answer.error());
        }
    }
    return {};
}

std::string Grid::definition() const {
    std::string text;
    for (const SetupAxis& axis : setup_axes_)
        text += fmt::format("--{} {}:{};", axis.option, axis.path, fmt::join(axis.values, ","));
    for (const WorkAxis& axis : work_axes_) text += fmt::format("{}:{};", axis.column, fmt::join(axis.values, ","));
    return text;
}

}  // namespace roofline::ask
