// Compressed attention (DeepSeek V4): one key-value vector shared by all heads, of which only a short window is kept as
// it is; older tokens are pooled, `ratio` at a time, and read either all (ratio 128) or the best of them (ratio 4).
#pragma once

#include <optional>

#include "roofline/model/architecture.hpp"
#include "roofline/model/attention/indexer.hpp"

namespace roofline::model {

struct CompressedShape {
    double heads = 0.0;
    double head_dim = 0.0;
    double rope_dim = 0.0;
    double query_rank = 0.0;
    double out_rank = 0.0;
    double out_groups = 1.0;
    double window = 0.0;
    double ratio = 0.0;                 // 0: the window alone
    double series = 1.0;                // pooled series side by side: 2 where windows overlap
    double chosen = Reach::everything;  // pooled entries read
    std::optional<Indexer> indexer;
};

class Compressed final : public Block {
  public:
    explicit Compressed(const CompressedShape& shape) : shape_(shape) {}
    void lower(Lowering& lowering) const override;
    std::string describe() const override;
    Result<BlockPtr> on_rank(const Deployment& deployment) const override;

  private:
    CompressedShape shape_;
};

}  // namespace roofline::model
