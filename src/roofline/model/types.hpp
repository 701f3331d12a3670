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
    RoleTypes outside;                 // embedding, head, final norm
    std::vector<RoleTypes> layers;     // one per layer
    std::vector<RoleTypes> predictor;  // one per layer of a module that predicts; empty: as the stack has them
    DType stream = DType::bf16;        // residual stream and everything between operators
    DType attention = DType::bf16;     // products inside attention
    Format kv = plain_format(DType::bf16);

    const WeightType& outside_layers(Role role) const { return outside[static_cast<std::size_t>(role)]; }
    const WeightType& of(std::size_t layer, Role role) const { return layers[layer][static_cast<std::size_t>(role)]; }
    Bytes stream_bytes(double elements) const { return Bytes(elements * bits(stream) / 8.0); }
    double kv_bytes(double elements) const { return elements * bits_per_element(kv) / 8.0; }
};

/// The same type for every matrix; norms, routers, state vectors and the embedding table stay in the stream type unless
/// the weights are a plain type themselves.
TypePlan uniform_plan(std::size_t layers, const Format& weights, DType activation, const Format& kv);

/// As llama.cpp runs a GGUF file whose routed experts, other matrices, and embedding table and head are in these
/// formats: activations are rounded to 8 bits before they meet quantised weights (to 4 bits where those are 4-bit
/// floats), the router stays in fp32.
struct GgufFormats {
    Format experts;
    Format matrices;
    Format table;
};
TypePlan ggml_plan(std::size_t layers, const GgufFormats& formats, const Format& kv);

/// What a file that is called by one format holds: "mxfp4" keeps all but the experts in q8_0, "q4_k" in q6_k; "q4_0"
/// keeps a table in q8_0.
GgufFormats gguf_formats(const Format& named);

/// Roles that quantisers leave alone: tiny, sensitive, or not a matrix product.
bool usually_quantised(Role role);

/// 16-bit types (and wider) carry the residual stream themselves; beside narrower activations it stays bf16.
DType stream_type(DType activation);

}  // namespace roofline::model
