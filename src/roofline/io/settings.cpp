#include "roofline/io/settings.hpp"

#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "roofline/io/names.hpp"
#include "roofline/io/units.hpp"

namespace roofline::io {
namespace {

constexpr double smallest_factor = 1e-6;
constexpr double largest_factor = 1e6;
constexpr double largest_figure = 1e24;  // in base units: beyond any machine

struct Number {
    double value;
    std::string_view rest;
};

/// A number at the start of a text. strtod, because libc++ has no from_chars for doubles; the locale is never changed.
std::optional<Number> leading_number(std::string_view text) {
    if (text.empty() || !(text[0] == '.' || text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))) return std::nullopt;
    if (text.size() > 2 && (text[1] == 'x' || text[1] == 'X')) return std::nullopt;  // no hexadecimal
    const std::string copy(text);
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    if (end == copy.c_str() || !std::isfinite(value)) return std::nullopt;
    return Number{value, text.substr(static_cast<std::size_t>(end - copy.c_str()))};
}

std::optional<Level> level_named(std::string_view text) {
    for (const Level level : all_levels) {
        if (name(level) == text) return level;
    }
    return std::nullopt;
}

std::optional<DType> type_named(std::string_view text) {
    for (const DType type : all_dtypes) {
        if (name(type) == text) return type;
    }
    return std::nullopt;
}

std::pair<std::string_view, std::string_view> split(std::string_view path) {
    if (path.starts_with("links.")) path.remove_prefix(6);
    const std::size_t dot = path.find('.');
    if (dot == std::string_view::npos) return {path, ""};
    return {path.substr(0, dot), path.substr(dot + 1)};
}

bool is_engine(std::string_view head) {
    return head == "compute" || head == "engines" || head == "matrix" || head == "vector";
}

Result<double> new_value(const Setting& setting, std::optional<double> old, Dimension dimension) {
    if (setting.factor) {
        if (!old) {
            return fail(
                fmt::format("--set {}: the device has no figure for {} to multiply", setting.text, setting.path));
        }
        return *old * *setting.factor;
    }
    const auto number = leading_number(setting.value);
    // With or without blanks between them: tables print "2 TB/s", and what is printed can be typed.
    const auto unit = number ? number->rest.find_first_not_of(' ') : std::string_view::npos;
    const auto factor =
        unit != std::string_view::npos ? unit_factor(number->rest.substr(unit), dimension) : std::nullopt;
    if (!factor || number->value <= 0.0) {
        return fail(fmt::format("--set {}: found \"{}\", expected a number with its unit ({}) or a factor such as 2x",
                                setting.text, setting.value, expected_units(dimension)));
    }
    const double value = number->value * *factor;
    if (value > largest_figure) {
        return fail(fmt::format("--set {}: found {:g} in base units, expected at most {:g}", setting.text, value,
                                largest_figure));
    }
    return value;
}

/// A measured ceiling moves with the figure it is a part of.
void scale_ceiling(Device& device, const std::string& path, double ratio) {
    if (const auto found = device.ceilings.find(path); found != device.ceilings.end()) found->second.value *= ratio;
}

Result<void> change(const Setting& setting, std::optional<Figure>& figure, Dimension dimension, Device& device,
                    const std::string& ceiling) {
    const auto old = figure ? std::optional(figure->value) : std::nullopt;
    const auto value = new_value(setting, old, dimension);
    if (!value) return std::unexpected(value.error());
    if (old) scale_ceiling(device, ceiling, *value / *old);
    figure = Figure{*value, "set", "--set " + setting.text};
    device.sources.try_emplace("set", Source{SourceKind::assumed, "changed on the command line", ""});
    return {};
}

}  // namespace

Result<Setting> parse_setting(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
        return fail(fmt::format("--set {}: expected PATH=VALUE or PATH=2x, e.g. memory.bandwidth=2x", text));
    }
    Setting setting;
    setting.text = text;
    setting.path = text.substr(0, equals);
    setting.value = text.substr(equals + 1);
    if (const auto number = leading_number(setting.value); number && number->rest == "x") {
        if (!(number->value >= smallest_factor && number->value <= largest_factor)) {
            return fail(fmt::format("--set {}: found factor {:g}, expected one from {:g} to {:g}", text, number->value,
                                    smallest_factor, largest_factor));
        }
        setting.factor = number->value;
    }
    return setting;
}

bool is_device_path(std::string_view path) {
    const auto [head, tail] = split(path);
    if (path == "power" || is_engine(head)) return true;
    return level_named(head).has_value() && (tail == "bandwidth" || tail == "capacity");
}

Result<void> apply(const Setting& setting, Device& device) {
    const auto [head, tail] = split(setting.path);
    if (setting.path == "power") return change(setting, device.power, Dimension::watts, device, "power");
    if (is_engine(head)) {
        const auto type = type_named(tail);
        if (!tail.empty() && !type)
            return fail(fmt::format("--set {}: {} is not a number type of an engine", setting.text, tail));
        bool found = false;
        for (const Engine engine : {Engine::matrix, Engine::vector}) {
            if ((head == "matrix" && engine != Engine::matrix) || (head == "vector" && engine != Engine::vector))
                continue;
            for (const DType candidate : all_dtypes) {
                auto& rate = device.rates[index(engine)][index(candidate)];
                const bool wanted = type ? candidate == *type : rate.has_value();
                // A type the device lacks can be given to its matrix engine: "what if it had fp8?"
                const bool fresh =
                    type && !rate && !setting.factor && engine == (head == "vector" ? Engine::vector : Engine::matrix);
                if (!wanted || (!rate && !fresh)) continue;
                const std::string ceiling = fmt::format("{}.{}", name(engine), name(candidate));
                if (auto done = change(setting, rate, Dimension::flops_per_second, device, ceiling); !done) return done;
                found = true;
            }
        }
        if (!found) return fail(fmt::format("--set {}: {} has no such rate", setting.text, device.name));
        return {};
    }
    const auto level = level_named(head);
    if (!level || (tail != "bandwidth" && tail != "capacity"))
        return fail(fmt::format("--set {}: {} is not a figure of a device", setting.text, setting.path));
    auto& entry = device.levels[index(*level)];
    if (!entry) entry.emplace();
    if (tail == "capacity") {
        entry->reported.reset();  // it was a part of the old capacity
        return change(setting, entry->capacity, Dimension::bytes, device, "");
    }
    return change(setting, entry->bandwidth, Dimension::bytes_per_second, device,
                  fmt::format("{}.bandwidth", name(*level)));
}

Result<void> apply(const Setting& setting, Json& config) {
    std::string_view path = setting.path;
    if (path.starts_with("model.")) path.remove_prefix(6);
    if (path.starts_with("config.")) path.remove_prefix(7);
    Json* place = &config;
    // Nested language models: "num_hidden_layers" means the language model's, which is the one that is read.
    const std::string first(path.substr(0, path.find('.')));
    for (const char* nested : {"text_config", "language_config", "llm_config"}) {
        if (!config.is_object() || !config.contains(nested) || !config[nested].is_object()) continue;
        if (config[nested].contains(first) || !config.contains(first)) place = &config[nested];
    }
    std::string_view rest = path;
    while (true) {
        const std::size_t dot = rest.find('.');
        const std::string key(rest.substr(0, dot));
        if (!place->is_object() || !place->contains(key)) {
            std::vector<std::string> known = {"memory.bandwidth", "memory.capacity", "cache.capacity", "host.bandwidth",
                                              "peer.bandwidth",   "compute",         "matrix.bf16",    "power"};
            if (place->is_object()) {
                for (const auto& [name, value] : place->items()) known.push_back(name);
            }
            return fail(fmt::format("--set {}: neither the device nor the model has a figure \"{}\"{}", setting.text,
                                    setting.path, suggestion(key, known)));
        }
        place = &(*place)[key];
        if (dot == std::string_view::npos) break;
        rest = rest.substr(dot + 1);
    }
    if (setting.factor) {
        if (!place->is_number()) {
            return fail(fmt::format("--set {}: {} is {}, which cannot be multiplied", setting.text, setting.path,
                                    describe(*place)));
        }
        const double product = place->get<double>() * *setting.factor;
        *place = product == std::floor(product) && std::fabs(product) < 9e15 ? Json(static_cast<std::int64_t>(product))
                                                                             : Json(product);
        return {};
    }
    Json value = Json::parse(setting.value, nullptr, false);
    *place = value.is_discarded() ? Json(setting.value) : std::move(value);
    return {};
}

}  // namespace roofline::io
