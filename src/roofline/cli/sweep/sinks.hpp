// Where the rows of a sweep go: stdout, a text file that a later run can take up again, a table for people, a database.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "roofline/ask/sweep/rows.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/render/table.hpp"

namespace roofline::cli {

/// Rows [first, last) of a sweep.
struct RowRange {
    std::size_t first = 0;
    std::size_t last = 0;
    std::size_t size() const { return last - first; }
};

class Sink {
  public:
    virtual ~Sink() = default;
    /// Rows of this sweep that were there already.
    virtual std::size_t kept() const { return 0; }
    /// Whole rows, in order.
    virtual Result<void> write(std::string_view text) = 0;
    /// After the last row, or after the last before the sweep was stopped.
    virtual Result<void> close() = 0;
};

Result<std::unique_ptr<Sink>> text_sink(const ask::RowLayout& layout);
/// Takes up a file that holds the first rows of this very sweep; refuses any other, unless it may be overwritten.
Result<std::unique_ptr<Sink>> file_sink(const std::string& path, const ask::RowLayout& layout, RowRange rows,
                                        bool overwrite);
/// Written whole in the end, as `spell` spells it: what is the same in all rows, and the table of the rest.
using SpellTable = std::function<std::string(const std::string& same, const render::Table& table)>;
Result<std::unique_ptr<Sink>> table_sink(const std::string& path, const ask::RowLayout& layout, SpellTable spell);
/// One table, `sweep`, with the number of the point as its key. Likewise taken up or refused.
Result<std::unique_ptr<Sink>> sqlite_sink(const std::string& path, const ask::RowLayout& layout, RowRange rows,
                                          bool overwrite);

}  // namespace roofline::cli
