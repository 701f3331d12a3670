// Which number type every weight, activation and cached value has. Decided once, per layer and role, before lowering;
// from then on a checkpoint that keeps its first layer in bf16 needs no special case.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "roofline/core/dtype.hpp"
#include "roofline/model/role.hpp"

namespace roofline::model {

struct WeightType {
    Format format = plain_format(DType::bf16);
    DType activation = DType::bf16;   // type of the activations it is multiplied with
    std::optional<double> file_bits;  // exact bits per parameter, scales included, where a file says so

    /// Weight-only formats are unpacked and multiplied in the activation type.
    DType compute() const { return format.weight_only ? activation : wider(format.value, activation); }
    Bytes bytes(double inner, double cols) const {
        return file_bits ? Bytes(inner * cols * *file_bits / 8.0) : matrix_bytes(format, inner, cols);
    }
};

using RoleTypes = std::array<WeightType, role_count>;

struct TypePlan {
    RoleTypes outside;              // embedding, head, final norm
    std::vector<RoleTypes> layers;  // one per layer
    DType stream = DType::bf16;     // residual stream and everything between operators
    DType attention = DType::bf16;  // products inside attention
    Format kv = plain_format(DType::bf16);

    const WeightType& outside_layers(Role role) const { return outside[static_cast<std::size_t>(role)]; }
    const WeightType& of(std::size_t layer, Role role) const { return layers[layer][static_cast<std::size_t>(role)]; }
    Bytes stream_bytes(double elements) const { return Bytes(elements * bits(stream) / 8.0); }
    double kv_bytes(double elements) const { return elements * bits_per_element(kv) / 8.0; }
};

/// The same type for every matrix; norms, routers, state vectors and the embedding table stay in the stream type unless
/// the weights are a plain type themselves.
TypePlan uniform_plan(std::size_t layers, const Format& weights, DType activation, const Format& kv);

/// Roles that quantisers leave alone: tiny, sensitive, or not a matrix product.
bool usually_quantised(Role role);

/// 16-bit types (and wider) carry the residual stream themselves; beside narrower activations it stays bf16.
DType stream_type(DType activation);

}  // namespace roofline::model
