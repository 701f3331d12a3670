#include "roofline/analyze/call.hpp"

#include <algorithm>
#include <cstdlib>

namespace roofline::analyze {

double at(const Tensor& tensor, std::ptrdiff_t index) {
    const auto rank = static_cast<std::ptrdiff_t>(tensor.dims.size());
    const std::ptrdiff_t place = index < 0 ? rank + index : index;
    return place < 0 || place >= rank ? 1.0 : static_cast<double>(tensor.dims[static_cast<std::size_t>(place)]);
}

Effort product(Product sizes, std::string_view type, double weights, double activations) {
    Effort effort;
    effort.kind = Kind::gemm;
    effort.engine = Engine::matrix;
    effort.type = dtype_of(type);
    effort.flops = 2.0 * sizes.copies * sizes.rows * sizes.columns * sizes.inner;  // F1: a multiply-add is two
    effort.weights = weights;
    effort.activations = activations;
    effort.product = sizes;
    return effort;
}

Effort moved(Kind kind, double flops, double bytes) {
    Effort effort;
    effort.kind = kind;
    effort.flops = flops;
    effort.activations = bytes;
    return effort;
}

namespace {

/// Shapes stretched to one another, as element-wise operators do.
Tensor broadcast(const Call& call, std::size_t most) {
    Tensor result;
    for (std::size_t i = 0; i < most; ++i) {
        const Tensor* tensor = call.tensor(i);
        if (tensor == nullptr) continue;
        if (tensor->dims.size() > result.dims.size())
            result.dims.insert(result.dims.begin(), tensor->dims.size() - result.dims.size(), 1);
        for (std::size_t k = 0; k < tensor->dims.size(); ++k) {
            auto& size = result.dims[result.dims.size() - 1 - k];
            const std::int64_t other = tensor->dims[tensor->dims.size() - 1 - k];
            size = size == 1 ? other : size;
        }
    }
    return result;
}

}  // namespace

std::optional<Effort> elementwise(const Call& call, std::size_t inputs, double flops, double out_size) {
    if (call.tensor(0) == nullptr && call.tensor(1) == nullptr) return std::nullopt;
    const Tensor out = broadcast(call, inputs);
    double bytes = 0.0;
    double widest = 0.0;
    double widest_scalar = 0.0;
    for (std::size_t i = 0; i < inputs; ++i) {
        const Tensor* tensor = call.tensor(i);
        if (tensor == nullptr) continue;
        if (tensor->dims.empty()) {
            widest_scalar = std::max(widest_scalar, call.size(i));
            continue;
        }
        bytes += distinct(*tensor) * call.size(i);
        widest = std::max(widest, call.size(i));
    }
    if (out_size == 0.0) out_size = widest > 0.0 ? widest : widest_scalar;
    bytes += elements(out) * out_size;
    return moved(Kind::elementwise, flops * elements(out), bytes);
}

/// Kernels that torch.compile made: every tensor it was given is read or written at least once; each operator in its
/// name costs a FLOP a number.
std::optional<Effort> fused_kernel(const Call& call) {
    const std::string& name = call.signature().name;
    const bool looks_up = name.find("embedding") != std::string::npos;
    double picks = 0.0;  // rows that an index of whole numbers takes from a table
    for (const Argument& argument : call.signature().arguments) {
        if (argument.type != "long int" && argument.type != "int") continue;
        for (const Tensor& tensor : argument.tensors) picks = std::max(picks, distinct(tensor));
    }
    double largest = 0.0;
    double not_read = 0.0;
    std::vector<const Tensor*> matrices;
    for (const Argument& argument : call.signature().arguments) {
        for (const Tensor& tensor : argument.tensors) {
            if (bytes_of_type(argument.type) == 0 || tensor.dims.empty()) continue;
            if (looks_up && tensor.dims.size() == 2 && picks > 0.0 && at(tensor, 0) > picks) {
                not_read += (at(tensor, 0) - picks) * at(tensor, 1) * bytes_of_type(argument.type);
                continue;
            }
            largest = std::max(largest, distinct(tensor));
            if (tensor.dims.size() == 2) matrices.push_back(&tensor);
        }
    }
    if (largest == 0.0) return std::nullopt;
    if (name.starts_with("triton_tem") && name.find("mm") != std::string::npos && matrices.size() >= 2 &&
        at(*matrices[0], 1) == at(*matrices[1], 0)) {
        const Product sizes{at(*matrices[0], 0), at(*matrices[1], 1), at(*matrices[0], 1), 1.0};
        return product(sizes, call.type(0), call.bytes(1), call.all_bytes() - call.bytes(1));
    }
    double operators = 0.0;
    const std::size_t fused = name.find("fused_");
    if (fused != std::string::npos)
        operators =
            static_cast<double>(std::count(name.begin() + static_cast<std::ptrdiff_t>(fused), name.end(), '_')) - 1.0;
    Effort effort =
        moved(name.starts_with("triton_red") || name.starts_with("triton_per") ? Kind::norm : Kind::elementwise,
              std::max(1.0, operators) * largest, call.all_bytes() - not_read);
    effort.estimated = true;
    return effort;
}

}  // namespace roofline::analyze
