// A call of an operator as formulas want it, and the pieces they are made of. Formulas live in operators/, one file a
// family; the folder is the registry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "roofline/analyze/effort.hpp"

namespace roofline::analyze {

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
            const double size = size_of(argument);
            for (const Tensor& tensor : argument.tensors) sum += tensor.dims.empty() ? 0.0 : distinct(tensor) * size;
        }
        return sum;
    }
    /// Bytes of a number of an argument. A list that says only that it is one is taken as what the others are, or as
    /// two.
    double size_of(const Argument& argument) const {
        const double known = bytes_of_type(argument.type);
        return argument.is_list && known == 0.0 ? list_size() : known;
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

/// A formula answers with nothing where the shapes do not fit it.
using Formula = std::optional<Effort> (*)(const Call&);
/// By name, without namespace, overload and the underscore of what works in place.
using Formulas = std::unordered_map<std::string_view, Formula>;

/// A dimension, from the end where negative; one where there is none.
double at(const Tensor& tensor, std::ptrdiff_t index);
Effort product(Product sizes, std::string_view type, double weights, double activations);
/// Bytes that are read or written once, and a few FLOPs.
Effort moved(Kind kind, double flops, double bytes);
/// `inputs` tensors in, one out, `flops` a number. `out_size`: bytes of a number written; zero: that of the widest
/// tensor with dimensions.
std::optional<Effort> elementwise(const Call& call, std::size_t inputs, double flops, double out_size = 0.0);
/// _foreach_NAME: of lists, element by element.
std::optional<Effort> over_lists(const Call& call, std::string_view name);
/// What torch.compile made.
std::optional<Effort> fused_kernel(const Call& call);

}  // namespace roofline::analyze
