// An analysis for people: what holds the run back first, then the tables behind it. Markdown and CSV are other
// spellings of the same tables.
#pragma once

#include <string>
#include <vector>

#include "roofline/analyze/analysis.hpp"

namespace roofline::analyze {

struct TextOptions {
    std::string by = "record";  // record, operator, kernel, group
    std::string stage;          // only stages whose name begins with it; empty: all
    std::size_t top = 20;       // rows of a table; zero: all
    bool markdown = false;
    std::size_t columns = 0;  // of the terminal that it is for; zero: it is for none
};

std::string analysis_text(const Analysis& analysis, const TextOptions& options);
std::string analysis_csv(const std::vector<Analysis>& analyses, const TextOptions& options);

/// A count: whole unless it is a mean.
std::string counted(double value);

/// The stages of an analysis cut as asked.
std::vector<AccountStage> cut(const Analysis& analysis, const std::string& by);

}  // namespace roofline::analyze
