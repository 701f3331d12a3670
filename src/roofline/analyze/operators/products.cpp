// Matrix products and convolutions, of one matrix, of batches, of experts.
#include <algorithm>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

/// mm(a, b) and its kin: `first` is the index of a; what stands before it is added to the result.
std::optional<Effort> matrix_product(const Call& call, std::size_t first) {
    const Tensor* a = call.tensor(first, 1);
    const Tensor* b = call.tensor(first + 1, 1);
    if (a == nullptr || b == nullptr || a->dims.size() > 2 || b->dims.size() > 2) return std::nullopt;
    const double inner = at(*a, -1);
    const double rows = a->dims.size() == 2 ? at(*a, 0) : 1.0;
    const double columns = b->dims.size() == 2 ? at(*b, 1) : 1.0;
    if (at(*b, 0) != inner) return std::nullopt;
    double out_size = call.size(first);
    if (call.size(first) < 2) out_size = 2.0;  // eight-bit products are written in sixteen
    const double added = first > 0 ? call.bytes(0) : 0.0;
    return product({rows, columns, inner, 1.0}, call.type(first), call.bytes(first + 1) + added,
                   call.bytes(first) + rows * columns * out_size);
}

std::optional<Effort> batched_product(const Call& call, std::size_t first) {
    const Tensor* a = call.tensor(first, 3);
    const Tensor* b = call.tensor(first + 1, 3);
    if (a == nullptr || b == nullptr || at(*a, 2) != at(*b, 1) || at(*a, 0) != at(*b, 0)) return std::nullopt;
    const Product sizes{at(*a, 1), at(*b, 2), at(*a, 2), at(*a, 0)};
    const double out = sizes.copies * sizes.rows * sizes.columns * call.size(first);
    return product(sizes, call.type(first), 0.0, call.bytes(first) + call.bytes(first + 1) + out);
}

/// linear(x, w, bias): w is [columns x inner].
std::optional<Effort> linear(const Call& call) {
    const Tensor* x = call.tensor(0, 1);
    const Tensor* w = call.tensor(1, 2);
    if (x == nullptr || w == nullptr || at(*x, -1) != at(*w, 1) || at(*w, 1) == 0) return std::nullopt;
    const Product sizes{elements(*x) / at(*w, 1), at(*w, 0), at(*w, 1), 1.0};
    return product(sizes, call.type(0), call.bytes(1) + call.bytes(2),
                   call.bytes(0) + sizes.rows * sizes.columns * std::max(2.0, call.size(0)));
}

/// grouped_mm(x [tokens x inner], w [experts x inner x columns], offsets): every row meets one expert.
std::optional<Effort> grouped_product(const Call& call) {
    const Tensor* x = call.tensor(0, 2);
    const Tensor* w = call.tensor(1, 3);
    if (x == nullptr || w == nullptr || x->dims.size() != 2 || at(*x, 1) != at(*w, 1) || at(*w, 0) < 1.0)
        return std::nullopt;
    const Product sizes{at(*x, 0), at(*w, 2), at(*w, 1), 1.0};
    // Which experts were chosen is not in the shapes: what even routing touches on average.
    double missed = 1.0;
    for (double row = 0.0; row < sizes.rows && missed > 1e-9; row += 1.0) missed *= 1.0 - 1.0 / at(*w, 0);
    const double used = at(*w, 0) * (1.0 - missed);
    auto effort = product(sizes, call.type(0), used * sizes.inner * sizes.columns * call.size(1),
                          call.bytes(0) + sizes.rows * sizes.columns * std::max(2.0, call.size(0)));
    effort.estimated = true;
    return effort;
}

/// grouped_mm(a [rows x tokens], b [tokens x columns], offsets): one product for every expert over its own tokens, as
/// the gradients of their weights are made.
std::optional<Effort> grouped_gradient(const Call& call) {
    const Tensor* a = call.tensor(0, 2);
    const Tensor* b = call.tensor(1, 2);
    const Tensor* ends = call.tensor(2, 1);
    if (a == nullptr || b == nullptr || ends == nullptr || a->dims.size() != 2 || b->dims.size() != 2 ||
        at(*a, 1) != at(*b, 0))
        return std::nullopt;
    const double written = at(*ends, 0) * at(*a, 0) * at(*b, 1) * std::max(2.0, call.size(0));
    auto effort =
        product({at(*a, 0), at(*b, 1), at(*a, 1), 1.0}, call.type(0), 0.0, call.bytes(0) + call.bytes(1) + written);
    effort.product.reset();  // of no layer's forward pass
    return effort;
}

/// Two dimensions or one: output sizes follow from padding, stride and dilation.
std::optional<Effort> convolution(const Call& call, std::size_t padding, std::size_t stride, std::size_t dilation,
                                  std::size_t groups) {
    const Tensor* x = call.tensor(0, 3);
    const Tensor* w = call.tensor(1, 3);
    if (x == nullptr || w == nullptr || x->dims.size() != w->dims.size()) return std::nullopt;
    const auto padded = call.integers(padding);
    const auto strides = call.integers(stride);
    const auto dilations = call.integers(dilation);
    double positions = at(*x, 0);
    double window = 1.0;
    for (std::size_t i = 2; i < x->dims.size(); ++i) {
        const auto pick = [&](const std::vector<std::int64_t>& list, double otherwise) {
            return list.empty() ? otherwise : static_cast<double>(list[std::min(i - 2, list.size() - 1)]);
        };
        const auto width = static_cast<double>(w->dims[i]);
        const double reach = pick(dilations, 1.0) * (width - 1.0);
        const double out = (static_cast<double>(x->dims[i]) + 2.0 * pick(padded, 0.0) - reach - 1.0) /
                           std::max(1.0, pick(strides, 1.0));
        positions *= static_cast<double>(static_cast<std::int64_t>(std::max(0.0, out))) + 1.0;
        window *= width;
    }
    (void)groups;  // the weight holds the channels of one group already
    const Product sizes{positions, at(*w, 0), at(*w, 1) * window, 1.0};
    auto effort = product(sizes, call.type(0), call.bytes(1) + call.bytes(2),
                          call.bytes(0) + positions * at(*w, 0) * call.size(0));
    effort.product.reset();  // no matrix product of a transformer: not looked at for the structure
    return effort;
}

/// Transposed: every number of x meets the whole window of every channel it leads to. The weight is
/// [channels in x channels out of a group x window].
std::optional<Effort> transposed_convolution(const Call& call, std::size_t stride) {
    const Tensor* x = call.tensor(0, 3);
    const Tensor* w = call.tensor(1, 3);
    if (x == nullptr || w == nullptr || x->dims.size() != w->dims.size()) return std::nullopt;
    const auto strides = call.integers(stride);
    double positions = at(*x, 0);
    double grown = 1.0;
    double window = 1.0;
    for (std::size_t i = 2; i < x->dims.size(); ++i) {
        positions *= static_cast<double>(x->dims[i]);
        window *= static_cast<double>(w->dims[i]);
        if (!strides.empty()) grown *= static_cast<double>(strides[std::min(i - 2, strides.size() - 1)]);
    }
    auto effort = product({positions, at(*w, 1) * window, at(*w, 0), 1.0}, call.type(0), call.bytes(1) + call.bytes(2),
                          call.bytes(0) + positions * grown * at(*w, 1) * call.size(0));
    effort.product.reset();
    return effort;
}

/// convolution_backward(gradient, x, w, ..., mask): the gradient of x and that of w, each as much as the forward pass.
std::optional<Effort> convolution_backward(const Call& call) {
    const Tensor* gradient = call.tensor(0, 3);
    const Tensor* x = call.tensor(1, 3);
    const Tensor* w = call.tensor(2, 3);
    if (gradient == nullptr || x == nullptr || w == nullptr || x->dims.size() != w->dims.size()) return std::nullopt;
    // Positions are those of the side with the channels of argument zero of the weight.
    const bool transposed = call.flag(7);
    const Tensor& side = transposed ? *x : *gradient;
    double each = 2.0 * elements(*w) * at(side, 0);
    for (std::size_t i = 2; i < side.dims.size(); ++i) each *= static_cast<double>(side.dims[i]);
    double wanted = 0.0;
    const std::string_view mask = call.value(10);
    const bool of_x = mask.empty() || mask.starts_with("[True");
    const bool of_w = mask.empty() || mask.find("True,", 5) != std::string_view::npos;
    wanted += (of_x ? 1.0 : 0.0) + (of_w ? 1.0 : 0.0);
    Effort effort =
        moved(Kind::gemm, wanted * each, call.bytes(0) + (of_x ? call.bytes(1) : 0.0) + (of_w ? call.bytes(1) : 0.0));
    effort.engine = Engine::matrix;
    effort.type = dtype_of(call.type(0));
    effort.weights = (of_x ? call.bytes(2) : 0.0) + (of_w ? call.bytes(2) : 0.0);
    return effort;
}

/// rnn(x, weights, ...): every row of x passes every matrix of the list once.
std::optional<Effort> recurrent(const Call& call, double passes) {
    const Tensor* x = call.tensor(0, 2);
    if (x == nullptr || call.signature().arguments.size() < 2 || at(*x, -1) == 0.0) return std::nullopt;
    double numbers = 0.0;
    for (const Tensor& tensor : call.signature().arguments[1].tensors) {
        if (tensor.dims.size() >= 2) numbers += elements(tensor);
    }
    if (numbers == 0.0) return std::nullopt;
    Effort effort = moved(Kind::gemm, passes * 2.0 * numbers * elements(*x) / at(*x, -1), 2.0 * passes * call.bytes(0));
    effort.engine = Engine::matrix;
    effort.type = dtype_of(call.type(0));
    effort.weights = passes * numbers * call.size(0);
    return effort;
}

/// solve_triangular(a, b): a is [n x n], b [n x columns], batches in front; half of a square product.
std::optional<Effort> solved(const Call& call) {
    const Tensor* a = call.tensor(0, 2);
    const Tensor* b = call.tensor(1, 2);
    if (a == nullptr || b == nullptr || at(*a, -1) != at(*a, -2) || at(*a, -1) != at(*b, -2)) return std::nullopt;
    Effort effort = moved(Kind::gemm, elements(*b) * at(*a, -1), 0.5 * call.bytes(0) + 2.0 * call.bytes(1));
    effort.type = dtype_of(call.type(0));
    return effort;
}

}  // namespace

void products_operators(Formulas& table) {
    table["mm"] = [](const Call& c) { return matrix_product(c, 0); };
    table["_scaled_mm"] = [](const Call& c) { return matrix_product(c, 0); };
    table["_int_mm"] = [](const Call& c) { return matrix_product(c, 0); };
    table["mv"] = [](const Call& c) { return matrix_product(c, 0); };
    table["dot"] = [](const Call& c) { return matrix_product(c, 0); };
    table["addmm"] = [](const Call& c) { return matrix_product(c, 1); };
    table["_addmm_activation"] = [](const Call& c) { return matrix_product(c, 1); };
    table["addmv"] = [](const Call& c) { return matrix_product(c, 1); };
    table["bmm"] = [](const Call& c) { return batched_product(c, 0); };
    table["baddbmm"] = [](const Call& c) { return batched_product(c, 1); };
    table["linear"] = linear;
    table["_grouped_mm"] = [](const Call& c) {
        auto effort = grouped_product(c);
        return effort ? effort : grouped_gradient(c);
    };
    table["_scaled_grouped_mm"] = grouped_product;
    table["linalg_solve_triangular"] = solved;
    for (const char* name : {"convolution", "_convolution"}) {
        table[name] = [](const Call& c) {
            return c.flag(6) ? transposed_convolution(c, 3) : convolution(c, 4, 3, 5, 8);
        };
    }
    table["cudnn_convolution_transpose"] = [](const Call& c) { return transposed_convolution(c, 4); };
    table["convolution_backward"] = convolution_backward;
    table["_cudnn_rnn"] = [](const Call& c) { return recurrent(c, 1.0); };
    table["_cudnn_rnn_backward"] = [](const Call& c) { return recurrent(c, 2.0); };
    table["cudnn_convolution"] = [](const Call& c) { return convolution(c, 2, 3, 4, 5); };
    table["_conv_depthwise2d"] = [](const Call& c) { return convolution(c, 5, 4, 6, 9); };
}

}  // namespace roofline::analyze
