// The short causal convolution in front of state-space and linear attention, and the few inputs it keeps.
#pragma once

namespace roofline::model {

class Lowering;

struct Convolution {
    double channels = 0.0;
    double width = 4.0;
    bool bias = false;
    double extra_parameters = 0.0;  // decays, step sizes: small vectors that stream with it
};

void lower_convolution(Lowering& lowering, const Convolution& convolution);

}  // namespace roofline::model
