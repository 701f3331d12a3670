// Mamba selective scan (Jamba): a decay per channel and state element, so no matrix products in the scan.
#pragma once

#include "roofline/model/architecture.hpp"

namespace roofline::model {

struct Mamba1Shape {
    double inner = 0.0;
    double state_size = 0.0;
    double step_rank = 0.0;
    double convolution = 4.0;
    bool projection_bias = false;
    bool convolution_bias = true;
    bool inner_norms = false;  // Jamba normalises step, B and C
};

class Mamba1 final : public Block {
  public:
    explicit Mamba1(const Mamba1Shape& shape) : shape_(shape) {}
    void lower(Lowering& lowering) const override;
    std::string describe() const override;
    Result<BlockPtr> on_rank(const Deployment& deployment) const override;

  private:
    Mamba1Shape shape_;
};

}  // namespace roofline::model
