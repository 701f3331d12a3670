// A comparison as people and programs read it: tables, CSV and JSON (schema/compare.schema.json).
#pragma once

#include <optional>
#include <string>

#include "roofline/assess/compare.hpp"
#include "roofline/io/report_json.hpp"

namespace roofline::cli {

struct Judgement {
    std::optional<double> fail_above;  // as a fraction
    std::vector<assess::Comparison::Failure> failures;
};

/// `top`: rows a stage; zero: all. `markdown`: for a document instead of a terminal.
std::string compare_text(const assess::Comparison& comparison, const Judgement& judgement, std::size_t top,
                         bool markdown);
std::string compare_csv(const assess::Comparison& comparison);
io::OrderedJson compare_json(const assess::Comparison& comparison, const Judgement& judgement,
                             const std::vector<std::string>& files, const io::RunInfo& run);

}  // namespace roofline::cli
