#include "roofline/model/attention/short_convolution.hpp"

#include "roofline/model/attention/convolution.hpp"
#include "roofline/model/deployment.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/model/shares.hpp"

namespace roofline::model {

void ShortConvolution::lower(Lowering& to) const {
    const ShortConvolutionShape& s = shape_;
    const int rows = to.tokens();
    to.product({.name = "in",
                .group = Group::attention,
                .role = Role::mixer_in,
                .rows = rows,
                .inner = to.hidden(),
                .cols = 3.0 * s.channels,
                .bias = s.bias ? 3.0 * s.channels : 0.0});
    to.elementwise("gate", s.channels, 2.0 * s.channels, s.channels, rows);
    lower_convolution(to, {.channels = s.channels, .width = s.width, .bias = s.bias});
    to.elementwise("out_gate", s.channels, 2.0 * s.channels, s.channels, rows);
    to.product({.name = "out",
                .group = Group::attention,
                .role = Role::mixer_out,
                .rows = rows,
                .inner = s.channels,
                .cols = to.hidden(),
                .bias = s.bias ? to.hidden() : 0.0});
}

std::string ShortConvolution::describe() const {
    return "convolution over " + whole(shape_.width) + " tokens, " + whole(shape_.channels) + " channels";
}

Result<BlockPtr> ShortConvolution::on_rank(const Deployment& deployment) const {
    ShortConvolutionShape cut = shape_;
    Shares shares;
    shares.even(cut.channels, deployment.tensor, "channels of a convolution");
    return shares.block<ShortConvolution>(cut);
}

}  // namespace roofline::model
