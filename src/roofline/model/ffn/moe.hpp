// Mixture of experts: a router, k of E experts per token, shared experts that every token passes.
#pragma once

#include "roofline/model/architecture.hpp"

namespace roofline::model {

struct MoeShape {
    double experts = 0.0;
    double chosen = 0.0;
    double width = 0.0;  // of one expert
    double held = 0.0;   // experts on this device; 0: all
    bool gated = true;
    bool bias = false;               // on experts and router (gpt-oss)
    double router_parameters = 0.0;  // beside its matrix: correction biases, scales
    double shared_width = 0.0;       // all shared experts together; 0: none
    bool shared_gate = false;        // a scalar gate on the shared expert (Qwen)
    double latent = 0.0;             // experts work in this narrower space (Nemotron 3); 0: the hidden width
    double dense_width = 0.0;        // a dense FFN beside the experts (Gemma 4)
    int extra_norms = 0;             // further norms of the hidden width around the two (Gemma 4)
    double extra_parameters = 0.0;
};

class Moe final : public Block {
  public:
    explicit Moe(const MoeShape& shape) : shape_(shape) {}
    void lower(Lowering& lowering) const override;
    std::string describe() const override;
    Result<BlockPtr> on_rank(const Deployment& deployment) const override;
    bool has_experts() const override { return true; }

  private:
    MoeShape shape_;
};

}  // namespace roofline::model
