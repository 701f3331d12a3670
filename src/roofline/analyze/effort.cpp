#include "roofline/analyze/effort.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {

double bytes_of_type(std::string_view type) {
    static const std::unordered_map<std::string_view, double> sizes = {
        {"float", 4},
        {"c10::BFloat16", 2},
        {"c10::Half", 2},
        {"double", 8},
        {"long int", 8},
        {"long", 8},
        {"int", 4},
        {"short int", 2},
        {"short", 2},
        {"signed char", 1},
        {"unsigned char", 1},
        {"char", 1},
        {"bool", 1},
        {"c10::complex<float>", 8},
        {"c10::complex<double>", 16},
        {"unsigned int", 4},
        {"unsigned short", 2},
        {"unsigned long", 8},
        {"BFloat16", 2},
        {"Half", 2},
        {"Float", 4},
        {"Double", 8},
        {"Long", 8},
        {"Int", 4},
        {"Byte", 1},
        {"Char", 1},
        {"Bool", 1},
        {"float16", 2},
        {"bfloat16", 2},
        {"float32", 4},
        {"int64", 8},
        {"int32", 4},
        {"int8", 1},
        {"uint8", 1},
    };
    if (const auto found = sizes.find(type); found != sizes.end()) return found->second;
    if (type.find("Float8") != std::string_view::npos || type.find("float8") != std::string_view::npos) return 1;
    if (type.find("Float4") != std::string_view::npos || type.find("float4") != std::string_view::npos) return 1;
    return 0;
}

DType dtype_of(std::string_view type) {
    if (type.find("BFloat16") != std::string_view::npos || type == "bfloat16") return DType::bf16;
    if (type.find("Half") != std::string_view::npos || type == "float16") return DType::fp16;
    if (type.find("loat8") != std::string_view::npos) return DType::fp8;
    if (type.find("loat4") != std::string_view::npos) return DType::fp4;
    if (type == "double" || type == "Double") return DType::fp64;
    if (type == "signed char" || type == "unsigned char" || type == "Char" || type == "int8" || type == "uint8")
        return DType::int8;
    return DType::fp32;
}

double elements(const Tensor& tensor) {
    double product = 1.0;
    for (const std::int64_t size : tensor.dims) product *= static_cast<double>(size);
    return product;
}

double distinct(const Tensor& tensor) {
    double product = 1.0;
    for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
        const bool expanded = i < tensor.strides.size() && tensor.strides[i] == 0;
        if (!expanded || tensor.dims[i] == 0) product *= static_cast<double>(tensor.dims[i]);
    }
    return product;
}

std::string described(const Signature& signature) {
    std::string text = signature.name;
    std::size_t shown = 0;
    for (const Argument& argument : signature.arguments) {
        for (const Tensor& tensor : argument.tensors) {
            if (tensor.dims.empty() || shown == 3) continue;
            ++shown;
            text += " [";
            for (std::size_t i = 0; i < tensor.dims.size(); ++i)
                text += fmt::format("{}{}", i == 0 ? "" : "x", tensor.dims[i]);
            text += "]";
        }
    }
    return text;
}

#define ROOFLINE_ENTRY(name) void name##_operators(Formulas& table);
#include "roofline/analyze/operators.inc"
#undef ROOFLINE_ENTRY

namespace {

const Formulas& formulas() {
    static const Formulas all = [] {
        Formulas table;
#define ROOFLINE_ENTRY(name) name##_operators(table);
#include "roofline/analyze/operators.inc"
#undef ROOFLINE_ENTRY
        return table;
    }();
    return all;
}

/// Bytes that pass one device's links: what is sent by a ring, which no algorithm without help of a switch undercuts.
std::optional<Effort> collective(const Signature& signature) {
    const double size = bytes_of_type(signature.type);
    if (size == 0.0 || (signature.elements_in == 0.0 && signature.elements_out == 0.0)) return std::nullopt;
    const double larger = std::max(signature.elements_in, signature.elements_out) * size;
    const double others = signature.ranks > 0.0 ? (signature.ranks - 1.0) / signature.ranks : 0.0;
    Effort effort;
    effort.kind = Kind::collective;
    const bool reduces = signature.collective.find("allreduce") != std::string::npos ||
                         signature.collective.find("all_reduce") != std::string::npos;
    effort.link = (reduces ? 2.0 : 1.0) * larger * others;
    effort.activations = (signature.elements_in + signature.elements_out) * size;
    return effort;
}

/// "aten::add_" -> "add": in place or not, it costs the same.
std::string_view plain_name(std::string_view name) {
    const std::size_t colons = name.rfind("::");
    if (colons != std::string_view::npos) name.remove_prefix(colons + 2);
    const std::size_t dot = name.find('.');
    if (dot != std::string_view::npos) name = name.substr(0, dot);
    if (name.size() > 1 && name.back() == '_' && !name.ends_with("__")) name.remove_suffix(1);
    return name;
}

}  // namespace

std::optional<Effort> effort_of(const Signature& signature) {
    if (!signature.collective.empty() || signature.elements_in > 0.0) {
        if (auto effort = collective(signature)) return effort;
    }
    if (!signature.has_shapes) return std::nullopt;
    const Call call(signature);
    if (signature.name.starts_with("triton_")) return fused_kernel(call);
    const std::string_view name = plain_name(signature.name);
    if (name.starts_with("_foreach_")) return over_lists(call, name);
    const auto found = formulas().find(name);
    if (found != formulas().end()) return found->second(call);
    if (!signature.name.starts_with("onnx::") || signature.outputs.empty()) return std::nullopt;
    // Files that hold outputs tell what any operator reads and writes; a FLOP for each number it makes.
    double numbers = 0.0;
    for (const Tensor& tensor : signature.outputs) numbers += elements(tensor);
    Effort effort =
        moved(Kind::elementwise, numbers, call.all_bytes() + numbers * bytes_of_type(signature.output_type));
    effort.estimated = true;
    return effort;
}

}  // namespace roofline::analyze
