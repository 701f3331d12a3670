#include "roofline/model/attention/sparse_gqa.hpp"

#include "roofline/model/lowering.hpp"

namespace roofline::model {

void SparseGqa::lower(Lowering& to) const {
    lower_inputs(to);
    lower_indexer(to, indexer_);
    lower_core(to, Reach::best(chosen_tokens_, block_));
    lower_output(to);
}

std::string SparseGqa::describe() const {
    return "sparse " + Gqa::describe() + ", best " + std::to_string(static_cast<long long>(chosen_tokens_)) + " read";
}

}  // namespace roofline::model
