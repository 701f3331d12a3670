// Two mixers that read the same input and are added up (Falcon-H1: attention beside a state space).
#pragma once

#include "roofline/model/architecture.hpp"

namespace roofline::model {

class SideBySide final : public Block {
  public:
    SideBySide(BlockPtr first, BlockPtr second) : first_(std::move(first)), second_(std::move(second)) {}
    void lower(Lowering& lowering) const override;
    std::string describe() const override;
    Result<BlockPtr> on_rank(const Deployment& deployment) const override;

  private:
    BlockPtr first_;
    BlockPtr second_;
};

}  // namespace roofline::model
