#include "roofline/analyze/engine_ranges.hpp"

#include <cstdlib>
#include <string>

namespace roofline::analyze {
namespace {

/// The whole number that follows a word in a text, at most 15 digits; empty where there is none.
std::optional<double> number_after(std::string_view text, std::string_view word) {
    const std::size_t at = text.find(word);
    if (at == std::string_view::npos) return std::nullopt;
    double value = 0.0;
    std::size_t digits = 0;
    for (std::size_t i = at + word.size(); i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
        if (++digits > 15) return std::nullopt;
        value = value * 10.0 + (text[i] - '0');
    }
    return digits == 0 ? std::nullopt : std::optional(value);
}

/// "context_1(512)", "context_1(sq512sk512...)"
std::optional<Scheduled::Part> part_of(std::string_view name, std::string_view word) {
    const std::size_t at = name.find(word);
    if (at == std::string_view::npos) return std::nullopt;
    name.remove_prefix(at);
    const std::size_t open = name.find('(');
    const std::size_t close = name.find(')');
    const auto requests = number_after(name, word);
    if (!requests || open == std::string_view::npos || close == std::string_view::npos || close < open)
        return std::nullopt;
    const std::string_view inside = name.substr(open, close - open);
    const auto tokens = number_after(inside, inside.starts_with("(sq") ? "(sq" : "(");
    if (!tokens) return std::nullopt;
    return Scheduled::Part{*requests, *tokens, number_after(inside, "sk").value_or(0.0)};
}

}  // namespace

std::optional<Scheduled> scheduled_in(std::string_view name) {
    const auto reading = part_of(name, "context_");
    const auto writing = part_of(name, "generation_");
    if (!reading || !writing || reading->requests + writing->requests <= 0.0) return std::nullopt;
    return Scheduled{*reading, *writing};
}

}  // namespace roofline::analyze
