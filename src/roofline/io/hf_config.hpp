// Hugging Face config.json: which part of it is the language model, which family reads it, and what to say about the
// rest (a vision tower, prediction layers).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/io/fields.hpp"
#include "roofline/model/architecture.hpp"
#include "roofline/model/types.hpp"

namespace roofline::io {

struct HfModel {
    model::Architecture architecture;
    model::TypePlan types;
    std::string types_summary;
};

Result<HfModel> read_hf_config(const Json& config, std::string_view file);

}  // namespace roofline::io
