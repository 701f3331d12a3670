#include "roofline/model/attention/share_context.hpp"

#include "roofline/model/lowering.hpp"

namespace roofline::model {

void share_context(Lowering& to, const Reach& reach, double entry_bytes, double output_bytes) {
    const RankGroup ranks = to.deployment().context_group();
    if (ranks.ranks <= 1.0) return;
    to.communicate("kv_all_gather", Collective::all_gather, ranks, entry_bytes, to.keys(reach, Who::prefill()));
    to.communicate("merge", Collective::all_reduce, ranks, output_bytes, to.tokens(Who::decode()));
}

}  // namespace roofline::model
