#include "roofline/predict/one_type.hpp"

namespace roofline::predict {

TypeChoice in_one_type(const Format& format) {
    TypeChoice choice;
    choice.weights = &format;
    if (format.weight_only) return choice;
    choice.activations = &format;
    const DType value = format.value;
    if (value == DType::fp32 || value == DType::bf16 || value == DType::fp16 || value == DType::fp8)
        choice.kv = &plain_format(value);
    return choice;
}

}  // namespace roofline::predict
