// transformers 4 leaves out of a nested config what equals the default of its class: the text_config of Gemma 3 4B has
// no heads and no vocabulary, that of LLaVA 1.5 hardly anything at all. What is missing there is not unknown.
#pragma once

#include <string>
#include <vector>

#include "roofline/io/fields.hpp"

namespace roofline::io {

/// Fills in sizes that a nested config of a known class leaves out; the names of those that were.
std::vector<std::string> fill_class_defaults(Json& nested);

}  // namespace roofline::io
