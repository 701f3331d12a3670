#include "roofline/ask/form.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "roofline/io/names.hpp"
#include "roofline/io/tensors.hpp"

namespace roofline::ask {
namespace {

/// "batch" of "-b,--batch,--batch-size", then "batch-size".
std::vector<std::string_view> long_names(std::string_view names) {
    std::vector<std::string_view> found;
    while (!names.empty()) {
        const std::size_t comma = names.find(',');
        const std::string_view name = names.substr(0, comma);
        if (name.starts_with("--")) found.push_back(name.substr(2));
        names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
    }
    return found;
}

/// As a person would have typed it. Empty for what nobody can type.
std::optional<std::string> typed(const io::Json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
    if (!value.is_number()) return std::nullopt;
    const double number = value.get<double>();
    if (!std::isfinite(number)) return std::nullopt;
    const bool whole = number == std::floor(number) && std::abs(number) < 1e15;
    return whole ? fmt::format("{:.0f}", number) : fmt::format("{}", number);
}

}  // namespace

std::string Option::key() const {
    const auto found = long_names(names);
    return found.empty() ? "" : std::string(found.front());
}

bool Option::is_called(std::string_view name) const {
    const auto found = long_names(names);
    return std::find(found.begin(), found.end(), name) != found.end();
}

Result<void> Option::take(const std::string& value) {
    if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end()) {
        return fail(
            fmt::format("--{}: found \"{}\", expected {}", key(), io::printable(value), fmt::join(choices, ", ")));
    }
    if (flag != nullptr) {
        if (value != "true" && value != "false")
            return fail(fmt::format("--{}: found \"{}\", expected true or false", key(), io::printable(value)));
        *flag = value == "true";
    } else if (texts != nullptr) {
        texts->push_back(value);
    } else {
        *text = value;
    }
    given = true;
    return {};
}

Option& Form::add(std::string_view names, [[maybe_unused]] std::string_view help) {
    Option& option = options_.emplace_back();
    option.names = names;
#ifndef ROOFLINE_WITHOUT_HELP  // the page explains its controls itself; the linker then drops the texts
    option.help = help;
#endif
    return option;
}

Option& Form::text(std::string_view names, std::string& target, std::string_view help) {
    Option& option = add(names, help);
    option.text = &target;
    return option;
}

Option& Form::flag(std::string_view names, bool& target, std::string_view help) {
    Option& option = add(names, help);
    option.flag = &target;
    return option;
}

Option& Form::texts(std::string_view names, std::vector<std::string>& target, std::string_view help) {
    Option& option = add(names, help);
    option.texts = &target;
    return option;
}

Option* Form::find(std::string_view name) {
    const auto found =
        std::find_if(options_.begin(), options_.end(), [&](const Option& option) { return option.is_called(name); });
    return found == options_.end() ? nullptr : &*found;
}

Result<void> Form::fill(const io::Json& values) {
    if (!values.is_object()) return fail(fmt::format("options: found {}, expected an object", io::describe(values)));
    for (const auto& [key, value] : values.items()) {
        Option* option = find(key);
        if (option == nullptr) {
            std::vector<std::string> known;
            for (const Option& each : options_) known.push_back(each.key());
            return fail(
                fmt::format("options: \"{}\" is not an option{}", io::printable(key), io::suggestion(key, known)));
        }
        std::vector<io::Json> several;
        if (value.is_array() && option->texts != nullptr)
            several.assign(value.begin(), value.end());
        else
            several.push_back(value);
        for (const io::Json& each : several) {
            const auto text = typed(each);
            if (!text)
                return fail(fmt::format("options.{}: found {}, expected a text or a number", key, io::describe(each)));
            if (auto done = option->take(*text); !done) return done;
        }
    }
    return {};
}

}  // namespace roofline::ask
