// Running `sweep` and reading the rows it gives.
#pragma once

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/run.hpp"

namespace roofline::cli::testing {

using Arguments = std::vector<std::string>;
using Row = std::map<std::string, std::string>;

inline std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

inline std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (const char c : line) {
        if (c == '"') {
            quoted = !quoted;
        } else if (c == ',' && !quoted) {
            cells.emplace_back();
        } else {
            cells.back() += c;
        }
    }
    return cells;
}

inline std::vector<Row> rows_of(const std::string& csv) {
    const auto lines = lines_of(csv);
    std::vector<Row> rows;
    if (lines.empty()) return rows;
    const auto names = cells_of(lines.front());
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const auto cells = cells_of(lines[i]);
        EXPECT_EQ(cells.size(), names.size()) << lines[i];
        if (cells.size() != names.size()) continue;
        Row row;
        for (std::size_t column = 0; column < names.size(); ++column) row[names[column]] = cells[column];
        rows.push_back(std::move(row));
    }
    return rows;
}

inline Arguments sweep(Arguments rest) {
    rest.insert(rest.begin(), "sweep");
    return rest;
}

inline std::string output_of(const Arguments& arguments) {
    const Answer answer = run(arguments);
    EXPECT_EQ(answer.exit_code, 0) << typed(arguments) << ": " << answer.err;
    EXPECT_EQ(answer.err, "") << typed(arguments);  // progress is for terminals
    return answer.out;
}

inline std::vector<std::string> column(const std::vector<Row>& rows, const std::string& name) {
    std::vector<std::string> values;
    for (const Row& row : rows) values.push_back(row.count(name) > 0 ? row.at(name) : "no such column");
    return values;
}

/// Six digits are written.
inline void expect_close(const std::string& cell, double value) {
    EXPECT_NEAR(std::strtod(cell.c_str(), nullptr) / value, 1.0, 5e-6) << cell << " against " << value;
}

// 3 x 7 x 5 rows of a model that is quick to price.
inline const Arguments small = sweep({"gpt2", "h100-sxm,rtx-4090,m2-ultra", "-b", "1-64*2", "-c", "128-640+128"});

inline Arguments with(Arguments arguments, const Arguments& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

}  // namespace roofline::cli::testing
