// What an operator call costs at least, from its name and shapes alone: FLOPs, and the bytes it must read and write
// once each. Arithmetic one can check on paper; no device and no time in sight.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "roofline/analyze/timeline.hpp"
#include "roofline/core/record.hpp"

namespace roofline::analyze {

/// Sizes of a matrix product: [rows x inner] x [inner x columns], `copies` of them.
struct Product {
    double rows = 0.0;
    double columns = 0.0;
    double inner = 0.0;
    double copies = 1.0;
};

/// Sizes of an attention core.
struct AttentionSizes {
    double batch = 0.0;
    double heads = 0.0;
    double kv_heads = 0.0;
    double queries = 0.0;  // per sequence
    double keys = 0.0;     // per sequence
    bool causal = false;
};

struct Effort {
    Kind kind = Kind::other;
    Engine engine = Engine::vector;
    DType type = DType::fp32;
    double flops = 0.0;
    double weights = 0.0;      // bytes of parameters, as far as the operator tells
    double kv = 0.0;           // bytes of keys and values
    double activations = 0.0;  // all other bytes read and written
    double link = 0.0;         // bytes to and from other devices
    std::optional<Product> product;
    std::optional<AttentionSizes> attention;
    bool looks_up_rows = false;  // of a table: an embedding
    bool estimated = false;      // shapes alone do not tell; this is what they leave likely
    bool own_kernels = false;    // counts what it starts itself, not what operators inside it do
};

/// Empty where there is no formula for the name, or the shapes are not there or do not fit it.
std::optional<Effort> effort_of(const Signature& signature);

/// Bytes of one number of a type as profilers spell it; zero for what is no tensor.
double bytes_of_type(std::string_view type);
DType dtype_of(std::string_view type);

/// Numbers that lie in memory: an expanded dimension (stride zero) is there once.
double distinct(const Tensor& tensor);
double elements(const Tensor& tensor);

/// "aten::mm [4x2048] [2048x8192]"
std::string described(const Signature& signature);

}  // namespace roofline::analyze
