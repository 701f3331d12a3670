// Norms and softmax: every number is read, reduced along a row and written.
#include <algorithm>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

/// Reads and writes all of argument 0, with a weight and a bias beside it.
std::optional<Effort> normalised(const Call& call, double flops, std::size_t weight, std::size_t bias) {
    const Tensor* in = call.tensor(0, 1);
    if (in == nullptr) return std::nullopt;
    Effort effort = moved(Kind::norm, flops * elements(*in), call.bytes(0) + elements(*in) * call.size(0));
    effort.weights = call.bytes(weight) + call.bytes(bias);
    return effort;
}

}  // namespace

void norms_operators(Formulas& table) {
    table["native_layer_norm"] = [](const Call& c) { return normalised(c, 7.0, 2, 3); };
    table["layer_norm"] = [](const Call& c) { return normalised(c, 7.0, 2, 3); };
    table["_fused_rms_norm"] = [](const Call& c) { return normalised(c, 4.0, 2, 99); };
    table["native_group_norm"] = [](const Call& c) { return normalised(c, 7.0, 1, 2); };
    for (const char* name : {"native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit",
                             "_batch_norm_with_update", "_native_batch_norm_legit_no_training"})
        table[name] = [](const Call& c) { return normalised(c, 4.0, 1, 2); };
    table["_softmax"] = [](const Call& c) { return normalised(c, 5.0, 99, 99); };
    table["_log_softmax"] = [](const Call& c) { return normalised(c, 5.0, 99, 99); };
    table["rms_norm"] = [](const Call& c) -> std::optional<Effort> {
        // aten::rms_norm(x, shape, weight); engines' own: rms_norm(out, x, weight, epsilon).
        if (c.tensor(1, 1) != nullptr)
            return moved(Kind::norm, 4.0 * elements(*c.tensor(1)), c.bytes(0) + c.bytes(1) + c.bytes(2));
        return normalised(c, 4.0, 2, 99);
    };
}

}  // namespace roofline::analyze
