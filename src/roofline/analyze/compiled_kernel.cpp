// Kernels that torch.compile made: generated ones, which read and write the tensors they are given, and templates of
// products and attention, which do more than that.
#include <algorithm>
#include <string>
#include <vector>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

/// A tensor of numbers and its place among the arguments.
struct Given {
    const Tensor* tensor = nullptr;
    std::size_t index = 0;
};

std::vector<Given> tensors_of(const Call& call) {
    std::vector<Given> all;
    for (std::size_t i = 0; i < call.signature().arguments.size(); ++i) {
        const Tensor* tensor = call.tensor(i, 1);
        if (tensor != nullptr && elements(*tensor) > 0.0) all.push_back({tensor, i});
    }
    return all;
}

/// Left and right factor come in any order among what was fused with them, the result last, views of any rank: the
/// factors are those whose sizes give the size of the result.
std::optional<Effort> template_product(const Call& call) {
    const auto given = tensors_of(call);
    if (given.size() < 3) return std::nullopt;
    const Given& out = given.back();
    for (std::size_t w = 0; w + 1 < given.size(); ++w) {
        const Tensor& weight = *given[w].tensor;
        if (weight.dims.size() != 2) continue;
        for (std::size_t x = 0; x + 1 < given.size(); ++x) {
            if (x == w) continue;
            // [columns x inner] is how linear layers keep them; [inner x columns] is what mm is given.
            for (const bool turned : {true, false}) {
                const double inner = at(weight, turned ? 1 : 0);
                const double columns = at(weight, turned ? 0 : 1);
                if (inner == 0.0 || columns == 0.0 || at(*out.tensor, -1) != columns) continue;
                const double rows = elements(*out.tensor) / columns;
                if (elements(*given[x].tensor) != rows * inner) continue;
                return product({rows, columns, inner, 1.0}, call.type(given[x].index), call.bytes(given[w].index),
                               call.all_bytes() - call.bytes(given[w].index));
            }
        }
    }
    return std::nullopt;
}

/// q, k, v [batch x heads x tokens x d] first, the result last; between them how many blocks of keys each block of
/// queries sees. One block: all of them. More: which ones is on the device, and a causal mask is the usual reason.
std::optional<Effort> template_attention(const Call& call) {
    const Tensor* q = call.tensor(0, 4);
    const Tensor* k = call.tensor(1, 4);
    const Tensor* v = call.tensor(2, 4);
    if (q == nullptr || k == nullptr || v == nullptr) return std::nullopt;
    AttentionSizes sizes{at(*q, 0), at(*q, 1), at(*k, 1), at(*q, 2), at(*k, 2), false};
    for (std::size_t i = 3; i < call.signature().arguments.size(); ++i) {
        if (call.type(i) != "int" || call.tensor(i, 3) == nullptr) continue;
        sizes.causal = elements(*call.tensor(i)) > 1.0 && sizes.queries <= sizes.keys;
        break;
    }
    double pairs = sizes.queries * sizes.keys;
    if (sizes.causal) pairs -= sizes.queries * (sizes.queries - 1.0) / 2.0;
    Effort effort;
    effort.kind = Kind::attention;
    effort.engine = Engine::matrix;
    effort.type = dtype_of(call.type(0));
    effort.flops = 2.0 * sizes.batch * sizes.heads * pairs * (at(*q, -1) + at(*v, -1));
    effort.kv = call.bytes(1) + call.bytes(2);
    effort.activations = call.bytes(0) + sizes.batch * sizes.heads * sizes.queries * at(*v, -1) * call.size(0);
    effort.attention = sizes;
    effort.estimated = sizes.causal;
    return effort;
}

}  // namespace

/// Generated kernels: every tensor one was given is read or written at least once; each operator in its
/// name costs a FLOP a number.
std::optional<Effort> fused_kernel(const Call& call) {
    const std::string& name = call.signature().name;
    const bool looks_up = name.find("embedding") != std::string::npos;
    double picks = 0.0;  // rows that an index of whole numbers takes from a table
    for (const Argument& argument : call.signature().arguments) {
        if (argument.type != "long int" && argument.type != "int") continue;
        for (const Tensor& tensor : argument.tensors) picks = std::max(picks, distinct(tensor));
    }
    if (name.starts_with("triton_tem")) {
        const bool attends = name.find("flex_attention") != std::string::npos;
        if (auto effort = attends ? template_attention(call) : template_product(call)) return effort;
    }
    double largest = 0.0;
    double not_read = 0.0;
    for (const Argument& argument : call.signature().arguments) {
        for (const Tensor& tensor : argument.tensors) {
            if (bytes_of_type(argument.type) == 0 || tensor.dims.empty()) continue;
            if (looks_up && tensor.dims.size() == 2 && picks > 0.0 && at(tensor, 0) > picks) {
                not_read += (at(tensor, 0) - picks) * at(tensor, 1) * bytes_of_type(argument.type);
                continue;
            }
            largest = std::max(largest, distinct(tensor));
        }
    }
    if (largest == 0.0) return std::nullopt;
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
