// Optimizers: lists of parameters, gradients and moments, updated in one call.
#include <algorithm>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

/// Numbers and bytes of one argument, a list or a single tensor.
struct Amount {
    double numbers = 0.0;
    double bytes = 0.0;
};

Amount amount(const Call& call, std::size_t index) {
    Amount sum;
    if (index >= call.signature().arguments.size()) return sum;
    const Argument& argument = call.signature().arguments[index];
    const double size = call.size_of(argument);
    for (const Tensor& tensor : argument.tensors) {
        if (size == 0.0) continue;
        sum.numbers += elements(tensor);
        sum.bytes += distinct(tensor) * size;
    }
    return sum;
}

/// Every list is read; all but the gradients, which stand second, are written again.
std::optional<Effort> fused(const Call& call, double flops) {
    const Amount parameters = amount(call, 0);
    if (parameters.numbers == 0.0) return std::nullopt;
    double bytes = 0.0;
    for (std::size_t i = 0; i < call.signature().arguments.size(); ++i) {
        const Amount list = amount(call, i);
        bytes += (i == 1 ? 1.0 : 2.0) * list.bytes;
    }
    return moved(Kind::elementwise, flops * parameters.numbers, bytes);
}

}  // namespace

/// _foreach_NAME(list, ...): element by element over lists. Reads them all and writes one more, or the first in place.
std::optional<Effort> over_lists(const Call& call, std::string_view name) {
    const Amount first = amount(call, 0);
    if (first.numbers == 0.0) return std::nullopt;
    double read = 0.0;
    double operands = 0.0;
    // The square of a gradient: both factors are one list.
    const std::size_t lists = name.starts_with("_foreach_addcmul") ? 2 : call.signature().arguments.size();
    for (std::size_t i = 0; i < std::min(lists, call.signature().arguments.size()); ++i) {
        const Amount one = amount(call, i);
        read += one.bytes;
        operands += one.numbers >= first.numbers ? 1.0 : 0.0;
    }
    if (name.starts_with("_foreach_zero")) return moved(Kind::copy, 0.0, first.bytes);
    if (name.starts_with("_foreach_copy")) return moved(Kind::copy, 0.0, std::max(read, 2.0 * first.bytes));
    const bool reduces = name.starts_with("_foreach_norm") || name.starts_with("_foreach_max");
    return moved(Kind::elementwise, std::max(1.0, operands) * first.numbers, read + (reduces ? 0.0 : first.bytes));
}

void optimizers_operators(Formulas& table) {
    // Decay, two moments, two roots, quotient and step: twelve operations a parameter.
    for (const char* name : {"_fused_adam", "_fused_adamw"}) table[name] = [](const Call& c) { return fused(c, 12.0); };
    table["_fused_sgd"] = [](const Call& c) { return fused(c, 4.0); };
    table["_fused_adagrad"] = [](const Call& c) { return fused(c, 6.0); };
    // (gradients, found_inf, scale): scaled where they lie.
    table["_amp_foreach_non_finite_check_and_unscale"] = [](const Call& c) -> std::optional<Effort> {
        const Amount gradients = amount(c, 0);
        if (gradients.numbers == 0.0) return std::nullopt;
        return moved(Kind::elementwise, 2.0 * gradients.numbers, 2.0 * gradients.bytes);
    };
}

}  // namespace roofline::analyze
