#include "roofline/analyze/spelling.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace roofline::analyze {
namespace {

constexpr std::string_view indent = "  ";

/// What a narrow terminal can do without, first things first: what follows from other columns, then the counts behind
/// the percentages.
constexpr std::array<std::string_view, 13> spared = {"FLOP/B",     "on chip", "from L2", "of limit", "limit",
                                                     "attainable", "FLOPs",   "memory",  "context",  "busy",
                                                     "difference", "x",       "share"};

std::size_t on_screen(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::size_t width_of(const render::Table& table) {
    std::size_t sum = indent.size();
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        std::size_t widest = on_screen(table.columns[c].title);
        for (const auto& row : table.rows) widest = std::max(widest, on_screen(row[c]));
        sum += widest + (c > 0 ? 2 : 0);
    }
    return sum;
}

bool has(const render::Table& table, std::string_view title) {
    return std::any_of(table.columns.begin(), table.columns.end(),
                       [&](const render::Column& column) { return column.title == title; });
}

/// Where text goes on after a break: below the words, not below what stands before them ("seen: ", "note      ").
std::size_t hanging(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
    for (const std::string_view label : {"seen: ", "do:   ", "note      ", "device    ", "model     ", "kernels   "}) {
        if (text.substr(begin).starts_with(label)) return begin + label.size();
    }
    return begin + 2;
}

}  // namespace

std::string spelt(render::Table table, const TextOptions& options) {
    if (options.markdown) return render::as_markdown(table) + "\n";
    std::string left_out;
    for (const std::string_view title : spared) {
        if (options.columns == 0 || width_of(table) <= options.columns) break;
        if (!has(table, title)) continue;
        table.drop(title);
        left_out += (left_out.empty() ? "" : ", ") + std::string(title);
    }
    std::string text = render::as_text(table, indent);
    if (!left_out.empty()) text += line(fmt::format("(left out on this narrow terminal: {})", left_out), options);
    return text;
}

std::string line(const std::string& text, const TextOptions& options) {
    if (options.markdown) {
        const std::size_t begin = text.find_first_not_of(' ');  // what is indented belongs to the line above
        return (begin > 0 && begin != std::string::npos ? "  - " + text.substr(begin) : "- " + text) + "\n";
    }
    std::string rest = std::string(indent) + text;
    const std::size_t again = indent.size() + hanging(text);
    if (options.columns <= again + 20) return rest + "\n";
    std::string result;
    while (on_screen(rest) > options.columns) {
        // The columns are at least as many bytes: a break found there is never too late.
        const std::size_t space = rest.rfind(' ', options.columns);
        if (space == std::string::npos || space <= again) break;
        result += rest.substr(0, space) + "\n";
        rest = std::string(again, ' ') + rest.substr(space + 1);
    }
    return result + rest + "\n";
}

}  // namespace roofline::analyze
