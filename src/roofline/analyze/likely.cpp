#include "roofline/analyze/likely.hpp"

#include <algorithm>
#include <vector>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

struct Given {
    const Tensor* tensor = nullptr;
    std::size_t index = 0;
};

/// Numbers of many values: what a matrix is made of. Offsets, lengths and masks are not.
std::vector<Given> matrices(const Call& call) {
    std::vector<Given> found;
    for (std::size_t i = 0; i < call.signature().arguments.size(); ++i) {
        const Tensor* tensor = call.tensor(i, 2);
        const std::string_view type = call.type(i);
        const bool whole = type.find("long") != std::string_view::npos || type == "int" || type == "bool";
        if (tensor != nullptr && !whole && elements(*tensor) > 0.0) found.push_back({tensor, i});
    }
    return found;
}

/// The first two matrices that fit one another: [rows x inner] with [inner x columns] or, as linear layers keep them,
/// [columns x inner]. The second has two dimensions, or as many as the first and one for each copy.
std::optional<Effort> likely_product(const Call& call) {
    const std::vector<Given> given = matrices(call);
    for (const Given& left : given) {
        for (const Given& right : given) {
            if (left.index == right.index) continue;
            const bool batched = right.tensor->dims.size() > 2;
            if (batched &&
                (right.tensor->dims.size() != left.tensor->dims.size() || at(*left.tensor, 0) != at(*right.tensor, 0)))
                continue;
            const double inner = at(*left.tensor, -1);
            const bool plain = at(*right.tensor, -2) == inner;
            if (inner <= 1.0 || (!plain && at(*right.tensor, -1) != inner)) continue;
            const double columns = at(*right.tensor, plain ? -1 : -2);
            const double copies = batched ? elements(*right.tensor) / (inner * columns) : 1.0;
            const Product sizes{elements(*left.tensor) / (inner * copies), columns, inner, copies};
            const double written = copies * sizes.rows * columns * std::max(2.0, call.size(left.index));
            return product(sizes, call.type(left.index), batched ? 0.0 : call.bytes(right.index),
                           call.bytes(left.index) + (batched ? call.bytes(right.index) : 0.0) + written);
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<Effort> likely_effort(const Signature& signature, Piece::Sort kernel) {
    // How many keys attention reads need not be among its tensors: engines hand it pages.
    if (!signature.has_shapes || sort_of_operator(signature.name) == Piece::Sort::attention) return std::nullopt;
    const Call call(signature);
    std::optional<Effort> effort;
    if (kernel == Piece::Sort::product || kernel == Piece::Sort::batched) effort = likely_product(call);
    if (!effort) {
        double numbers = 0.0;  // of the largest tensor
        double bytes = 0.0;    // of that one
        for (const Argument& argument : signature.arguments) {
            const double size = call.size_of(argument);
            for (const Tensor& tensor : argument.tensors) {
                if (size == 0.0 || elements(tensor) <= numbers) continue;
                numbers = elements(tensor);
                bytes = numbers * size;
            }
        }
        if (numbers == 0.0) return std::nullopt;
        // Everything is read once, and something as large as the largest is written.
        effort = moved(Kind::elementwise, numbers, call.all_bytes() + bytes);
    }
    effort->estimated = true;
    return effort;
}

}  // namespace roofline::analyze
