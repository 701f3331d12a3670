// By which type of constants an operator's kernels are known.
#pragma once

#include <string>
#include <string_view>

#include "roofline/core/device.hpp"
#include "roofline/model/operators.hpp"
#include "roofline/model/step.hpp"

namespace roofline::predict {

/// What kernels multiply in where `wanted` is asked for. A device that lacks it has them unpack numbers to 16 bits,
/// also where a narrower type stands in for the limit (F9).
DType multiplied_in(const Device& device, DType wanted);

/// The type whose constants apply on a device: `label` says how numbers lie in memory and what they are multiplied in,
/// if that is another ("mxfp4/bf16"), `wanted` the latter. nvfp4 on a Hopper is "nvfp4/bf16", as if it had been asked
/// for.
std::string type_on(const Device& device, std::string_view label, DType wanted);
/// The same for attention, whose label begins with what it computes in: "fp8" on an Ampere is "bf16/fp8".
std::string attention_type_on(const Device& device, std::string_view label, DType wanted);

/// What constants of a class are told apart by: the type of the weights; for element-wise work, what kind it is.
std::string kernel_type(const model::Operator& op, model::Phase phase, const Device& device);

}  // namespace roofline::predict
