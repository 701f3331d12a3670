// Multi-head latent attention (DeepSeek V2, V3, R1, Kimi K2; with an indexer V3.2 and GLM-5): keys and values of all
// heads are one cached latent vector. Two ways to compute it, with the same result and very different work:
//   expanded  the latent is projected up to keys and values of every head (a prefill with little behind it)
//   absorbed  the up-projections move into query and output, and attention works on the latent itself (decode)
#pragma once

#include <optional>

#include "roofline/model/architecture.hpp"
#include "roofline/model/attention/indexer.hpp"

namespace roofline::model {

struct MlaShape {
    double heads = 0.0;
    double query_rank = 0.0;  // 0: queries are projected directly (V2-Lite)
    double kv_rank = 0.0;
    double nope_dim = 0.0;  // part of a head without rotation
    double rope_dim = 0.0;  // rotated part, one key shared by all heads
    double value_dim = 0.0;
    bool bias = false;
    std::optional<Indexer> indexer;
    double chosen = 0.0;  // keys the indexer leaves; also for layers that reuse another layer's choice
};

class Mla final : public Block {
  public:
    explicit Mla(const MlaShape& shape) : shape_(shape) {}
    void lower(Lowering& lowering) const override;
    std::string describe() const override;
    Result<BlockPtr> on_rank(const Deployment& deployment) const override;

  private:
    MlaShape shape_;
};

}  // namespace roofline::model
