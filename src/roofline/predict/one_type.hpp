// One number type for a whole model, as --dtype and reports name it.
#pragma once

#include "roofline/predict/setup.hpp"

namespace roofline::predict {

/// For weights, activations and KV cache, as far as that makes sense: weight-only formats leave activations alone, and
/// nobody keeps a KV cache in a 4-bit weight format.
TypeChoice in_one_type(const Format& format);

}  // namespace roofline::predict
