// How well every entry of a context suits a token, by the small queries and keys of an indexer (kernels/chosen.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "roofline/bench/kernels/chosen.hpp"
#include "roofline/bench/operands.hpp"

namespace roofline::bench {

struct IndexShape {
    std::int64_t batch = 0;
    std::int64_t tokens = 1;  // new ones of each sequence, the last of the context
    std::int64_t heads = 0;
    std::int64_t context = 0;
};

class IndexScores {
  public:
    /// scores[row][position], `context` to a row, of the positions that a token sees: the sum over heads of its share
    /// times what is positive of query x key. Queries lie in rows of heads x dim.
    void find(const float* queries, const RowsApart& shares, const IndexKeys& keys, const IndexShape& shape,
              float* scores, Threads& threads);

  private:
    const ProductKernels& products_ = best_products();
    Activations activations_;
    std::vector<float> dots_;
};

}  // namespace roofline::bench
