// The answer to `predict` for people: as text, Markdown and CSV; and its arithmetic, line by line.
#pragma once

#include <string>
#include <vector>

#include "roofline/predict/report.hpp"

namespace roofline::render {

enum class Detail { main_operators, all_operators };

std::string predict_text(const predict::Scenario& scenario, const predict::Report& report, Detail detail);
std::string predict_markdown(const predict::Scenario& scenario, const predict::Report& report, Detail detail);
std::string predict_csv(const predict::Report& report);

/// The derivation a lecturer would write on the board, operator by operator.
std::string explain(const predict::Scenario& scenario, const predict::Report& report);

/// What a change of figures did to each stage, and what it left alone.
std::string changes(const predict::Report& before, const predict::Report& after, const std::string& what);

/// What was asked and whether it fits, a line each, for verbs that answer something else about it.
std::vector<std::string> question_lines(const predict::Scenario& scenario, const predict::Fit& fit);

/// "4.68-5.01 ms": two of the same, the unit once.
std::string span_of(const std::string& low, const std::string& high);

}  // namespace roofline::render
