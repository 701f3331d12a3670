// Copies, fills, lookups, scatters: bytes without FLOPs.
#include <algorithm>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

/// Argument 0 is written from argument 1.
std::optional<Effort> copied(const Call& call) {
    const Tensor* to = call.tensor(0);
    const Tensor* from = call.tensor(1);
    if (to == nullptr || from == nullptr) return std::nullopt;
    return moved(Kind::copy, 0.0, elements(*to) * call.size(0) + call.bytes(1));
}

std::optional<Effort> written_only(const Call& call, std::size_t index) {
    const Tensor* out = call.tensor(index);
    if (out == nullptr) return std::nullopt;
    return moved(Kind::copy, 0.0, elements(*out) * call.size(index));
}

/// Rows of a table picked by an index: reads what it picks, not the table.
std::optional<Effort> picked_rows(const Call& call, std::size_t index_at, std::ptrdiff_t dim, bool parameters) {
    const Tensor* table = call.tensor(0, 1);
    const Tensor* index = call.tensor(index_at);
    if (table == nullptr || index == nullptr) return std::nullopt;
    const double each = elements(*table) / std::max(1.0, at(*table, dim));
    const double bytes = elements(*index) * each * call.size(0);
    Effort effort = moved(Kind::gather, 0.0, bytes + call.bytes(index_at));
    effort.looks_up_rows = parameters && table->dims.size() == 2;
    if (effort.looks_up_rows) {
        effort.weights = bytes;
    } else {
        effort.activations += bytes;
    }
    return effort;
}

std::optional<Effort> gathered(const Call& call) {
    const Tensor* index = call.tensor(2);
    if (index == nullptr) return std::nullopt;
    // An index that is expanded along a row picks whole rows: that is how an embedding is looked up.
    const bool rows = call.tensor(0, 2) != nullptr && distinct(*index) < elements(*index);
    Effort effort = moved(Kind::gather, 0.0, elements(*index) * call.size(0) + call.bytes(2));
    (rows ? effort.weights : effort.activations) += elements(*index) * call.size(0);
    effort.looks_up_rows = rows;
    return effort;
}

/// x[indices]: the index tensors are a list; what they do not name is taken whole. Where the file tells the size of the
/// result, that is what was picked.
std::optional<Effort> indexed(const Call& call) {
    const Tensor* in = call.tensor(0, 1);
    if (in == nullptr || call.signature().arguments.size() < 2) return std::nullopt;
    if (!call.signature().outputs.empty()) {
        const Tensor& out = call.signature().outputs.front();
        double picks = 1.0;
        for (std::size_t i = 0; i < out.dims.size(); ++i) {
            if (i < out.strides.size() && out.strides[i] == 0) picks *= static_cast<double>(out.dims[i]);
        }
        const double read = std::min(elements(out), distinct(*in));
        return moved(Kind::gather, 0.0, (read + elements(out)) * call.size(0) + picks * 8.0);
    }
    double picks = 0.0;
    std::size_t named = 0;
    for (const Tensor& tensor : call.signature().arguments[1].tensors) {
        ++named;
        if (!tensor.dims.empty()) picks = std::max(picks, elements(tensor));
    }
    if (named == 0) return std::nullopt;
    double rest = 1.0;
    for (std::size_t i = named; i < in->dims.size(); ++i) rest *= static_cast<double>(in->dims[i]);
    const double bytes = std::min(picks * rest, elements(*in)) * call.size(0);
    return moved(Kind::gather, 0.0, 2.0 * bytes + picks * 8.0);
}

std::optional<Effort> concatenated(const Call& call) {
    if (call.signature().arguments.empty() || call.signature().arguments[0].tensors.empty()) return std::nullopt;
    double numbers = 0.0;
    for (const Tensor& tensor : call.signature().arguments[0].tensors) numbers += elements(tensor);
    double size = bytes_of_type(call.signature().arguments[0].type);
    Effort effort = moved(Kind::copy, 0.0, 0.0);
    if (size == 0.0) {
        size = 2.0;
        effort.estimated = true;  // lists come without a type
    }
    effort.activations = 2.0 * numbers * size;
    return effort;
}

}  // namespace

void moves_operators(Formulas& table) {
    table["copy"] = copied;
    table["fill"] = [](const Call& c) { return written_only(c, 0); };
    table["zero"] = [](const Call& c) { return written_only(c, 0); };
    table["uniform"] = [](const Call& c) { return written_only(c, 0); };
    table["normal"] = [](const Call& c) { return written_only(c, 0); };
    table["exponential"] = [](const Call& c) { return written_only(c, 0); };
    table["random"] = [](const Call& c) { return written_only(c, 0); };
    table["bernoulli"] = [](const Call& c) { return written_only(c, 0); };
    table["arange"] = [](const Call& c) -> std::optional<Effort> {
        std::int64_t begin = 0;
        std::int64_t end = c.integer(0, 0);
        if (c.integer(1, -1) >= 0) {
            begin = end;
            end = c.integer(1, 0);
        }
        return moved(Kind::copy, 0.0, 8.0 * std::max(0.0, static_cast<double>(end - begin)));
    };
    table["cat"] = concatenated;
    table["stack"] = concatenated;
    table["embedding"] = [](const Call& c) { return picked_rows(c, 1, 0, true); };
    table["index_select"] = [](const Call& c) {
        return picked_rows(c, 2, static_cast<std::ptrdiff_t>(c.integer(1, 0)), true);
    };
    table["gather"] = gathered;
    table["index"] = indexed;
    table["take"] = [](const Call& c) { return picked_rows(c, 1, 0, false); };
    table["index_put"] = [](const Call& c) -> std::optional<Effort> {
        if (c.tensor(2) == nullptr) return std::nullopt;
        return moved(Kind::gather, 0.0, 2.0 * c.bytes(2));
    };
    table["_index_put_impl"] = [](const Call& c) -> std::optional<Effort> {
        if (c.tensor(2) == nullptr) return std::nullopt;
        return moved(Kind::gather, 0.0, 2.0 * c.bytes(2));
    };
    table["index_copy"] = [](const Call& c) -> std::optional<Effort> {
        if (c.tensor(3) == nullptr) return std::nullopt;
        return moved(Kind::gather, 0.0, 2.0 * c.bytes(3) + c.bytes(2));
    };
    table["index_add"] = [](const Call& c) -> std::optional<Effort> {
        const Tensor* added = c.tensor(3);
        if (added == nullptr) return std::nullopt;
        return moved(Kind::gather, elements(*added), 3.0 * c.bytes(3) + c.bytes(2));
    };
    table["scatter"] = [](const Call& c) -> std::optional<Effort> {
        const Tensor* index = c.tensor(2);
        if (index == nullptr) return std::nullopt;
        return moved(Kind::gather, 0.0, c.bytes(2) + c.bytes(3) + elements(*index) * c.size(0));
    };
    table["scatter_add"] = [](const Call& c) -> std::optional<Effort> {
        const Tensor* index = c.tensor(2);
        if (index == nullptr) return std::nullopt;
        return moved(Kind::gather, elements(*index), c.bytes(2) + c.bytes(3) + 2.0 * elements(*index) * c.size(0));
    };
    table["repeat_interleave"] = [](const Call& c) { return written_only(c, 0); };
}

}  // namespace roofline::analyze
