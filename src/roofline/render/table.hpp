// A table as data, and its three spellings: aligned text, Markdown, CSV.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace roofline::render {

enum class Align { left, right };

struct Column {
    std::string title;
    Align align = Align::right;
};

struct Table {
    std::vector<Column> columns;
    std::vector<std::vector<std::string>> rows;

    /// Without the column of that title, where it would say nothing.
    void drop(std::string_view title);
};

std::string as_text(const Table& table, std::string_view indent = "");
std::string as_markdown(const Table& table);
std::string as_csv(const Table& table);

}  // namespace roofline::render
