#include "roofline/model/ffn/dense.hpp"

#include "roofline/model/deployment.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/model/shares.hpp"

namespace roofline::model {

void lower_dense(Lowering& to, const DenseShape& s, const DenseNames& names, bool moe) {
    const int rows = to.tokens();
    const Group group = moe ? Group::moe : Group::ffn;
    const double cols = s.gated ? 2.0 * s.width : s.width;
    to.product({.name = names.gate_up,
                .group = group,
                .role = names.gate_up_role,
                .rows = rows,
                .inner = to.hidden(),
                .cols = cols,
                .bias = s.bias ? cols : 0.0});
    const double flops = s.gated ? gated_activation_flops : plain_activation_flops;
    Operator& activation = to.elementwise(names.activation, flops * s.width, cols, s.width, rows);
    if (!s.gated) activation.style = "plain_activation";
    if (s.learnt_activation > 0.0) to.attach(activation, s.learnt_activation, Role::other);
    if (s.inner_norm) to.norm("inner_norm", s.width, to.norm_parameters(s.width));
    to.product({.name = names.down,
                .group = group,
                .role = names.down_role,
                .rows = rows,
                .inner = s.width,
                .cols = to.hidden(),
                .bias = s.bias ? to.hidden() : 0.0});
}

void Dense::lower(Lowering& to) const {
    lower_dense(to, shape_, {shape_.gated ? "gate_up" : "up", "activation", "down", Role::ffn_gate_up, Role::ffn_down},
                false);
}

std::string Dense::describe() const {
    return std::string(shape_.gated ? "gated" : "plain") + " FFN of " + whole(shape_.width);
}

Result<BlockPtr> Dense::on_rank(const Deployment& deployment) const {
    DenseShape cut = shape_;
    Shares shares;
    shares.even(cut.width, deployment.tensor, "columns of the FFN");
    return shares.block<Dense>(cut);
}

}  // namespace roofline::model
