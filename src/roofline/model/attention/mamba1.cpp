#include "roofline/model/attention/mamba1.hpp"

#include "roofline/model/attention/convolution.hpp"
#include "roofline/model/deployment.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/model/shares.hpp"

namespace roofline::model {

void Mamba1::lower(Lowering& to) const {
    const Mamba1Shape& s = shape_;
    const int rows = to.tokens();
    to.product({.name = "in",
                .group = Group::attention,
                .role = Role::mixer_in,
                .rows = rows,
                .inner = to.hidden(),
                .cols = 2.0 * s.inner,
                .bias = s.projection_bias ? 2.0 * s.inner : 0.0});
    // A and D are learnt per channel and stream with the convolution.
    lower_convolution(to, {.channels = s.inner,
                           .width = s.convolution,
                           .bias = s.convolution_bias,
                           .extra_parameters = s.inner * s.state_size + s.inner});
    const double selected = s.step_rank + 2.0 * s.state_size;
    to.product({.name = "select",
                .group = Group::attention,
                .role = Role::mixer_state,
                .rows = rows,
                .inner = s.inner,
                .cols = selected});
    // Step, B and C are chosen from all channels: the tensor ranks add up their parts.
    to.communicate("select_all_reduce", Collective::all_reduce, to.deployment().tensor_group(),
                   to.stream_bytes(selected), rows);
    if (s.inner_norms) to.norm("select_norm", selected, selected);
    to.product({.name = "step",
                .group = Group::attention,
                .role = Role::mixer_state,
                .rows = rows,
                .inner = s.step_rank,
                .cols = s.inner,
                .bias = s.inner});

    const double elements = s.inner * s.state_size;
    const double state = 4.0 * elements;
    to.keep("state", 0.0, Reach::full(), state);
    // F28: per state element exp (counted 1), two products for the input, decay and add, output multiply-add, ...: 9.
    to.scan({.name = "core",
             .formula = "F28",
             .engine = Engine::vector,
             .who = {},
             .flops = Form(9.0 * elements, rows),
             .flops_text = "9 x " + to.number(elements) + " x " + to.slot(rows),
             .state_bytes = state,
             .moved = 4.0 * s.inner + 2.0 * s.state_size,
             .heads = s.inner,
             .key_dim = s.state_size,
             .value_dim = 1.0});
    to.product({.name = "out",
                .group = Group::attention,
                .role = Role::mixer_out,
                .rows = rows,
                .inner = s.inner,
                .cols = to.hidden(),
                .bias = s.projection_bias ? to.hidden() : 0.0});
}

std::string Mamba1::describe() const {
    return "Mamba-1, " + whole(shape_.inner) + " channels x " + whole(shape_.state_size) + " states";
}

Result<BlockPtr> Mamba1::on_rank(const Deployment& deployment) const {
    Mamba1Shape cut = shape_;
    Shares shares;
    shares.even(cut.inner, deployment.tensor, "state-space channels");
    return shares.block<Mamba1>(cut);
}

}  // namespace roofline::model
