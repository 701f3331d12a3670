// What a step in float64 on the host (model_check.cu) takes, counted in multiplications.
#include <algorithm>

#include "roofline/bench/cuda/model_check.hpp"

namespace roofline::cuda::kernels {

namespace {

/// Of a product whose weights are decoded once, in `copies`, and of which a row multiplies `used`.
double product_work(const ProductShape& product, double rows, double copies = 1.0, double used = 1.0) {
    return static_cast<double>(product.n) * static_cast<double>(product.k) * (copies + rows * used);
}

double attention_work(const AttentionShape& shape, const StepShape& step) {
    const double rows = step.rows();
    double work = 0.0;
    // What kv_up weighs is multiplied where entries are not expanded too: into the queries and out of the results.
    for (const ProductShape* product :
         {&shape.qkv, &shape.q_down, &shape.q, &shape.kv_down, &shape.kv_up, &shape.out}) {
        work += product_work(*product, rows);
    }
    const auto kept = static_cast<double>(shape.kept(step.tokens, step.context));
    const auto heads = static_cast<double>(shape.query_heads);
    if (shape.latent() && !step.expanded) {
        const auto entry = static_cast<double>(shape.entry());
        return work + kept * (step.batch * entry + rows * heads * (entry + static_cast<double>(shape.rank)));
    }
    const auto width = static_cast<double>(shape.head_dim + shape.value_dim);
    return work + kept * width * (step.batch * static_cast<double>(shape.kv_heads) + rows * heads);
}

double state_work(const StateMixerShape& shape, const StepShape& step) {
    const double rows = step.rows();
    return product_work(shape.in, rows) + product_work(shape.out, rows) +
           4.0 * rows * static_cast<double>(shape.values() * shape.key_dim);
}

double ffn_work(const FfnShape& shape, double rows) {
    double work = 0.0;
    for (const ProductShape* product : {&shape.router, &shape.shared_up, &shape.shared_down, &shape.shared_gate}) {
        work += product_work(*product, rows);
    }
    // All experts' weights are decoded, though few are multiplied.
    const auto copies = static_cast<double>(std::max<std::int64_t>(1, shape.experts));
    for (const ProductShape* product : {&shape.up, &shape.down}) {
        work += product_work(*product, rows, copies, static_cast<double>(shape.slots()));
    }
    return work;
}

}  // namespace

bool small_enough(const StackShape& stack, const StepShape& step) {
    double work = product_work(stack.head, step.batch);
    for (const LayerShape& kind : stack.kinds) {
        work += static_cast<double>(kind.count) *
                (attention_work(kind.attention, step) + state_work(kind.state, step) + ffn_work(kind.ffn, step.rows()));
    }
    return work < 1e9;
}

}  // namespace roofline::cuda::kernels
