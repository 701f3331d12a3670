// Element-wise operators: tensors in, stretched to one another, one out.
#include <algorithm>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

template <std::size_t Inputs, int FlopsPerNumber, int OutSize = 0>
std::optional<Effort> pointwise(const Call& call) {
    return elementwise(call, Inputs, FlopsPerNumber, OutSize);
}

}  // namespace

void elementwise_operators(Formulas& table) {
    table["add"] = pointwise<2, 1>;
    table["sub"] = pointwise<2, 1>;
    table["rsub"] = pointwise<2, 1>;
    table["mul"] = pointwise<2, 1>;
    table["div"] = pointwise<2, 1>;
    table["pow"] = pointwise<2, 1>;
    table["neg"] = pointwise<1, 1>;
    table["abs"] = pointwise<1, 1>;
    table["exp"] = pointwise<1, 1>;
    table["log"] = pointwise<1, 1>;
    table["sqrt"] = pointwise<1, 1>;
    table["rsqrt"] = pointwise<1, 1>;
    table["sin"] = pointwise<1, 1>;
    table["cos"] = pointwise<1, 1>;
    table["tanh"] = pointwise<1, 1>;
    table["erf"] = pointwise<1, 1>;
    table["reciprocal"] = pointwise<1, 1>;
    for (const char* name :
         {"exp2",  "log2",       "log10",         "tan",   "asin",   "acos",   "atan",    "sinh",  "cosh",
          "asinh", "acosh",      "atanh",         "erfc",  "erfinv", "lgamma", "digamma", "trunc", "frac",
          "sgn",   "nan_to_num", "conj_physical", "angle", "sinc",   "i0",     "signbit"})
        table[name] = pointwise<1, 1>;
    for (const char* name : {"elu", "celu", "selu", "mish", "hardsigmoid", "hardswish", "hardshrink", "softshrink",
                             "threshold", "log_sigmoid_forward", "relu6"})
        table[name] = pointwise<1, 3>;
    for (const char* name : {"hypot", "copysign", "fmin", "fmax", "logaddexp", "logaddexp2", "xlogy", "heaviside",
                             "nextafter", "_prelu_kernel"})
        table[name] = pointwise<2, 1>;
    // (size, angle): a complex number of each pair, twice as wide.
    for (const char* name : {"polar", "complex"})
        table[name] = [](const Call& c) { return elementwise(c, 2, 4.0, 2.0 * c.size(0)); };
    table["cummax"] = pointwise<1, 1>;
    table["cummin"] = pointwise<1, 1>;
    table["logcumsumexp"] = pointwise<1, 3>;
    table["masked_scatter"] = pointwise<2, 0>;
    table["_masked_scale"] = pointwise<2, 2>;
    table["logical_xor"] = pointwise<2, 1, 1>;
    table["isfinite"] = pointwise<1, 1, 1>;
    table["isposinf"] = pointwise<1, 1, 1>;
    table["bucketize"] = pointwise<1, 1, 8>;
    table["relu"] = pointwise<1, 1>;
    table["square"] = pointwise<1, 1>;
    table["sigmoid"] = pointwise<1, 3>;
    table["silu"] = pointwise<1, 4>;
    table["gelu"] = pointwise<1, 8>;
    table["softplus"] = pointwise<1, 3>;
    table["leaky_relu"] = pointwise<1, 1>;
    table["hardtanh"] = pointwise<1, 2>;
    table["clamp"] = pointwise<1, 2>;
    table["clamp_min"] = pointwise<1, 1>;
    table["clamp_max"] = pointwise<1, 1>;
    table["minimum"] = pointwise<2, 1>;
    table["maximum"] = pointwise<2, 1>;
    // Optimizers add the square of a gradient in place: its two factors may be one tensor.
    table["addcmul"] = [](const Call& c) { return elementwise(c, c.signature().name.ends_with('_') ? 2 : 3, 2.0); };
    table["addcdiv"] = pointwise<3, 2>;
    table["lerp"] = pointwise<2, 3>;
    table["where"] = pointwise<3, 1>;
    table["masked_fill"] = pointwise<2, 1>;
    table["remainder"] = pointwise<2, 1>;
    table["fmod"] = pointwise<2, 1>;
    table["floor_divide"] = pointwise<2, 1>;
    table["floor"] = pointwise<1, 1>;
    table["ceil"] = pointwise<1, 1>;
    table["round"] = pointwise<1, 1>;
    table["bitwise_and"] = pointwise<2, 1>;
    table["bitwise_or"] = pointwise<2, 1>;
    table["bitwise_not"] = pointwise<1, 1>;
    table["bitwise_xor"] = pointwise<2, 1>;
    table["atan2"] = pointwise<2, 1>;
    table["__lshift__"] = pointwise<2, 1>;
    table["__rshift__"] = pointwise<2, 1>;
    table["bitwise_right_shift"] = pointwise<2, 1>;
    table["bitwise_left_shift"] = pointwise<2, 1>;
    table["native_dropout"] = pointwise<1, 2>;
    table["dropout"] = pointwise<1, 2>;
    table["threshold_backward"] = pointwise<2, 1>;
    table["silu_backward"] = pointwise<2, 6>;
    table["gelu_backward"] = pointwise<2, 12>;
    table["tril"] = pointwise<1, 1>;
    table["triu"] = pointwise<1, 1>;
    table["sign"] = pointwise<1, 1>;
    table["glu"] = pointwise<1, 4>;
    table["logit"] = pointwise<1, 2>;
    table["log1p"] = pointwise<1, 1>;
    table["expm1"] = pointwise<1, 1>;
    table["flip"] = pointwise<1, 0>;
    table["roll"] = pointwise<1, 0>;
    table["eq"] = pointwise<2, 1, 1>;
    table["ne"] = pointwise<2, 1, 1>;
    table["lt"] = pointwise<2, 1, 1>;
    table["le"] = pointwise<2, 1, 1>;
    table["gt"] = pointwise<2, 1, 1>;
    table["ge"] = pointwise<2, 1, 1>;
    table["logical_not"] = pointwise<1, 1, 1>;
    table["logical_and"] = pointwise<2, 1, 1>;
    table["logical_or"] = pointwise<2, 1, 1>;
    table["isnan"] = pointwise<1, 1, 1>;
    table["isinf"] = pointwise<1, 1, 1>;
    table["isneginf"] = pointwise<1, 1, 1>;
    table["isin"] = pointwise<1, 1, 1>;
    table["cumsum"] = pointwise<1, 1>;
    table["cumprod"] = pointwise<1, 1>;
    table["sort"] = pointwise<1, 1>;
    table["argsort"] = pointwise<1, 1, 8>;
    table["native_layer_norm_backward"] = [](const Call& c) { return elementwise(c, 2, 14.0); };
    table["_softmax_backward_data"] = pointwise<2, 4>;
    table["mse_loss"] = pointwise<2, 3>;
    table["constant_pad_nd"] = pointwise<1, 0>;
    table["upsample_nearest2d"] = pointwise<1, 0>;
    table["max_pool2d_with_indices"] = pointwise<1, 1>;
    table["avg_pool2d"] = pointwise<1, 1>;
}

}  // namespace roofline::analyze
