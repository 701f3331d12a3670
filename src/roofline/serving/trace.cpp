// Reading a trace of requests. One request a line:
//
//     # anything
//     arrival,prompt,output          words: passed over if they are the first line
//     0.25,512,128                   seconds since the start, tokens, tokens
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "roofline/core/sort.hpp"
#include "roofline/serving/mix.hpp"

namespace roofline::serving {
namespace {

std::string_view trimmed(std::string_view text) {
    const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (!text.empty() && space(text.front())) text.remove_prefix(1);
    while (!text.empty() && space(text.back())) text.remove_suffix(1);
    return text;
}

/// A plain decimal number; an exponent is allowed for arrivals written by programs.
std::optional<double> decimal(std::string_view text) {
    double value = 0.0;
    int exponent = 0;
    bool point = false;
    bool digits = false;
    std::size_t at = 0;
    for (; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '.' && !point) {
            point = true;
        } else if (c >= '0' && c <= '9') {
            digits = true;
            if (value < 1e17) {
                value = value * 10.0 + (c - '0');
                exponent -= point ? 1 : 0;
            } else {
                exponent += point ? 0 : 1;  // digits that a double cannot hold
            }
        } else {
            break;
        }
    }
    if (!digits) return std::nullopt;
    if (at < text.size()) {
        if (text[at] != 'e' && text[at] != 'E') return std::nullopt;
        ++at;
        const bool negative = at < text.size() && text[at] == '-';
        if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
        if (at == text.size() || text.size() - at > 2) return std::nullopt;
        int given = 0;
        for (; at < text.size(); ++at) {
            if (text[at] < '0' || text[at] > '9') return std::nullopt;
            given = given * 10 + (text[at] - '0');
        }
        exponent += negative ? -given : given;
    }
    double scale = 1.0;
    for (int i = 0; i < std::abs(exponent); ++i) scale *= 10.0;
    return exponent < 0 ? value / scale : value * scale;
}

std::vector<std::string_view> cells_of(std::string_view line) {
    std::vector<std::string_view> cells;
    while (true) {
        const std::size_t comma = line.find(',');
        cells.push_back(trimmed(line.substr(0, comma)));
        if (comma == std::string_view::npos) return cells;
        line.remove_prefix(comma + 1);
    }
}

bool is_header(const std::vector<std::string_view>& cells) {
    return std::all_of(cells.begin(), cells.end(), [](std::string_view cell) {
        return !cell.empty() &&
               ((cell.front() >= 'a' && cell.front() <= 'z') || (cell.front() >= 'A' && cell.front() <= 'Z'));
    });
}

Result<Request> request_of(const std::vector<std::string_view>& cells, const std::string& place) {
    if (cells.size() != 3) {
        return fail(place + ": found " + std::to_string(cells.size()) +
                    " values, expected three: arrival in seconds, prompt tokens, output tokens");
    }
    static constexpr std::array<std::string_view, 3> names = {"arrival", "prompt", "output"};
    static constexpr std::array<std::string_view, 3> wanted = {"seconds since the start, 0 to 1e9",
                                                               "whole tokens, 1 to 1e8", "whole tokens, 1 to 1e8"};
    std::array<double, 3> values{};
    for (std::size_t i = 0; i < 3; ++i) {
        const auto value = decimal(cells[i]);
        const bool good =
            value && (i == 0 ? *value <= 1e9 : *value >= 1.0 && *value <= 1e8 && *value == std::floor(*value));
        if (!good) {
            return fail(place + ": " + std::string(names[i]) + " is \"" + std::string(cells[i]) + "\", expected " +
                        std::string(wanted[i]));
        }
        values[i] = *value;
    }
    return Request{.arrival = values[0], .prompt = values[1], .output = values[2]};
}

}  // namespace

Result<std::vector<Request>> parse_trace(std::string_view text, std::string_view file) {
    std::vector<Request> requests;
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a spreadsheet's mark
    bool first = true;
    for (int number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        const std::string_view line = trimmed(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.empty() || line.front() == '#') continue;
        const auto cells = cells_of(line);
        if (std::exchange(first, false) && is_header(cells)) continue;
        const auto request = request_of(cells, std::string(file) + ":" + std::to_string(number));
        if (!request) return std::unexpected(request.error());
        requests.push_back(*request);
    }
    if (requests.empty()) {
        return fail(std::string(file) + ": found no request, expected lines of arrival,prompt,output");
    }
    sort_stably(requests, [](const Request& a, const Request& b) { return a.arrival < b.arrival; });
    return requests;
}

}  // namespace roofline::serving
