#include "roofline/analyze/call.hpp"

#include <algorithm>

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

}  // namespace roofline::analyze
