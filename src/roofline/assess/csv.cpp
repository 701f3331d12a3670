#include "roofline/assess/csv.hpp"

#include <charconv>
#include <cmath>

namespace roofline::assess {
namespace {

/// One record, from `at`; `line` counts the line ends inside quotes too.
Result<std::vector<std::string>> read_record(std::string_view text, std::size_t& at, int& line,
                                             const std::string& file) {
    std::vector<std::string> cells(1);
    const int first_line = line;
    bool quoted = false;
    for (; at < text.size(); ++at) {
        const char c = text[at];
        if (quoted) {
            if (c == '\n') ++line;
            if (c != '"') {
                cells.back() += c;
            } else if (at + 1 < text.size() && text[at + 1] == '"') {
                cells.back() += '"';
                ++at;
            } else {
                quoted = false;
            }
        } else if (c == '"' && cells.back().empty()) {
            quoted = true;
        } else if (c == ',') {
            cells.emplace_back();
        } else if (c == '\n') {
            ++at;
            ++line;
            return cells;
        } else if (c != '\r') {
            cells.back() += c;
        }
    }
    if (quoted) return fail(file + ":" + std::to_string(first_line) + ": a quote is opened here and never closed");
    return cells;
}

bool blank(const std::vector<std::string>& cells) {
    return cells.size() == 1 && cells.front().empty();
}

}  // namespace

Result<CsvTable> CsvTable::parse(std::string_view text, std::string file) {
    CsvTable table;
    table.file_ = std::move(file);
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a spreadsheet's mark
    std::size_t at = 0;
    int line = 1;
    while (at < text.size()) {
        const int start = line;
        auto cells = read_record(text, at, line, table.file_);
        if (!cells) return std::unexpected(cells.error());
        if (blank(*cells)) continue;
        if (table.columns_.empty()) {
            table.columns_ = std::move(*cells);
        } else if (cells->size() != table.columns_.size()) {
            return fail(table.file_ + ":" + std::to_string(start) + ": found " + std::to_string(cells->size()) +
                        " cells, expected " + std::to_string(table.columns_.size()) + " as in the header");
        } else {
            table.rows_.push_back({start, std::move(*cells)});
        }
    }
    if (table.columns_.empty()) return fail(table.file_ + ": found nothing, expected a table with a header line");
    return table;
}

CsvTable CsvTable::of_cells(std::string file, std::vector<std::string> columns,
                            std::vector<std::vector<std::string>> rows) {
    CsvTable table;
    table.file_ = std::move(file);
    table.columns_ = std::move(columns);
    int line = 0;
    for (std::vector<std::string>& row : rows) table.rows_.push_back({++line, std::move(row)});
    return table;
}

std::optional<std::size_t> CsvTable::find(std::string_view column) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (columns_[i] == column) return i;
    }
    return std::nullopt;
}

std::string_view CsvTable::text(const Row& row, std::string_view column) const {
    const auto place = find(column);
    return place ? std::string_view(row.cells[*place]) : std::string_view();
}

std::optional<double> CsvTable::number(const Row& row, std::string_view column) const {
    return parse_number(text(row, column));
}

std::optional<double> parse_number(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    double value = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

}  // namespace roofline::assess
