#include "roofline/analyze/csv_rows.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace roofline::analyze {

std::optional<double> number_of(std::string_view cell) {
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\t')) cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\t')) cell.remove_suffix(1);
    if (cell.starts_with('+')) cell.remove_prefix(1);
    std::string plain;
    if (cell.find(',') != std::string_view::npos) {
        // Thousands only: "1,234.5" is a number, "1,23" is one of another country and none here.
        const std::size_t whole = std::min(cell.find('.'), cell.size());
        for (std::size_t i = 0; i < cell.size(); ++i) {
            if (cell[i] != ',') {
                plain += cell[i];
            } else if (i == 0 || i > whole || (whole - i) % 4 != 0) {
                return std::nullopt;
            }
        }
        cell = plain;
    }
    double value = 0.0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (cell.empty() || error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value))
        return std::nullopt;
    return value;
}

std::string shown(std::string_view cell) {
    std::string text(cell.substr(0, 40));
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '.';
    }
    return text;
}

Result<bool> CsvRows::more() {
    if (at_ < window_.size()) return true;
    if (ended_) return false;
    window_.resize(std::size_t{64} << 10U);
    at_ = 0;
    const auto got = input_.read(window_);
    window_.resize(got.value_or(0));
    if (!got) return std::unexpected(got.error());
    ended_ = *got == 0;
    return !ended_;
}

Result<std::optional<char>> CsvRows::peek() {
    const auto there = more();
    if (!there) return std::unexpected(there.error());
    return *there ? std::optional(window_[at_]) : std::nullopt;
}

Result<std::optional<std::string>> CsvRows::next_line() {
    std::string text;
    line_ = next_line_;
    bool any = false;
    while (true) {
        const auto there = more();
        if (!there) return std::unexpected(there.error());
        if (!*there) break;
        any = true;
        const std::size_t end = window_.find('\n', at_);
        text.append(window_, at_, end == std::string::npos ? std::string::npos : end - at_);
        if (text.size() > longest_row)
            return fail(fmt::format("{}:{}: a line of more than 16 MiB, expected a table", input_.name(), line_));
        at_ = end == std::string::npos ? window_.size() : end + 1;
        if (end != std::string::npos) {
            ++next_line_;
            break;
        }
    }
    if (!any) return std::nullopt;
    if (text.ends_with('\r')) text.pop_back();
    return text;
}

Result<std::optional<std::vector<std::string>>> CsvRows::next() {
    while (true) {
        std::vector<std::string> cells(1);
        std::size_t size = 0;
        bool quoted = false;
        bool closed = false;  // a quote was just closed: another one right behind it stands for itself
        bool any = false;
        line_ = next_line_;
        while (true) {
            const auto there = more();
            if (!there) return std::unexpected(there.error());
            if (!*there) break;
            any = true;
            const char c = window_[at_++];
            if (++size > longest_row)
                return fail(fmt::format("{}:{}: a row of more than 16 MiB, expected a table", input_.name(), line_));
            if (c == '\n') ++next_line_;
            if (quoted) {
                if (c == '"') {
                    quoted = false;
                    closed = true;
                } else {
                    cells.back() += c;
                }
                continue;
            }
            if (c == '"' && (closed || cells.back().empty())) {
                if (closed) cells.back() += '"';
                quoted = true;
                closed = false;
                continue;
            }
            closed = false;
            if (c == ',') {
                cells.emplace_back();
            } else if (c == '\n') {
                break;
            } else if (c != '\r') {
                cells.back() += c;
            }
        }
        cut_ = cut_ || quoted;
        if (!any) return std::nullopt;
        if (cells.size() > 1 || !cells.front().empty()) return cells;
    }
}

std::optional<std::size_t> Columns::find(std::string_view name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - names_.begin());
}

std::string_view Columns::text(const std::vector<std::string>& row, std::string_view name) const {
    const auto place = find(name);
    return place && *place < row.size() ? std::string_view(row[*place]) : std::string_view();
}

std::optional<double> Columns::number(const std::vector<std::string>& row, std::string_view name) const {
    return number_of(text(row, name));
}

}  // namespace roofline::analyze
