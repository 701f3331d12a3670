#include "roofline/analyze/metric_units.hpp"

#include <array>
#include <utility>

namespace roofline::analyze {
namespace {

bool base_unit(std::string_view word) {
    constexpr std::array<std::string_view, 15> words = {"byte",  "hz",     "Hz",   "second",   "s",
                                                        "cycle", "inst",   "op",   "sector",   "request",
                                                        "warp",  "thread", "flop", "register", "block"};
    for (const std::string_view known : words) {
        if (word == known || (word.size() == known.size() + 1 && word.ends_with('s') && word.starts_with(known)))
            return true;
    }
    return false;
}

double factor_of(std::string_view word) {
    if (word == "%") return 0.01;
    if (word.empty() || base_unit(word)) return 1.0;
    constexpr std::array<std::pair<char, double>, 8> prefixes = {
        {{'n', 1e-9}, {'u', 1e-6}, {'m', 1e-3}, {'K', 1e3}, {'k', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}}};
    for (const auto& [letter, factor] : prefixes) {
        if (word.front() == letter && base_unit(word.substr(1))) return factor;
    }
    if (word.front() == 'P' && base_unit(word.substr(1))) return 1e15;
    return 1.0;
}

}  // namespace

double metric_factor(std::string_view unit) {
    const std::size_t slash = unit.find('/');
    if (slash == std::string_view::npos) return factor_of(unit);
    return factor_of(unit.substr(0, slash)) / factor_of(unit.substr(slash + 1));
}

}  // namespace roofline::analyze
