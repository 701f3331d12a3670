#include "roofline/model/attention/sparse_gqa.hpp"

#include "roofline/core/whole.hpp"
#include "roofline/model/attention/share_context.hpp"
#include "roofline/model/deployment.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::model {

void SparseGqa::lower(Lowering& to) const {
    lower_inputs(to);
    lower_indexer(to, indexer_);
    share_context(to, Reach::full(), to.types().kv_bytes(entry_elements()),
                  to.stream_bytes(shape().heads * shape().values()));
    lower_core(to, Reach::best(chosen_tokens_, block_));
    lower_output(to);
}

std::string SparseGqa::describe() const {
    return "sparse " + Gqa::describe() + ", best " + whole(chosen_tokens_) + " read";
}

Result<BlockPtr> SparseGqa::on_rank(const Deployment& deployment) const {
    const auto cut = shape_on_rank(deployment);
    if (!cut) return std::unexpected(cut.error());
    // Every device needs the same choice of keys: the indexer is copied.
    return std::make_shared<SparseGqa>(*cut, indexer_, chosen_tokens_, block_);
}

}  // namespace roofline::model
