#include "roofline/model/attention/convolution.hpp"

#include "roofline/model/lowering.hpp"

namespace roofline::model {

void lower_convolution(Lowering& to, const Convolution& c) {
    const int rows = to.tokens();
    Operator& op = to.elementwise("convolution", 2.0 * c.width * c.channels, c.channels, c.channels, rows);
    const double state = to.stream_bytes((c.width - 1.0) * c.channels);
    op.cache_bytes = Form(2.0 * state, to.sequences());
    op.formula = "F29";
    to.attach(op, c.channels * (c.width + (c.bias ? 1.0 : 0.0)) + c.extra_parameters, Role::mixer_state);
    to.keep("convolution", 0.0, Reach::full(), state);
}

}  // namespace roofline::model
