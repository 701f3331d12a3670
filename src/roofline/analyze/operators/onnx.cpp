// Operators of ONNX, as ONNX Runtime's profiles name them. Outputs are in the file, so what is read and written is
// known for every operator; the ones here also have FLOPs, or read less than they are given.
#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

double written(const Call& call) {
    double sum = 0.0;
    for (const Tensor& tensor : call.signature().outputs) sum += elements(tensor);
    return sum * bytes_of_type(call.signature().output_type);
}

/// A weight that was packed when the model was loaded is no input any more: what is written tells its width.
std::optional<Effort> packed_matmul(const Call& call, const Tensor& a) {
    if (call.signature().outputs.size() != 1) return std::nullopt;
    const Tensor& out = call.signature().outputs.front();
    const double inner = at(a, -1);
    const double columns = at(out, -1);
    if (inner == 0.0 || columns == 0.0 || elements(a) / inner != elements(out) / columns) return std::nullopt;
    return product({elements(a) / inner, columns, inner, 1.0}, call.type(0), inner * columns * call.size(0),
                   call.bytes(0) + written(call));
}

/// A [..., rows, inner] by B [inner, columns], or by as many B as there are A.
std::optional<Effort> matmul(const Call& call) {
    const Tensor* a = call.tensor(0, 1);
    const Tensor* b = call.tensor(1, 2);
    if (a != nullptr && call.signature().arguments.size() == 1) return packed_matmul(call, *a);
    if (a == nullptr || b == nullptr || at(*a, -1) != at(*b, -2) || at(*a, -1) == 0.0) return std::nullopt;
    const bool weight = b->dims.size() == 2;
    const double rows = elements(*a) / at(*a, -1);
    const double copies = weight ? 1.0 : elements(*b) / (at(*b, -1) * at(*b, -2));
    if (at(*b, -1) == 0.0 || copies == 0.0) return std::nullopt;
    return product({rows / copies, at(*b, -1), at(*a, -1), copies}, call.type(0), weight ? call.bytes(1) : 0.0,
                   call.bytes(0) + (weight ? 0.0 : call.bytes(1)) + written(call));
}

/// Which side is transposed is an attribute that the file does not hold: the output tells.
std::optional<Effort> gemm(const Call& call) {
    const Tensor* a = call.tensor(0, 2);
    const Tensor* b = call.tensor(1, 2);
    if (a == nullptr || call.signature().outputs.size() != 1) return std::nullopt;
    const Tensor& out = call.signature().outputs.front();
    const double rows = at(out, 0);
    if (rows == 0.0 || out.dims.size() != 2) return std::nullopt;
    const Product sizes{rows, at(out, 1), elements(*a) / rows, 1.0};
    // Packed when the model was loaded, a weight is no input any more; a bias is one of a single row.
    const double weights =
        b != nullptr ? call.bytes(1) + call.bytes(2) : sizes.inner * sizes.columns * call.size(0) + call.bytes(1);
    return product(sizes, call.type(0), weights, call.bytes(0) + written(call));
}

/// Reads the rows it picks, not the table.
std::optional<Effort> gather(const Call& call) {
    const Tensor* table = call.tensor(0, 1);
    if (table == nullptr) return std::nullopt;
    Effort effort = moved(Kind::gather, 0.0, written(call) + call.bytes(1));
    (table->dims.size() == 2 ? effort.weights : effort.activations) += written(call);
    effort.looks_up_rows = table->dims.size() == 2 && at(*table, 1) > 1.0;
    return effort;
}

std::optional<Effort> norm(const Call& call) {
    const Tensor* x = call.tensor(0, 1);
    if (x == nullptr) return std::nullopt;
    return moved(Kind::norm, 5.0 * elements(*x), call.all_bytes() + written(call));
}

/// Names a shape differently and moves nothing.
std::optional<Effort> renamed(const Call&) {
    return moved(Kind::copy, 0.0, 0.0);
}

}  // namespace

void onnx_operators(Formulas& table) {
    table["MatMul"] = matmul;
    table["FusedMatMul"] = matmul;
    table["Gemm"] = gemm;
    table["Gather"] = gather;
    for (const char* name : {"LayerNormalization", "SkipLayerNormalization", "SimplifiedLayerNormalization",
                             "SkipSimplifiedLayerNormalization", "Softmax"})
        table[name] = norm;
    for (const char* name : {"Reshape", "Squeeze", "Unsqueeze", "Shape", "Identity", "Flatten"}) table[name] = renamed;
}

}  // namespace roofline::analyze
