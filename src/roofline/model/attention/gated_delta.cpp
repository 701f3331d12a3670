#include "roofline/model/attention/gated_delta.hpp"

#include "roofline/model/attention/convolution.hpp"
#include "roofline/model/deployment.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/model/shares.hpp"

namespace roofline::model {

void GatedDelta::lower(Lowering& to) const {
    const GatedDeltaShape& s = shape_;
    const int rows = to.tokens();
    const double keys = s.key_heads * s.key_dim;
    const double values = s.value_heads * s.value_dim;
    const double mixed = 2.0 * keys + values;  // q, k, v go through the convolution; the gate z does not
    to.product({.name = "in",
                .group = Group::attention,
                .role = Role::mixer_in,
                .rows = rows,
                .inner = to.hidden(),
                .cols = mixed + values + 2.0 * s.value_heads});
    lower_convolution(to, {.channels = mixed, .width = s.convolution, .extra_parameters = 2.0 * s.value_heads});

    const double matrix = s.key_dim * s.value_dim;
    const double state = s.value_heads * matrix * s.state_bytes_per_element;
    to.keep("state", 0.0, Reach::full(), state);
    const double moved = mixed + 2.0 * s.value_heads + values;
    // F27, recurrent: decay (1), k S (2), rank-one update (2), q S (2) per state element.
    const int decode = to.tokens(Who::decode());
    to.scan({.name = "core_recurrent",
             .formula = "F27",
             .engine = Engine::vector,
             .who = Who::decode(),
             .flops = Form(7.0 * s.value_heads * matrix, decode),
             .flops_text = "7 x " + to.number(s.value_heads * matrix) + " x " + to.slot(decode),
             .state_bytes = state,
             .moved = moved,
             .heads = s.value_heads,
             .key_dim = s.key_dim,
             .value_dim = s.value_dim});
    // F27, chunked: three products with the state per token, and five within the chunk per causal pair.
    const int prefill = to.tokens(Who::prefill());
    const int pairs = to.pairs(Reach::chunked(s.chunk), Who::prefill());
    const double within = s.value_heads * (6.0 * s.key_dim + 4.0 * s.value_dim);
    to.scan({.name = "core_chunked",
             .formula = "F27",
             .engine = Engine::matrix,
             .who = Who::prefill(),
             .flops = Form(6.0 * s.value_heads * matrix, prefill).add(within, pairs),
             .flops_text = "6 x " + to.number(s.value_heads * matrix) + " x " + to.slot(prefill) + " + " +
                           to.number(within) + " x " + to.slot(pairs),
             .state_bytes = state,
             .moved = moved,
             .heads = s.value_heads,
             .key_dim = s.key_dim,
             .value_dim = s.value_dim});
    Operator& norm = to.norm("gated_norm", values, s.value_dim);
    norm.activation_bytes.add(to.stream_bytes(values), rows);  // the gate
    norm.extent.read += values;
    to.product({.name = "out",
                .group = Group::attention,
                .role = Role::mixer_out,
                .rows = rows,
                .inner = values,
                .cols = to.hidden()});
}

std::string GatedDelta::describe() const {
    return "gated delta net, " + whole(shape_.value_heads) + " states of " + whole(shape_.key_dim) + " x " +
           whole(shape_.value_dim);
}

Result<BlockPtr> GatedDelta::on_rank(const Deployment& deployment) const {
    GatedDeltaShape cut = shape_;
    Shares shares;
    shares.even(cut.key_heads, deployment.tensor, "key heads of linear attention");
    shares.even(cut.value_heads, deployment.tensor, "value heads of linear attention");
    return shares.block<GatedDelta>(cut);
}

}  // namespace roofline::model
