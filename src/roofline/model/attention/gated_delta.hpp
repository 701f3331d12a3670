// Gated delta net (Qwen3-Next, Qwen3.5): linear attention with a matrix state per value head, decayed and corrected at
// each token. Recurrent in decode, chunked (as matrix products) in prefill.
#pragma once

#include "roofline/model/architecture.hpp"

namespace roofline::model {

struct GatedDeltaShape {
    double key_heads = 0.0;
    double value_heads = 0.0;
    double key_dim = 0.0;
    double value_dim = 0.0;
    double convolution = 4.0;
    double chunk = 64.0;
    double state_bytes_per_element = 4.0;
};

class GatedDelta final : public Block {
  public:
    explicit GatedDelta(const GatedDeltaShape& shape) : shape_(shape) {}
    void lower(Lowering& lowering) const override;
    std::string describe() const override;
    Result<BlockPtr> on_rank(const Deployment& deployment) const override;

  private:
    GatedDeltaShape shape_;
};

}  // namespace roofline::model
