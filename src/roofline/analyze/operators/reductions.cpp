// Reductions, and what reads a tensor to say little about it.
#include <algorithm>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

/// Numbers left when the dimensions in argument `dims_at` are reduced; one where it names none.
double left_over(const Call& call, std::size_t dims_at) {
    const Tensor* in = call.tensor(0);
    const auto dims = call.integers(dims_at);
    if (in == nullptr || dims.empty()) return 1.0;
    double left = elements(*in);
    for (const std::int64_t dim : dims) left /= std::max(1.0, at(*in, static_cast<std::ptrdiff_t>(dim)));
    return left;
}

std::optional<Effort> reduction(const Call& call, double flops, std::size_t dims_at, double out_size = 0.0) {
    const Tensor* in = call.tensor(0);
    if (in == nullptr) return std::nullopt;
    const double size = out_size > 0.0 ? out_size : call.size(0);
    return moved(Kind::elementwise, flops * elements(*in), call.bytes(0) + left_over(call, dims_at) * size);
}

template <int FlopsPerNumber, std::size_t DimsAt = 1, int OutSize = 0>
std::optional<Effort> reduce(const Call& call) {
    return reduction(call, FlopsPerNumber, DimsAt, OutSize);
}

}  // namespace

void reductions_operators(Formulas& table) {
    table["sum"] = reduce<1>;
    table["mean"] = reduce<1>;
    table["amax"] = reduce<1>;
    table["amin"] = reduce<1>;
    table["prod"] = reduce<1>;
    table["max"] = reduce<1>;
    table["min"] = reduce<1>;
    table["var"] = reduce<3>;
    table["std"] = reduce<3>;
    table["var_mean"] = reduce<3>;
    table["norm"] = reduce<2, 2>;
    table["linalg_vector_norm"] = reduce<2, 2>;
    table["logsumexp"] = reduce<3>;
    table["any"] = reduce<1, 1, 1>;
    table["all"] = reduce<1, 1, 1>;
    table["argmax"] = reduce<1, 1, 8>;
    table["argmin"] = reduce<1, 1, 8>;
    table["count_nonzero"] = reduce<1, 1, 8>;
    table["nonzero"] = reduce<1, 1, 8>;
    table["bincount"] = reduce<1, 9, 8>;
    table["histc"] = reduce<1, 9, 4>;
    table["_local_scalar_dense"] = reduce<0>;
    table["is_nonzero"] = reduce<0>;
    table["unique"] = reduce<1>;
    table["_unique2"] = reduce<1>;
    table["multinomial"] = reduce<3, 9, 8>;
    table["topk"] = reduce<1, 9>;
    table["_assert_async"] = reduce<0>;
    table["nansum"] = reduce<1>;
    table["aminmax"] = reduce<2>;
    table["median"] = reduce<1>;
    table["kthvalue"] = reduce<1, 9>;
    table["trace"] = reduce<0, 9>;
}

}  // namespace roofline::analyze
