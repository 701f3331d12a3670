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
};

/// `language` is the language model's part of the config, `whole` the file it stands in: quantisation may be said in
/// either.
Result<CheckpointTypes> read_types(Fields& language, const Json& whole, const model::Architecture& architecture);

}  // namespace roofline::io
