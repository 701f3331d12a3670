// A dense FFN: gated (SwiGLU, GeGLU: three matrices) or plain (GPT-2, OPT, Nemotron: two).
#pragma once

#include "roofline/model/architecture.hpp"
#include "roofline/model/role.hpp"

namespace roofline::model {

struct DenseShape {
    double width = 0.0;
    bool gated = true;
    bool bias = false;
    bool inner_norm = false;         // a norm between the two products (BitNet)
    double learnt_activation = 0.0;  // parameters of the activation itself (Apertus)
};

class Dense final : public Block {
  public:
    explicit Dense(const DenseShape& shape) : shape_(shape) {}
    void lower(Lowering& lowering) const override;
    std::string describe() const override;
    Result<BlockPtr> on_rank(const Deployment& deployment) const override;

  private:
    DenseShape shape_;
};

/// T2: flops per element of an activation: gated (SiLU or GELU, times the gate) and plain.
inline constexpr double gated_activation_flops = 5.0;
inline constexpr double plain_activation_flops = 4.0;

/// The three operators of an FFN; also used for shared experts, under other roles and names.
struct DenseNames {
    const char* gate_up;
    const char* activation;
    const char* down;
    Role gate_up_role;
    Role down_role;
};
void lower_dense(Lowering& lowering, const DenseShape& shape, const DenseNames& names, bool moe);

}  // namespace roofline::model
