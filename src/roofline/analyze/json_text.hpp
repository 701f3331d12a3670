// Small JSON files as formats meet them: whole, or a document a line.
#pragma once

#include <vector>

#include "roofline/analyze/input.hpp"
#include "roofline/io/fields.hpp"

namespace roofline::analyze {

inline constexpr std::size_t largest_document = std::size_t{64} << 20U;

struct Documents {
    std::vector<io::Json> all;
    std::string cut;  // not empty: why the last line was left out
};

/// One document, an array of them, or one on each line. A last line that was cut off is left out and said.
Result<Documents> read_documents(Input& input);

/// A number that may be written as text; nothing where it is neither or is not finite.
std::optional<double> number_at(const io::Json& object, std::string_view key);
std::string text_at(const io::Json& object, std::string_view key);

}  // namespace roofline::analyze
