// What the search for roles sees of an item: what its operator or kernel is called, and what its shapes say.
#include <algorithm>

#include "roofline/analyze/steps.hpp"

namespace roofline::analyze {

namespace {

/// A residual adds two tensors of one size; a bias, an epsilon or a mask does not.
bool adds_alike(const Signature& signature) {
    if (signature.arguments.size() < 2) return false;
    const auto& first = signature.arguments[0].tensors;
    const auto& second = signature.arguments[1].tensors;
    return first.size() == 1 && second.size() == 1 && elements(first[0]) == elements(second[0]) &&
           elements(first[0]) > 1.0;
}

/// What a compiler makes of the sum with what went around a block and the norm behind it.
bool sums_and_normalises(std::string_view name, Piece::Sort sort) {
    return sort == Piece::Sort::norm && name.starts_with("triton_") && name.find("_add_") != std::string_view::npos;
}

}  // namespace

Piece piece_of(const Timeline& timeline, const Items& items, const Item& item) {
    using Sort = Piece::Sort;
    Piece piece;
    if (item.ran != Ran::kernel) {
        piece.sort = Sort::copy;
        return piece;
    }
    if (item.signature == none || item.in_graph) {
        if (item.last == none) return piece;
        const std::string& kernel = timeline.texts[timeline.ran[items.first_event(item)].name];
        piece.sort = sort_of_kernel(kernel);
        piece.sums = sums_and_normalises(kernel, piece.sort);
        return piece;
    }
    const Signature& signature = timeline.signatures[item.signature];
    piece.sort = sort_of_operator(signature.name);
    piece.sums = sums_and_normalises(signature.name, piece.sort);
    if (piece.sort == Sort::backward) return piece;
    for (const Argument& argument : signature.arguments) {
        const bool bytes = argument.type == "unsigned char" || argument.type == "signed char" ||
                           argument.type.starts_with("c10::Float8");
        for (const Tensor& tensor : argument.tensors) {
            piece.rank = std::max(piece.rank, static_cast<double>(tensor.dims.size()));
            piece.packed = piece.packed || (bytes && tensor.dims.size() > 1);
        }
    }
    if (!signature.arguments.empty() && !signature.arguments[0].tensors.empty()) {
        const Tensor& first = signature.arguments[0].tensors[0];
        piece.numbers = elements(first);
        if (!first.dims.empty()) piece.last = static_cast<double>(first.dims.back());
    }
    if (piece.sort == Sort::softmax && piece.rank > 0.0 && piece.rank < 3.0) piece.sort = Sort::softmax_of_rows;
    if (piece.sort == Sort::add && signature.has_shapes && !adds_alike(signature)) piece.sort = Sort::other;
    if (const Effort* effort = items.effort(item)) {
        if (effort->product && effort->product->inner <= 1.0) {
            piece.sort = Sort::other;  // an outer product: positions, not weights
            piece.outer = true;
        } else if (effort->product) {
            piece.columns = effort->product->columns;
            piece.inner = effort->product->inner;
            if (piece.sort != Sort::grouped) piece.sort = effort->weights > 0.0 ? Sort::product : Sort::batched;
            // Matrices times one vector each: what comes out is as wide as they are high.
            if (piece.sort == Sort::batched && piece.columns == 1.0) piece.columns = effort->product->rows;
        }
        if (effort->attention) piece.sort = Sort::attention;
        if (effort->looks_up_rows) piece.sort = Sort::embedding;
        if (effort->kind == Kind::collective) piece.sort = Sort::collective;
        if (piece.sort == Sort::embedding && !effort->looks_up_rows && effort->kind == Kind::gather)
            piece.sort = Sort::other;
    }
    return piece;
}

}  // namespace roofline::analyze
