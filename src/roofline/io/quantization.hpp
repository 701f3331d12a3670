// Which number type a checkpoint stores each weight in, from what its config says: torch_dtype, quantization_config,
// hf_quant_config.json; with the modules left out and the layers treated otherwise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofline/io/fields.hpp"
#include "roofline/model/architecture.hpp"
#include "roofline/model/types.hpp"

namespace roofline::io {

struct CheckpointTypes {
    model::TypePlan plan;
    std::string summary;  // "bf16", "fp8_block, head bf16"
};

/// `language` is the language model's part of the config, `whole` the file it stands in: quantisation may be said in
/// either.
CheckpointTypes read_types(Fields& language, const Json& whole, const model::Architecture& architecture,
                           std::vector<std::string>& notes);

/// Does a pattern of excluded or quantised modules (a name, a glob, or "re:" a simple expression) speak of a module?
bool module_matches(std::string_view pattern, std::string_view module);

}  // namespace roofline::io
