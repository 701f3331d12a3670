// What the weights of a model's products are in, as kernels read them: told by the type that was asked for, by those of
// a file, and by the bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "roofline/bench/weight_format.hpp"
#include "roofline/core/dtype.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::bench {

/// Bytes of a product's weights, of one expert where there are several.
double bytes_of_one(const model::Operator& op);
/// Whether kernels for processors, ours and llama.cpp's, round x to int8 beside weights of some of these types ("q4_k +
/// q6_k + f32"): a limit that had them multiplied in more bits could be beaten.
bool rounds_activations(std::string_view types);
/// That no kernel of a backend reads weights, and what to ask for instead.
std::string unread_by(std::string_view backend, WeightFormat format);
/// Which of the formats that kernels read stands for one; empty for those that none reads.
std::optional<WeightFormat> weight_format(const Format& format);
/// The format of a product's weights, or why no kernel reads them. `stored` are the types of the model's file, "q4_k +
/// q6_k + f32", where it has any of its own.
Result<StoredAs> weight_format(const model::Operator& op, std::string_view stored);

}  // namespace roofline::bench
