// Backward passes. A forward operator that reads x and writes y reads the gradient of y beside x here and writes that
// of x; matrix products of a backward pass are plain products and need no formula of their own.
#include <algorithm>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

/// Attention(gradient, q, k, v, ...): the scores once more, then the gradients of scores, q, k and v: five products
/// where the forward pass has two. Reads q, k, v, the result and its gradient; writes the gradients of q, k and v.
std::optional<Effort> attention_backward(const Call& call, bool heads_first, bool causal) {
    const Tensor* q = call.tensor(1, 4);
    const Tensor* k = call.tensor(2, 4);
    const Tensor* v = call.tensor(3, 4);
    if (q == nullptr || k == nullptr || v == nullptr) return std::nullopt;
    const std::ptrdiff_t heads = heads_first ? -3 : -2;
    const std::ptrdiff_t tokens = heads_first ? -2 : -3;
    const double queries = at(*q, tokens);
    const double keys = at(*k, tokens);
    double pairs = queries * keys;
    if (causal && queries <= keys) pairs -= queries * (queries - 1.0) / 2.0;
    Effort effort;
    effort.kind = Kind::attention;
    effort.engine = Engine::matrix;
    effort.type = dtype_of(call.type(1));
    // Over the width of keys: scores, gradients of q and of k; over that of values: gradients of scores and of v.
    effort.flops = 2.0 * at(*q, 0) * at(*q, heads) * pairs * (3.0 * at(*q, -1) + 2.0 * at(*v, -1));
    effort.kv = 2.0 * (call.bytes(2) + call.bytes(3));
    effort.activations = 2.0 * call.bytes(1) + 2.0 * call.bytes(0);
    return effort;
}

/// Reads `inputs` tensors of one size, writes one more.
template <std::size_t Inputs, int FlopsPerNumber>
std::optional<Effort> gradient(const Call& call) {
    return elementwise(call, Inputs, FlopsPerNumber);
}

/// One number of every row is looked at: (scores, target, ...).
std::optional<Effort> of_targets(const Call& call, std::size_t scores_at) {
    const Tensor* target = call.tensor(scores_at + 1);
    if (call.tensor(scores_at) == nullptr || target == nullptr) return std::nullopt;
    return moved(Kind::gather, elements(*target), elements(*target) * call.size(scores_at) + call.bytes(scores_at + 1));
}

}  // namespace

void training_operators(Formulas& table) {
    for (const char* name : {"_scaled_dot_product_cudnn_attention_backward", "_cudnn_attention_backward"})
        table[name] = [](const Call& c) { return attention_backward(c, true, c.flag(14)); };
    for (const char* name :
         {"_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention_backward"})
        table[name] = [](const Call& c) { return attention_backward(c, true, c.flag(11)); };
    table["_efficient_attention_backward"] = [](const Call& c) {
        return attention_backward(c, false, c.integer(14, 0) > 0);
    };
    table["_flash_attention_backward"] = [](const Call& c) { return attention_backward(c, false, c.flag(11)); };

    table["_log_softmax_backward_data"] = gradient<2, 4>;
    for (const char* name :
         {"tanh_backward", "sigmoid_backward", "leaky_relu_backward", "hardtanh_backward", "elu_backward",
          "native_dropout_backward", "softplus_backward", "hardsigmoid_backward", "hardswish_backward", "mish_backward",
          "hardshrink_backward", "log_sigmoid_backward", "_prelu_kernel_backward"})
        table[name] = gradient<2, 3>;
    for (const char* name : {"native_group_norm_backward", "native_batch_norm_backward", "cudnn_batch_norm_backward"})
        table[name] = gradient<2, 10>;
    // (gradient, x, target): the gradient of a loss is one number.
    for (const char* name : {"mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward"})
        table[name] = gradient<3, 3>;
    table["_fused_rms_norm_backward"] = gradient<2, 10>;

    table["nll_loss_forward"] = [](const Call& c) { return of_targets(c, 0); };
    table["nll_loss_backward"] = [](const Call& c) { return of_targets(c, 1); };
    /// (gradient, indices, ...): rows are read and added to others.
    table["embedding_dense_backward"] = [](const Call& c) -> std::optional<Effort> {
        const Tensor* rows = c.tensor(0, 1);
        if (rows == nullptr) return std::nullopt;
        return moved(Kind::gather, elements(*rows), 2.0 * c.bytes(0) + c.bytes(1));
    };
}

}  // namespace roofline::analyze
