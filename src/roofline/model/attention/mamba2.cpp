#include "roofline/model/attention/mamba2.hpp"

#include "roofline/model/attention/convolution.hpp"
#include "roofline/model/deployment.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/model/shares.hpp"

namespace roofline::model {

void Mamba2::lower(Lowering& to) const {
    const Mamba2Shape& s = shape_;
    const int rows = to.tokens();
    const double inner = s.heads * s.head_dim;
    const double channels = inner + 2.0 * s.groups * s.state_size;
    const double in_cols = inner + channels + s.heads;
    to.product({.name = "in",
                .group = Group::attention,
                .role = Role::mixer_in,
                .rows = rows,
                .inner = to.hidden(),
                .cols = in_cols,
                .bias = s.projection_bias ? in_cols : 0.0});
    lower_convolution(
        to,
        {.channels = channels, .width = s.convolution, .bias = s.convolution_bias, .extra_parameters = 3.0 * s.heads});

    const double elements = inner * s.state_size;
    const double state = elements * s.state_bytes_per_element;
    const double moved = channels + s.heads + inner;
    to.keep("state", 0.0, Reach::full(), state);
    // F28, recurrent: decay (1), input (2), output (2) per state element, and the skip D x.
    const int decode = to.tokens(Who::decode());
    to.scan({.name = "core_recurrent",
             .formula = "F28",
             .engine = Engine::vector,
             .who = Who::decode(),
             .flops = Form(5.0 * elements + 2.0 * inner, decode),
             .flops_text = "(5 x " + to.number(elements) + " + 2 x " + to.number(inner) + ") x " + to.slot(decode),
             .state_bytes = state,
             .moved = moved,
             .heads = s.heads,
             .key_dim = s.state_size,
             .value_dim = s.head_dim});
    // F28, chunked: into and out of the state per token; C B^T per group and scores x X per head for each causal pair.
    const int prefill = to.tokens(Who::prefill());
    const int pairs = to.pairs(Reach::chunked(s.chunk), Who::prefill());
    const double within = 2.0 * s.groups * s.state_size + 2.0 * inner;
    to.scan({.name = "core_chunked",
             .formula = "F28",
             .engine = Engine::matrix,
             .who = Who::prefill(),
             .flops = Form(4.0 * elements, prefill).add(within, pairs),
             .flops_text = "4 x " + to.number(elements) + " x " + to.slot(prefill) + " + " + to.number(within) + " x " +
                           to.slot(pairs),
             .state_bytes = state,
             .moved = moved,
             .heads = s.heads,
             .key_dim = s.state_size,
             .value_dim = s.head_dim});
    if (s.gated_norm) {
        Operator& norm = to.norm("gated_norm", inner, inner);
        norm.activation_bytes.add(to.stream_bytes(inner), rows);  // the gate
        norm.extent.read += inner;
    } else {
        to.elementwise("gate", 2.0 * inner, 2.0 * inner, inner, rows);
    }
    to.product({.name = "out",
                .group = Group::attention,
                .role = Role::mixer_out,
                .rows = rows,
                .inner = inner,
                .cols = to.hidden(),
                .bias = s.projection_bias ? to.hidden() : 0.0});
}

std::string Mamba2::describe() const {
    return "Mamba-2, " + whole(shape_.heads) + " states of " + whole(shape_.head_dim) + " x " +
           whole(shape_.state_size);
}

Result<BlockPtr> Mamba2::on_rank(const Deployment& deployment) const {
    Mamba2Shape cut = shape_;
    Shares shares;
    shares.even(cut.heads, deployment.tensor, "state-space heads");
    shares.even_or_copied(cut.groups, deployment.tensor, "state-space groups");
    return shares.block<Mamba2>(cut);
}

}  // namespace roofline::model
