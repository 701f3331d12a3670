#include "roofline/model/parameters_only.hpp"

namespace roofline::model {

Lowered lower_parameters_only(double parameters, const TypePlan& types) {
    Lowered lowered;
    lowered.features.push_back({.what = Feature::What::tokens, .who = {}, .reach = {}});
    const WeightType& type = types.of(0, Role::ffn_gate_up);
    Operator op;
    op.name = "weights";
    op.kind = Kind::gemm;
    op.group = Group::ffn;
    op.engine = Engine::matrix;
    op.type = type.compute();
    op.role = Role::ffn_gate_up;
    op.flops = Form(2.0 * parameters, 0);
    op.parameters = op.active_parameters = parameters;
    op.stored_bytes = parameters * bits_per_element(type.format) / 8.0;
    op.weight_bytes = Form(op.stored_bytes);
    op.formula = "F10";
    op.shape = "{0} tokens through all weights";
    op.flops_text = "2 x {0} x parameters";
    lowered.operators.push_back(op);
    return lowered;
}

}  // namespace roofline::model
