#include "roofline/analyze/effort.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <unordered_map>

#include <fmt/format.h>

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

namespace {

/// The arguments of a call as formulas want them.
class Call {
  public:
    explicit Call(const Signature& signature) : signature_(signature) {}

    const Tensor* tensor(std::size_t index) const {
        if (index >= signature_.arguments.size()) return nullptr;
        const Argument& argument = signature_.arguments[index];
        if (argument.is_list || argument.tensors.size() != 1 || bytes_of_type(argument.type) == 0) return nullptr;
        return &argument.tensors[0];
    }
    /// A tensor with at least so many dimensions.
    const Tensor* tensor(std::size_t index, std::size_t rank) const {
        const Tensor* found = tensor(index);
        return found != nullptr && found->dims.size() >= rank ? found : nullptr;
    }
    double size(std::size_t index) const {
        return index < signature_.arguments.size() ? bytes_of_type(signature_.arguments[index].type) : 0.0;
    }
    std::string_view type(std::size_t index) const {
        return index < signature_.arguments.size() ? std::string_view(signature_.arguments[index].type)
                                                   : std::string_view();
    }
    std::string_view value(std::size_t index) const {
        return index < signature_.arguments.size() ? std::string_view(signature_.arguments[index].value)
                                                   : std::string_view();
    }
    bool flag(std::size_t index) const { return value(index) == "True" || value(index) == "1"; }
    std::int64_t integer(std::size_t index, std::int64_t otherwise) const {
        const std::string text(value(index));
        char* end = nullptr;
        const long long result = std::strtoll(text.c_str(), &end, 10);
        return text.empty() || *end != '\0' ? otherwise : result;
    }
    std::vector<std::int64_t> integers(std::size_t index) const {
        std::vector<std::int64_t> result;
        const std::string text(value(index));
        for (const char* at = text.c_str(); *at != '\0';) {
            char* end = nullptr;
            const long long number = std::strtoll(at, &end, 10);
            if (end == at) {
                ++at;
            } else {
                result.push_back(number);
                at = end;
            }
        }
        return result;
    }
    double bytes(std::size_t index) const {
        const Tensor* found = tensor(index);
        return found == nullptr ? 0.0 : distinct(*found) * size(index);
    }
    /// Of every tensor, those of lists too.
    double all_bytes() const {
        double sum = 0.0;
        for (const Argument& argument : signature_.arguments) {
            // A list says only that it is one: its tensors are taken as two bytes, or as what the others are.
            const double size = argument.is_list ? list_size() : bytes_of_type(argument.type);
            for (const Tensor& tensor : argument.tensors) sum += tensor.dims.empty() ? 0.0 : distinct(tensor) * size;
        }
        return sum;
    }
    double list_size() const {
        for (const Argument& argument : signature_.arguments) {
            if (!argument.is_list && !argument.tensors.empty() && !argument.tensors[0].dims.empty() &&
                bytes_of_type(argument.type) > 0)
                return bytes_of_type(argument.type);
        }
        return 2.0;
    }
    const Signature& signature() const { return signature_; }

  private:
    const Signature& signature_;
};

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
    if (x == nullptr || w == nullptr || x->dims.size() != 2 || at(*x, 1) != at(*w, 1)) return std::nullopt;
    const Product sizes{at(*x, 0), at(*w, 2), at(*w, 1), 1.0};
    const double used = std::min(at(*w, 0), sizes.rows);  // at most one expert a row
    auto effort = product(sizes, call.type(0), used * sizes.inner * sizes.columns * call.size(1),
                          call.bytes(0) + sizes.rows * sizes.columns * std::max(2.0, call.size(0)));
    effort.estimated = used > 1.0;  // which experts were chosen is not in the shapes
    return effort;
}

enum class Layout { heads_first, tokens_first, packed };

/// Attention of any backend: q, k, v are arguments 0 to 2. Counts the pairs that a causal mask leaves.
std::optional<Effort> attention(const Call& call, Layout layout, std::ptrdiff_t causal_at, std::size_t first = 0) {
    const std::size_t rank = layout == Layout::packed ? 3 : 4;
    const Tensor* q = call.tensor(first, rank);
    const Tensor* k = call.tensor(first + 1, rank);
    const Tensor* v = call.tensor(first + 2, rank);
    if (q == nullptr || k == nullptr || v == nullptr) return std::nullopt;
    AttentionSizes sizes;
    const std::ptrdiff_t heads = layout == Layout::heads_first ? -3 : -2;
    const std::ptrdiff_t tokens = layout == Layout::heads_first ? -2 : -3;
    sizes.batch = layout == Layout::packed ? 1.0 : at(*q, 0);
    sizes.heads = at(*q, heads);
    sizes.kv_heads = at(*k, heads);
    sizes.queries = at(*q, tokens);
    sizes.keys = at(*k, tokens);
    if (causal_at >= 0) sizes.causal = call.flag(static_cast<std::size_t>(causal_at));
    double pairs = sizes.queries * sizes.keys;
    if (sizes.causal && sizes.queries <= sizes.keys) pairs -= sizes.queries * (sizes.queries - 1.0) / 2.0;
    Effort effort;
    effort.kind = Kind::attention;
    effort.engine = Engine::matrix;
    effort.type = dtype_of(call.type(first));
    effort.flops = 2.0 * sizes.batch * sizes.heads * pairs * (at(*q, -1) + at(*v, -1));
    effort.kv = call.bytes(first + 1) + call.bytes(first + 2);
    const double out = sizes.batch * sizes.heads * sizes.queries * at(*v, -1) * call.size(first);
    effort.activations = call.bytes(first) + out;
    effort.attention = sizes;
    effort.estimated = layout == Layout::packed;  // the lengths of the sequences are not in the shapes
    return effort;
}

Effort moved(Kind kind, double flops, double bytes) {
    Effort effort;
    effort.kind = kind;
    effort.flops = flops;
    effort.activations = bytes;
    return effort;
}

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

/// `inputs` tensors in, one out, `flops` a number. `out_size`: bytes of a number written; zero: that of the widest
/// tensor with dimensions.
std::optional<Effort> elementwise(const Call& call, std::size_t inputs, double flops, double out_size = 0.0) {
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

/// Argument 0 is written from argument 1.
std::optional<Effort> copied(const Call& call) {
    const Tensor* to = call.tensor(0);
    const Tensor* from = call.tensor(1);
    if (to == nullptr || from == nullptr) return std::nullopt;
    return moved(Kind::copy, 0.0, elements(*to) * call.size(0) + call.bytes(1));
}

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

/// Reads and writes all of argument 0, with a weight and a bias beside it.
std::optional<Effort> normalised(const Call& call, double flops, std::size_t weight, std::size_t bias) {
    const Tensor* in = call.tensor(0, 1);
    if (in == nullptr) return std::nullopt;
    Effort effort = moved(Kind::norm, flops * elements(*in), call.bytes(0) + elements(*in) * call.size(0));
    effort.weights = call.bytes(weight) + call.bytes(bias);
    return effort;
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

/// x[indices]: the index tensors are a list; what they do not name is taken whole.
std::optional<Effort> indexed(const Call& call) {
    const Tensor* in = call.tensor(0, 1);
    if (in == nullptr || call.signature().arguments.size() < 2) return std::nullopt;
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

/// Kernels that torch.compile made: every tensor it was given is read or written at least once; each operator in its
/// name costs a FLOP a number.
std::optional<Effort> fused_kernel(const Call& call) {
    const std::string& name = call.signature().name;
    double largest = 0.0;
    std::vector<const Tensor*> matrices;
    for (const Argument& argument : call.signature().arguments) {
        for (const Tensor& tensor : argument.tensors) {
            if (bytes_of_type(argument.type) == 0 || tensor.dims.empty()) continue;
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
              std::max(1.0, operators) * largest, call.all_bytes());
    effort.estimated = true;
    return effort;
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

using Formula = std::optional<Effort> (*)(const Call&);

template <std::size_t Inputs, int FlopsPerNumber, int OutSize = 0>
std::optional<Effort> pointwise(const Call& call) {
    return elementwise(call, Inputs, FlopsPerNumber, OutSize);
}

template <int FlopsPerNumber, std::size_t DimsAt = 1, int OutSize = 0>
std::optional<Effort> reduce(const Call& call) {
    return reduction(call, FlopsPerNumber, DimsAt, OutSize);
}

const std::unordered_map<std::string_view, Formula>& formulas() {
    static const std::unordered_map<std::string_view, Formula> all = {
        {"mm", [](const Call& c) { return matrix_product(c, 0); }},
        {"_scaled_mm", [](const Call& c) { return matrix_product(c, 0); }},
        {"_int_mm", [](const Call& c) { return matrix_product(c, 0); }},
        {"mv", [](const Call& c) { return matrix_product(c, 0); }},
        {"dot", [](const Call& c) { return matrix_product(c, 0); }},
        {"addmm", [](const Call& c) { return matrix_product(c, 1); }},
        {"_addmm_activation", [](const Call& c) { return matrix_product(c, 1); }},
        {"addmv", [](const Call& c) { return matrix_product(c, 1); }},
        {"bmm", [](const Call& c) { return batched_product(c, 0); }},
        {"baddbmm", [](const Call& c) { return batched_product(c, 1); }},
        {"linear", linear},
        {"_grouped_mm", grouped_product},
        {"_scaled_grouped_mm", grouped_product},
        {"cutlass_scaled_mm", [](const Call& c) { return matrix_product(c, 1); }},
        {"fp8_scaled_mm", [](const Call& c) { return matrix_product(c, 0); }},
        {"convolution", [](const Call& c) { return convolution(c, 4, 3, 5, 8); }},
        {"_convolution", [](const Call& c) { return convolution(c, 4, 3, 5, 8); }},
        {"cudnn_convolution", [](const Call& c) { return convolution(c, 2, 3, 4, 5); }},
        {"_conv_depthwise2d", [](const Call& c) { return convolution(c, 5, 4, 6, 9); }},

        {"scaled_dot_product_attention", [](const Call& c) { return attention(c, Layout::heads_first, 5); }},
        {"_scaled_dot_product_flash_attention", [](const Call& c) { return attention(c, Layout::heads_first, 4); }},
        {"_scaled_dot_product_efficient_attention", [](const Call& c) { return attention(c, Layout::heads_first, 6); }},
        {"_scaled_dot_product_cudnn_attention", [](const Call& c) { return attention(c, Layout::heads_first, 6); }},
        {"_cudnn_attention_forward", [](const Call& c) { return attention(c, Layout::heads_first, 10); }},
        {"_flash_attention_forward",
         [](const Call& c) {
             if (c.tensor(0, 4) == nullptr) return attention(c, Layout::packed, 8);
             return attention(c, Layout::tokens_first, 8);
         }},
        {"_efficient_attention_forward",
         [](const Call& c) {
             auto effort = attention(c, Layout::tokens_first, -1);
             if (effort && c.integer(9, 0) > 0) {  // a number for the kind of mask
                 const AttentionSizes& s = *effort->attention;
                 const double pairs = s.queries * s.keys;
                 effort->flops *= (pairs - s.queries * (s.queries - 1.0) / 2.0) / std::max(1.0, pairs);
                 effort->attention->causal = true;
             }
             return effort;
         }},
        {"_flash_attn_forward", [](const Call& c) { return attention(c, Layout::tokens_first, 5); }},
        {"_flash_attn_varlen_forward", [](const Call& c) { return attention(c, Layout::packed, -1); }},
        {"varlen_fwd", [](const Call& c) { return attention(c, Layout::packed, -1); }},

        {"native_layer_norm", [](const Call& c) { return normalised(c, 7.0, 2, 3); }},
        {"layer_norm", [](const Call& c) { return normalised(c, 7.0, 2, 3); }},
        {"_fused_rms_norm", [](const Call& c) { return normalised(c, 4.0, 2, 99); }},
        {"native_group_norm", [](const Call& c) { return normalised(c, 7.0, 1, 2); }},
        {"native_batch_norm", [](const Call& c) { return normalised(c, 4.0, 1, 2); }},
        {"cudnn_batch_norm", [](const Call& c) { return normalised(c, 4.0, 1, 2); }},
        {"_softmax", [](const Call& c) { return normalised(c, 5.0, 99, 99); }},
        {"_log_softmax", [](const Call& c) { return normalised(c, 5.0, 99, 99); }},
        {"rms_norm",
         [](const Call& c) -> std::optional<Effort> {
             // aten::rms_norm(x, shape, weight); engines' own: rms_norm(out, x, weight, epsilon).
             if (c.tensor(1, 1) != nullptr)
                 return moved(Kind::norm, 4.0 * elements(*c.tensor(1)), c.bytes(0) + c.bytes(1) + c.bytes(2));
             return normalised(c, 4.0, 2, 99);
         }},
        {"rmsnorm",
         [](const Call& c) -> std::optional<Effort> {
             if (c.tensor(1, 1) == nullptr) return std::nullopt;
             return moved(Kind::norm, 4.0 * elements(*c.tensor(1)), c.bytes(0) + c.bytes(1) + c.bytes(2));
         }},
        {"fused_add_rms_norm",
         [](const Call& c) -> std::optional<Effort> {
             const Tensor* x = c.tensor(0, 1);
             if (x == nullptr) return std::nullopt;
             return moved(Kind::norm, 5.0 * elements(*x), 2.0 * c.bytes(0) + 2.0 * c.bytes(1) + c.bytes(2));
         }},
        {"silu_and_mul",
         [](const Call& c) -> std::optional<Effort> {
             const Tensor* out = c.tensor(0, 1);
             if (out == nullptr) return std::nullopt;
             return moved(Kind::elementwise, 5.0 * elements(*out), c.bytes(0) + c.bytes(1));
         }},
        {"rotary_embedding",
         [](const Call& c) -> std::optional<Effort> {
             const Tensor* q = c.tensor(1, 1);
             if (q == nullptr) return std::nullopt;
             return moved(Kind::elementwise,
                          3.0 * (elements(*q) + (c.tensor(2) != nullptr ? elements(*c.tensor(2)) : 0.0)),
                          2.0 * (c.bytes(1) + c.bytes(2)) + c.bytes(0));
         }},
        {"reshape_and_cache_flash",
         [](const Call& c) -> std::optional<Effort> {
             if (c.tensor(0, 2) == nullptr) return std::nullopt;
             Effort effort = moved(Kind::copy, 0.0, c.bytes(0) + c.bytes(1));
             effort.kv = c.bytes(0) + c.bytes(1);  // the keys and values written; the cache itself is not touched
             return effort;
         }},

        {"add", pointwise<2, 1>},
        {"sub", pointwise<2, 1>},
        {"rsub", pointwise<2, 1>},
        {"mul", pointwise<2, 1>},
        {"div", pointwise<2, 1>},
        {"pow", pointwise<2, 1>},
        {"neg", pointwise<1, 1>},
        {"abs", pointwise<1, 1>},
        {"exp", pointwise<1, 1>},
        {"log", pointwise<1, 1>},
        {"sqrt", pointwise<1, 1>},
        {"rsqrt", pointwise<1, 1>},
        {"sin", pointwise<1, 1>},
        {"cos", pointwise<1, 1>},
        {"tanh", pointwise<1, 1>},
        {"erf", pointwise<1, 1>},
        {"reciprocal", pointwise<1, 1>},
        {"relu", pointwise<1, 1>},
        {"square", pointwise<1, 1>},
        {"sigmoid", pointwise<1, 3>},
        {"silu", pointwise<1, 4>},
        {"gelu", pointwise<1, 8>},
        {"softplus", pointwise<1, 3>},
        {"leaky_relu", pointwise<1, 1>},
        {"hardtanh", pointwise<1, 2>},
        {"clamp", pointwise<1, 2>},
        {"clamp_min", pointwise<1, 1>},
        {"clamp_max", pointwise<1, 1>},
        {"minimum", pointwise<2, 1>},
        {"maximum", pointwise<2, 1>},
        {"addcmul", pointwise<3, 2>},
        {"addcdiv", pointwise<3, 2>},
        {"lerp", pointwise<2, 3>},
        {"where", pointwise<3, 1>},
        {"masked_fill", pointwise<2, 1>},
        {"remainder", pointwise<2, 1>},
        {"fmod", pointwise<2, 1>},
        {"floor_divide", pointwise<2, 1>},
        {"floor", pointwise<1, 1>},
        {"ceil", pointwise<1, 1>},
        {"round", pointwise<1, 1>},
        {"bitwise_and", pointwise<2, 1>},
        {"bitwise_or", pointwise<2, 1>},
        {"bitwise_not", pointwise<1, 1>},
        {"bitwise_xor", pointwise<2, 1>},
        {"atan2", pointwise<2, 1>},
        {"__lshift__", pointwise<2, 1>},
        {"__rshift__", pointwise<2, 1>},
        {"bitwise_right_shift", pointwise<2, 1>},
        {"bitwise_left_shift", pointwise<2, 1>},
        {"native_dropout", pointwise<1, 2>},
        {"dropout", pointwise<1, 2>},
        {"threshold_backward", pointwise<2, 1>},
        {"silu_backward", pointwise<2, 6>},
        {"gelu_backward", pointwise<2, 12>},
        {"tril", pointwise<1, 1>},
        {"triu", pointwise<1, 1>},
        {"sign", pointwise<1, 1>},
        {"glu", pointwise<1, 4>},
        {"logit", pointwise<1, 2>},
        {"log1p", pointwise<1, 1>},
        {"expm1", pointwise<1, 1>},
        {"flip", pointwise<1, 0>},
        {"roll", pointwise<1, 0>},
        {"eq", pointwise<2, 1, 1>},
        {"ne", pointwise<2, 1, 1>},
        {"lt", pointwise<2, 1, 1>},
        {"le", pointwise<2, 1, 1>},
        {"gt", pointwise<2, 1, 1>},
        {"ge", pointwise<2, 1, 1>},
        {"logical_not", pointwise<1, 1, 1>},
        {"logical_and", pointwise<2, 1, 1>},
        {"logical_or", pointwise<2, 1, 1>},
        {"isnan", pointwise<1, 1, 1>},
        {"isinf", pointwise<1, 1, 1>},
        {"isin", pointwise<1, 1, 1>},

        {"sum", reduce<1>},
        {"mean", reduce<1>},
        {"amax", reduce<1>},
        {"amin", reduce<1>},
        {"prod", reduce<1>},
        {"max", reduce<1>},
        {"min", reduce<1>},
        {"var", reduce<3>},
        {"std", reduce<3>},
        {"var_mean", reduce<3>},
        {"norm", reduce<2, 2>},
        {"linalg_vector_norm", reduce<2, 2>},
        {"logsumexp", reduce<3>},
        {"any", reduce<1, 1, 1>},
        {"all", reduce<1, 1, 1>},
        {"argmax", reduce<1, 1, 8>},
        {"argmin", reduce<1, 1, 8>},
        {"count_nonzero", reduce<1, 1, 8>},
        {"nonzero", reduce<1, 1, 8>},
        {"bincount", reduce<1, 9, 8>},
        {"histc", reduce<1, 9, 4>},
        {"_local_scalar_dense", reduce<0>},
        {"is_nonzero", reduce<0>},
        {"unique", reduce<1>},
        {"_unique2", reduce<1>},
        {"multinomial", reduce<3, 9, 8>},
        {"cumsum", pointwise<1, 1>},
        {"cumprod", pointwise<1, 1>},
        {"sort", pointwise<1, 1>},
        {"argsort", pointwise<1, 1, 8>},
        {"topk", reduce<1, 9>},
        {"_assert_async", reduce<0>},

        {"copy", copied},
        {"_foreach_copy", concatenated},
        {"fill", [](const Call& c) { return written_only(c, 0); }},
        {"zero", [](const Call& c) { return written_only(c, 0); }},
        {"uniform", [](const Call& c) { return written_only(c, 0); }},
        {"normal", [](const Call& c) { return written_only(c, 0); }},
        {"exponential", [](const Call& c) { return written_only(c, 0); }},
        {"random", [](const Call& c) { return written_only(c, 0); }},
        {"bernoulli", [](const Call& c) { return written_only(c, 0); }},
        {"arange",
         [](const Call& c) -> std::
                               optional<Effort> {
                                   std::int64_t begin = 0;
                                   std::int64_t end = c.integer(0, 0);
                                   if (c.integer(1, -1) >= 0) {
                                       begin = end;
                                       end = c.integer(1, 0);
                                   }
                                   return moved(Kind::copy, 0.0, 8.0 * std::max(0.0, static_cast<double>(end - begin)));
                               }},
        {"cat", concatenated},
        {"stack", concatenated},
        {"embedding", [](const Call& c) { return picked_rows(c, 1, 0, true); }},
        {"index_select",
         [](const Call& c) { return picked_rows(c, 2, static_cast<std::ptrdiff_t>(c.integer(1, 0)), true); }},
        {"gather", gathered},
        {"index", indexed},
        {"take", [](const Call& c) { return picked_rows(c, 1, 0, false); }},
        {"index_put",
         [](const Call& c) -> std::
                               optional<Effort> {
                                   if (c.tensor(2) == nullptr) return std::nullopt;
                                   return moved(Kind::gather, 0.0, 2.0 * c.bytes(2));
                               }},
        {"_index_put_impl",
         [](const Call& c) -> std::
                               optional<Effort> {
                                   if (c.tensor(2) == nullptr) return std::nullopt;
                                   return moved(Kind::gather, 0.0, 2.0 * c.bytes(2));
                               }},
        {"index_copy",
         [](const Call& c) -> std::
                               optional<Effort> {
                                   if (c.tensor(3) == nullptr) return std::nullopt;
                                   return moved(Kind::gather, 0.0, 2.0 * c.bytes(3) + c.bytes(2));
                               }},
        {"index_add",
         [](const Call& c) -> std::
                               optional<Effort> {
                                   const Tensor* added = c.tensor(3);
                                   if (added == nullptr) return std::nullopt;
                                   return moved(Kind::gather, elements(*added), 3.0 * c.bytes(3) + c.bytes(2));
                               }},
        {"scatter",
         [](const Call& c) -> std::
                               optional<Effort> {
                                   const Tensor* index = c.tensor(2);
                                   if (index == nullptr) return std::nullopt;
                                   return moved(Kind::gather, 0.0,
                                                c.bytes(2) + c.bytes(3) + elements(*index) * c.size(0));
                               }},
        {"scatter_add",
         [](const Call& c) -> std::
                               optional<Effort> {
                                   const Tensor* index = c.tensor(2);
                                   if (index == nullptr) return std::nullopt;
                                   return moved(Kind::gather, elements(*index),
                                                c.bytes(2) + c.bytes(3) + 2.0 * elements(*index) * c.size(0));
                               }},
        {"repeat_interleave", [](const Call& c) { return written_only(c, 0); }},
        {"embedding_dense_backward", [](const Call& c) { return written_only(c, 0); }},
        {"native_layer_norm_backward", [](const Call& c) { return elementwise(c, 2, 14.0); }},
        {"_softmax_backward_data", pointwise<2, 4>},
        {"mse_loss", pointwise<2, 3>},
        {"nll_loss_forward", reduce<1, 9>},
        {"constant_pad_nd", pointwise<1, 0>},
        {"upsample_nearest2d", pointwise<1, 0>},
        {"max_pool2d_with_indices", pointwise<1, 1>},
        {"avg_pool2d", pointwise<1, 1>},
    };
    return all;
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
    const auto found = formulas().find(plain_name(signature.name));
    if (found == formulas().end()) return std::nullopt;
    return found->second(call);
}

}  // namespace roofline::analyze
