// Mamba-2 state space (Mamba-2, Nemotron-H, Nemotron 3): a scalar decay per head and a state of head_dim x state_size.
// Recurrent in decode, chunked (as matrix products) in prefill.
#pragma once

#include "roofline/model/architecture.hpp"

namespace roofline::model {

struct Mamba2Shape {
    double heads = 0.0;
    double head_dim = 0.0;
    double groups = 1.0;
    double state_size = 0.0;
    double convolution = 4.0;
    double chunk = 256.0;
    bool projection_bias = false;
    bool convolution_bias = true;
    double state_bytes_per_element = 4.0;
    bool gated_norm = true;  // without it the gate alone is applied
};

class Mamba2 final : public Block {
  public:
    explicit Mamba2(const Mamba2Shape& shape) : shape_(shape) {}
    void lower(Lowering& lowering) const override;
    std::string describe() const override;
    Result<BlockPtr> on_rank(const Deployment& deployment) const override;

  private:
    Mamba2Shape shape_;
};

}  // namespace roofline::model
