// Rows of comma-separated text, one at a time from an input of any size: quoted cells, CRLF or LF. What a program
// printed between the rows ("==PROF== ...", its own words) is for the caller to skip: a row is offered with its first
// character.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/analyze/input.hpp"

namespace roofline::analyze {

/// A whole cell that is a finite number; commas between thousands and spaces around it are allowed.
std::optional<double> number_of(std::string_view cell);

/// The beginning of a cell for a message of one line: what does not print is a dot.
std::string shown(std::string_view cell);

class CsvRows {
  public:
    explicit CsvRows(Input& input) : input_(input) {}

    /// The next row that is not blank; nothing at the end. Cells are good until the next call. A quote that is never
    /// closed before the end of the file ends the row there and sets `cut`.
    Result<std::optional<std::vector<std::string>>> next();
    /// The next line as it stands, without its end; nothing at the end of the file.
    Result<std::optional<std::string>> next_line();
    /// The first character of what comes next; nothing at the end.
    Result<std::optional<char>> peek();

    long line() const { return line_; }  // of the row or line that was read last, the first being 1
    bool cut() const { return cut_; }    // the file ended inside a quoted cell

  private:
    Result<bool> more();
    static constexpr std::size_t longest_row = std::size_t{16} << 20U;

    Input& input_;
    std::string window_;
    std::size_t at_ = 0;
    long next_line_ = 1;
    long line_ = 0;
    bool ended_ = false;
    bool cut_ = false;
};

/// Where each column is, for rows that name what they want.
class Columns {
  public:
    explicit Columns(std::vector<std::string> names) : names_(std::move(names)) {}
    std::optional<std::size_t> find(std::string_view name) const;
    /// Empty where the column is absent or the row too short.
    std::string_view text(const std::vector<std::string>& row, std::string_view name) const;
    std::optional<double> number(const std::vector<std::string>& row, std::string_view name) const;
    const std::vector<std::string>& names() const { return names_; }

  private:
    std::vector<std::string> names_;
};

}  // namespace roofline::analyze
