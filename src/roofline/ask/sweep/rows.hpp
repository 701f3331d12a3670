// A point of a sweep as a line of text. Lines do not depend on each other, so any number of threads may write them,
// each with a RowWriter of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "roofline/ask/sweep/columns.hpp"
#include "roofline/ask/sweep/grid.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::ask {

/// `cells`: plain values between separators that no value holds, for tables and databases.
enum class Spelling { csv, jsonl, cells };
inline constexpr char cell_separator = '\x1f';

/// How rows look: what all writers of a sweep have in common.
struct RowLayout {
    const Grid* grid = nullptr;
    std::vector<MetricColumn> metrics;
    Spelling spelling = Spelling::csv;
    bool always_chunked = false;  // --stage mixed: where no chunk is given, the prompt is one

    std::vector<std::string> column_names() const;
    /// The first line of a file; empty where there is none.
    std::string header() const;
};

class RowWriter {
  public:
    explicit RowWriter(const RowLayout& layout);
    ~RowWriter();

    void append(std::size_t row, std::string& text);
    /// The beginning of a row, up to and without its metrics: what tells points apart.
    void append_axes(std::size_t row, std::string& text);
    /// Why the row that was written last has no numbers; empty: it has.
    const std::string& problem() const { return row_problem_; }

  private:
    struct Prepared;  // a setup that was realised
    struct Memo;
    struct LoadAnswer;

    void prepare(std::size_t row);
    void write_axes(std::string& text) const;
    void write_segment(std::size_t segment, std::string& text);
    void compute_segment(std::size_t segment, std::string& text);
    std::optional<LoadAnswer> answer_load();

    const RowLayout& layout_;
    std::size_t setup_ = static_cast<std::size_t>(-1);
    bool loaded_ = false;
    std::string setup_text_;  // the values of the setup axes, spelt
    predict::Workload workload_;
    std::unique_ptr<Prepared> prepared_;                     // empty: there is a problem
    std::string problem_;                                    // of the setup
    std::string row_problem_;                                // of the row, which may have its own under load
    std::vector<Source> sources_;                            // each makes a segment of a row
    std::vector<std::vector<const MetricColumn*>> columns_;  // of each segment
    std::vector<std::unique_ptr<Memo>> memos_;
};

}  // namespace roofline::ask
