#include "roofline/io/fields.hpp"

#include <cmath>

#include <fmt/format.h>

#include "roofline/io/tensors.hpp"

namespace roofline::io {
namespace {

// What NaN and Infinity become: strings of the same length with their quotes, which no reader of a number accepts.
constexpr std::string_view not_a_number = "n";
constexpr std::string_view infinite = "infini";
constexpr std::string_view minus_infinite = "-infini";

const Json& empty_object() {
    static const Json object = Json::object();
    return object;
}

/// Replaces Infinity and NaN outside strings by something the parser takes, of the same length so that positions stay:
/// "Infinity" becomes a string, which no reader of a number accepts.
std::string without_python_literals(std::string_view text) {
    std::string result(text);
    bool in_string = false;
    for (std::size_t i = 0; i < result.size(); ++i) {
        const char c = result[i];
        if (in_string) {
            if (c == '\\') ++i;
            if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == 'I' && text.substr(i, 8) == "Infinity") {
            const std::size_t start = i > 0 && result[i - 1] == '-' ? i - 1 : i;
            result.replace(start, i + 8 - start, i == start ? "\"infini\"" : "\"-infini\"");
            i += 7;
        } else if (c == 'N' && text.substr(i, 3) == "NaN") {
            result.replace(i, 3, "\"n\"");
            i += 2;
        }
    }
    return result;
}

/// Remembers where parsing stopped; builds nothing.
struct ErrorPosition : nlohmann::json_sax<Json> {
    std::size_t position = 0;
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override { return true; }
    bool key(string_t&) override { return true; }
    bool end_object() override { return true; }
    bool start_array(std::size_t) override { return true; }
    bool end_array() override { return true; }
    bool parse_error(std::size_t where, const std::string&, const nlohmann::detail::exception&) override {
        position = where;
        return false;
    }
};

constexpr std::size_t deepest_nesting = 200;

bool too_deep(std::string_view text) {
    std::size_t depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (in_string) {
            if (text[i] == '\\') {
                ++i;
            } else if (text[i] == '"') {
                in_string = false;
            }
        } else if (text[i] == '"') {
            in_string = true;
        } else if (text[i] == '{' || text[i] == '[') {
            if (++depth > deepest_nesting) return true;
        } else if ((text[i] == '}' || text[i] == ']') && depth > 0) {
            --depth;
        }
    }
    return false;
}

}  // namespace

std::string describe(const Json& value) {
    switch (value.type()) {
        case Json::value_t::null:
            return "null";
        case Json::value_t::object:
            return "an object";
        case Json::value_t::array:
            return "a list";
        case Json::value_t::boolean:
            return value.get<bool>() ? "true" : "false";
        case Json::value_t::string: {
            const auto& text = value.get_ref<const std::string&>();
            if (text == not_a_number) return "NaN";
            if (text == infinite) return "Infinity";
            if (text == minus_infinite) return "-Infinity";
            if (text.size() > 40) return "a string";
            return "\"" + printable(text) + "\"";
        }
        case Json::value_t::number_float:
            return fmt::format("{}", value.get<double>());
        case Json::value_t::number_integer:
        case Json::value_t::number_unsigned:
            return value.dump();
        default:
            return "something else";
    }
}

Result<Json> parse_json(std::string_view text, std::string_view file) {
    if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);  // a byte order mark
    if (too_deep(text)) return fail(fmt::format("{}: nested more than {} levels deep", file, deepest_nesting));
    const std::string plain = without_python_literals(text);
    Json json = Json::parse(plain, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/false);
    if (!json.is_discarded()) return json;

    ErrorPosition error;
    Json::sax_parse(plain, &error);
    std::size_t line = 1;
    std::size_t column = 1;
    for (std::size_t i = 0; i + 1 < error.position && i < plain.size(); ++i) {
        if (plain[i] == '\n') {
            ++line;
            column = 1;
        } else {
            ++column;
        }
    }
    if (error.position > plain.size())
        return fail(fmt::format("{}: line {}: the file ends in the middle of its JSON", file, line));
    return fail(fmt::format("{}: line {}, column {}: not valid JSON", file, line, column));
}

Fields::Fields(const Json& object, std::string file, std::string path, std::optional<Problem>& first_problem)
    : object_(object.is_object() ? object : empty_object()),
      file_(std::move(file)),
      path_(std::move(path)),
      first_problem_(first_problem) {
    if (!object.is_object() && !first_problem_) {
        first_problem_ = Problem{fmt::format("{}: {} is {}, expected an object", file_,
                                             path_.empty() ? "the file" : path_, describe(object))};
    }
}

std::string Fields::place(std::string_view key) const {
    return path_.empty() ? std::string(key) : key.empty() ? path_ : path_ + "." + std::string(key);
}

void Fields::complain(std::string_view key, std::string_view what) {
    if (!first_problem_) first_problem_ = Problem{fmt::format("{}: {} {}", file_, printable(place(key)), what)};
}

const Json* Fields::find(std::string_view key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool Fields::has(std::string_view key) const {
    return find(key) != nullptr;
}

double Fields::checked_size(std::string_view key, const Json& value, double least) {
    const double number = value.is_number() ? value.get<double>() : std::nan("");
    if (!(number >= least && number <= largest_size && number == std::floor(number))) {
        complain(key,
                 fmt::format("is {}, expected a whole number from {:g} to {:g}", describe(value), least, largest_size));
        return 1.0;
    }
    return number;
}

double Fields::size(std::string_view key) {
    const Json* value = find(key);
    if (value == nullptr) {
        complain(key, "is missing");
        return 1.0;
    }
    return checked_size(key, *value, 1.0);
}

double Fields::size_or(std::string_view key, double fallback) {
    const Json* value = find(key);
    return value == nullptr ? fallback : checked_size(key, *value, 1.0);
}

double Fields::count_or(std::string_view key, double fallback) {
    const Json* value = find(key);
    return value == nullptr ? fallback : checked_size(key, *value, 0.0);
}

double Fields::size_of_any(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
        if (has(key)) return size(key);
    }
    return size(*keys.begin());
}

double Fields::number_or(std::string_view key, double fallback) {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_number() || !std::isfinite(value->get<double>())) {
        complain(key, fmt::format("is {}, expected a number", describe(*value)));
        return fallback;
    }
    return value->get<double>();
}

double Fields::positive(std::string_view key) {
    const Json* value = find(key);
    if (value == nullptr) {
        complain(key, "is missing");
        return 1.0;
    }
    const double number = value->is_number() ? value->get<double>() : std::nan("");
    if (!(number > 0.0 && number < 1e30)) {
        complain(key, fmt::format("is {}, expected a number above zero", describe(*value)));
        return 1.0;
    }
    return number;
}

bool Fields::flag(std::string_view key, bool fallback) {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) {
        complain(key, fmt::format("is {}, expected true or false", describe(*value)));
        return fallback;
    }
    return value->get<bool>();
}

std::string Fields::text(std::string_view key) {
    const Json* value = find(key);
    if (value == nullptr) {
        complain(key, "is missing");
        return "";
    }
    return text_or(key, "");
}

std::string Fields::text_or(std::string_view key, std::string_view fallback) {
    const Json* value = find(key);
    if (value == nullptr) return std::string(fallback);
    if (!value->is_string()) {
        complain(key, fmt::format("is {}, expected a string", describe(*value)));
        return std::string(fallback);
    }
    return value->get<std::string>();
}

std::vector<std::string> Fields::texts(std::string_view key) {
    std::vector<std::string> result;
    const Json* value = find(key);
    if (value == nullptr) return result;
    if (!value->is_array()) {
        complain(key, fmt::format("is {}, expected a list of strings", describe(*value)));
        return result;
    }
    for (const Json& item : *value) {
        if (!item.is_string()) {
            complain(key, fmt::format("holds {}, expected only strings", describe(item)));
            return result;
        }
        result.push_back(item.get<std::string>());
    }
    return result;
}

std::vector<double> Fields::numbers(std::string_view key) {
    std::vector<double> result;
    const Json* value = find(key);
    if (value == nullptr) return result;
    if (!value->is_array()) {
        complain(key, fmt::format("is {}, expected a list of numbers", describe(*value)));
        return result;
    }
    for (const Json& item : *value) {
        if (!item.is_number() || !std::isfinite(item.get<double>())) {
            complain(key, fmt::format("holds {}, expected only numbers", describe(item)));
            return result;
        }
        result.push_back(item.get<double>());
    }
    return result;
}

Fields Fields::child(std::string_view key) {
    const Json* value = find(key);
    if (value == nullptr) {
        complain(key, "is missing");
        return {empty_object(), file_, place(key), first_problem_};
    }
    return {*value, file_, place(key), first_problem_};
}

std::vector<Fields> Fields::children(std::string_view key) {
    std::vector<Fields> result;
    const Json* value = find(key);
    if (value == nullptr) return result;
    if (!value->is_array()) {
        complain(key, fmt::format("is {}, expected a list", describe(*value)));
        return result;
    }
    result.reserve(value->size());
    for (std::size_t i = 0; i < value->size(); ++i) {
        result.emplace_back((*value)[i], file_, fmt::format("{}[{}]", place(key), i), first_problem_);
    }
    return result;
}

std::vector<std::string> Fields::keys() const {
    std::vector<std::string> result;
    for (const auto& [key, value] : object_.items()) result.push_back(key);
    return result;
}

}  // namespace roofline::io
