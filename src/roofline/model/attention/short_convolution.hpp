// A gated short convolution in place of attention (LFM2): three streams from the input, one convolved between the
// products of the two others. What is kept per sequence does not grow.
#pragma once

#include "roofline/model/architecture.hpp"

namespace roofline::model {

struct ShortConvolutionShape {
    double channels = 0.0;
    double width = 3.0;
    bool bias = false;
};

class ShortConvolution final : public Block {
  public:
    explicit ShortConvolution(const ShortConvolutionShape& shape) : shape_(shape) {}
    void lower(Lowering& lowering) const override;
    std::string describe() const override;
    Result<BlockPtr> on_rank(const Deployment& deployment) const override;

  private:
    ShortConvolutionShape shape_;
};

}  // namespace roofline::model
