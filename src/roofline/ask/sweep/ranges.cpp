#include "roofline/ask/sweep/ranges.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <unordered_set>

#include <fmt/format.h>

#include "roofline/io/tensors.hpp"

namespace roofline::ask {
namespace {

constexpr std::uint64_t most_values = 1'000'000;
constexpr std::uint64_t largest = 1'000'000'000'000'000;  // whole as a double, and its products fit 64 bits

std::unexpected<Problem> refuse(std::string_view option, std::string_view text, std::string_view expected) {
    return fail(fmt::format("{}: found \"{}\", expected {}", option, io::printable(text), expected));
}

/// Takes the digits at the front of `text`; false where there are none or too many.
bool take_number(std::string_view& text, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value > largest) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

/// 5-10 is a range, 1e-3 and fp8-block are not.
bool looks_like_a_range(std::string_view text) {
    const std::size_t digits = text.find_first_not_of("0123456789");
    return digits != std::string_view::npos && digits > 0 && text[digits] == '-';
}

class Values {
  public:
    Values(std::string_view option, bool several) : option_(option), several_(several) {}

    Result<void> add(std::string value) {
        if (values_.size() >= most_values) return fail(fmt::format("{}: more than a million values", option_));
        if (several_ && !seen_.insert(value).second) return {};
        values_.push_back(std::move(value));
        return {};
    }
    Result<void> add_range(std::string_view text) {
        constexpr std::string_view expected = "a range such as 1-4, 1-64*2 or 128-1024+128";
        std::string_view rest = text;
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        std::uint64_t step = 1;
        bool multiply = false;
        if (!take_number(rest, first) || !rest.starts_with('-')) return refuse(option_, text, expected);
        rest.remove_prefix(1);
        if (!take_number(rest, last)) return refuse(option_, text, expected);
        if (!rest.empty()) {
            multiply = rest.front() == '*';
            if (!multiply && rest.front() != '+') return refuse(option_, text, expected);
            rest.remove_prefix(1);
            if (!take_number(rest, step) || !rest.empty()) return refuse(option_, text, expected);
        }
        if (first > last) return refuse(option_, text, "a range that goes up");
        if (multiply && (step < 2 || first == 0)) return refuse(option_, text, "to multiply by 2 or more, from 1 on");
        if (step == 0) return refuse(option_, text, "a step of 1 or more");
        // With values at most 1e15, neither way forward can pass the end of 64 bits before it passes `last`.
        for (std::uint64_t value = first; value <= last;) {
            if (auto done = add(fmt::format("{}", value)); !done) return done;
            if (multiply && value > last / step) break;
            value = multiply ? value * step : value + step;
        }
        return {};
    }
    std::vector<std::string> take() { return std::move(values_); }

  private:
    std::string_view option_;
    bool several_;  // parts, which may overlap; one range repeats nothing
    std::vector<std::string> values_;
    std::unordered_set<std::string> seen_;
};

Result<std::vector<std::string>> parse(std::string_view option, std::string_view text, bool ranges) {
    Values values(option, text.find(',') != std::string_view::npos);
    std::string_view rest = text;
    while (true) {
        const std::size_t comma = rest.find(',');
        const std::string_view part = rest.substr(0, comma);
        if (part.empty()) return refuse(option, text, "values between commas");
        const auto added = ranges && looks_like_a_range(part) ? values.add_range(part) : values.add(std::string(part));
        if (!added) return std::unexpected(added.error());
        if (comma == std::string_view::npos) return values.take();
        rest.remove_prefix(comma + 1);
    }
}

}  // namespace

Result<std::vector<std::string>> parse_list(std::string_view option, std::string_view text) {
    return parse(option, text, /*ranges=*/false);
}

Result<std::vector<std::string>> parse_ranges(std::string_view option, std::string_view text) {
    return parse(option, text, /*ranges=*/true);
}

}  // namespace roofline::ask
