// Comma-separated tables as spreadsheets and Python write them: a header, quoted fields, CRLF or LF.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"

namespace roofline::assess {

class CsvTable {
  public:
    struct Row {
        int line = 0;  // in the file, the header being line 1
        std::vector<std::string> cells;
    };

    static Result<CsvTable> parse(std::string_view text, std::string file);
    /// From cells that were something else before; "lines" then count rows from 1.
    static CsvTable of_cells(std::string file, std::vector<std::string> columns,
                             std::vector<std::vector<std::string>> rows);

    const std::string& file() const { return file_; }
    const std::vector<std::string>& columns() const { return columns_; }
    const std::vector<Row>& rows() const { return rows_; }
    bool has(std::string_view column) const { return find(column).has_value(); }

    /// Empty where the column is absent.
    std::string_view text(const Row& row, std::string_view column) const;
    /// Nothing where the cell is empty or is not a number.
    std::optional<double> number(const Row& row, std::string_view column) const;

  private:
    std::optional<std::size_t> find(std::string_view column) const;

    std::string file_;
    std::vector<std::string> columns_;
    std::vector<Row> rows_;
};

/// A whole cell that is a finite number, spaces around it allowed.
std::optional<double> parse_number(std::string_view text);

}  // namespace roofline::assess
