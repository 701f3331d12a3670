// From the name of a stored tensor to the operator that reads it: names of Hugging Face checkpoints
// ("model.layers.3.mlp.experts.17.up_proj.weight") and of GGUF files ("blk.3.ffn_up_exps.weight") alike.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "roofline/io/tensors.hpp"
#include "roofline/model/role.hpp"

namespace roofline::io {

struct TensorPlace {
    std::optional<int> layer;  // as numbered in the name; under "mtp.layers." it counts the MTP layers
    model::Role role = model::Role::other;
    bool vision = false;  // the vision or audio side and its projector: role is then `other`
    bool mtp = false;     // multi-token prediction, known from the name
};

// Scales, zero points and the like have the role of the matrix they belong to. Unknown names are Role::other.
TensorPlace place_tensor(std::string_view name);

// All tensors of a model at once, in their order. Two things show only from the company a tensor keeps:
// - a layer that owns MTP tensors (GGUF "nextn.", DeepSeek "eh_proj") is an MTP layer with all it has;
// - attn_qkv and attn_gate of a GGUF layer that owns ssm_ tensors are the input projections of linear attention.
std::vector<TensorPlace> place_tensors(std::span<const StoredTensor> tensors);

}  // namespace roofline::io
