#include "roofline/model/attention/share_context.hpp"

#include "roofline/model/lowering.hpp"

namespace roofline::model {

void share_context(Lowering& to, double entry_bytes, double output_bytes) {
    const RankGroup ranks = to.deployment().context_group();
    // The gathered whole is that of all devices' tokens: as many times this one's.
    to.communicate("kv_all_gather", Collective::all_gather, ranks, entry_bytes * ranks.ranks,
                   to.tokens(Who::prefill()));
    to.communicate("merge", Collective::all_reduce, ranks, output_bytes, to.tokens(Who::decode()));
}

}  // namespace roofline::model
