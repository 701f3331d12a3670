// GQA that reads only the blocks of keys an indexer chose (MiniMax M3).
#pragma once

#include "roofline/model/attention/gqa.hpp"
#include "roofline/model/attention/indexer.hpp"

namespace roofline::model {

class SparseGqa final : public Gqa {
  public:
    SparseGqa(const GqaShape& shape, const Indexer& indexer, double chosen_tokens, double block)
        : Gqa(shape), indexer_(indexer), chosen_tokens_(chosen_tokens), block_(block) {}
    void lower(Lowering& lowering) const override;
    std::string describe() const override;
    Result<BlockPtr> on_rank(const Deployment& deployment) const override;

  private:
    Indexer indexer_;
    double chosen_tokens_;
    double block_;  // tokens are chosen in blocks of this many
};

}  // namespace roofline::model
