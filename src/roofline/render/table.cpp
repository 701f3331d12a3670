#include "roofline/render/table.hpp"

#include <algorithm>

namespace roofline::render {
namespace {

/// Characters on the screen: bytes that start a UTF-8 sequence.
std::size_t width(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string padded(const std::string& text, std::size_t to, Align align) {
    const std::string space(to > width(text) ? to - width(text) : 0, ' ');
    return align == Align::left ? text + space : space + text;
}

/// A bar ends a cell and a line break ends a row.
std::string markdown_cell(const std::string& text) {
    std::string cell;
    for (const char c : text) {
        if (c == '|') cell += '\\';
        cell += c == '\n' ? ' ' : c;
    }
    return cell;
}

std::string csv_cell(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + "\"";
}

}  // namespace

void Table::drop(std::string_view title) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (columns[i].title != title) continue;
        const auto at = static_cast<std::ptrdiff_t>(i);
        columns.erase(columns.begin() + at);
        for (std::vector<std::string>& row : rows) row.erase(row.begin() + at);
        return;
    }
}

std::string as_text(const Table& table, std::string_view indent) {
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        std::size_t widest = width(table.columns[c].title);
        for (const auto& row : table.rows) widest = std::max(widest, width(row[c]));
        widths.push_back(widest);
    }
    std::string text;
    const auto line = [&](const auto& cell) {
        std::string row(indent);
        for (std::size_t c = 0; c < widths.size(); ++c) {
            if (c > 0) row += "  ";
            row += padded(cell(c), widths[c], table.columns[c].align);
        }
        row.erase(row.find_last_not_of(' ') + 1);
        text += row + "\n";
    };
    line([&](std::size_t c) { return table.columns[c].title; });
    line([&](std::size_t c) { return std::string(widths[c], '-'); });
    for (const auto& row : table.rows) line([&](std::size_t c) { return row[c]; });
    return text;
}

std::string as_markdown(const Table& table) {
    std::string text = "|";
    for (const Column& column : table.columns) text += " " + markdown_cell(column.title) + " |";
    text += "\n|";
    for (const Column& column : table.columns) text += column.align == Align::left ? "---|" : "---:|";
    text += "\n";
    for (const auto& row : table.rows) {
        text += "|";
        for (const std::string& cell : row) text += " " + markdown_cell(cell) + " |";
        text += "\n";
    }
    return text;
}

std::string as_csv(const Table& table) {
    std::string text;
    for (std::size_t c = 0; c < table.columns.size(); ++c)
        text += (c > 0 ? "," : "") + csv_cell(table.columns[c].title);
    text += "\n";
    for (const auto& row : table.rows) {
        for (std::size_t c = 0; c < row.size(); ++c) text += (c > 0 ? "," : "") + csv_cell(row[c]);
        text += "\n";
    }
    return text;
}

}  // namespace roofline::render
