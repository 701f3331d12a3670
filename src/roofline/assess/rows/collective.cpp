// Collectives: how long `num_gpus` devices take over `message_bytes`, all on one node or `devices_per_node` on each.
//
// What a message is follows the convention of nccl-tests, which is that of core/collective.hpp: the vector for an
// all-reduce; all that a rank has afterwards for an all-gather, before for a reduce-scatter; all that a rank sends, its
// own part included, for an exchange. The rows bear it out: read as one rank's part only, reduce-scatter and exchange
// between two A100 (268 MB in 826 and 845 us) would beat a link of 300 GB/s. A send-receive goes one way.
#include "roofline/core/collective.hpp"

#include <cmath>

#include "roofline/assess/measured.hpp"
#include "roofline/predict/execution.hpp"

namespace roofline::assess {
namespace {

Collective collective_of(std::string_view op) {
    if (op == "all_gather") return Collective::all_gather;
    if (op == "reduce_scatter") return Collective::reduce_scatter;
    if (op == "alltoall" || op == "all_to_all") return Collective::all_to_all;
    if (op == "send_recv" || op == "send_receive") return Collective::send_receive;
    return Collective::all_reduce;  // custom or a library's
}

std::string read(const RowContext& row, Measurement& into) {
    const double ranks = row.size("num_gpus");
    const double bytes = row.amount("message_bytes");
    if (ranks < 2.0 || bytes == 0.0) return "num_gpus below 2, or no message_bytes";
    const bool spread = !row.text("devices_per_node").empty();
    const double per_node = spread ? row.size("devices_per_node") : ranks;
    if (per_node == 0.0 || per_node > ranks || ranks / per_node != std::floor(ranks / per_node))
        return "devices_per_node does not divide num_gpus";

    // Adapters differ tenfold between clusters. Rows that do not say what joined their nodes have no limit to be held
    // against, and what they would teach holds for their cluster alone.
    if (per_node < ranks && row.device.bandwidth(Level::network) == nullptr)
        return "the network between its nodes is not stated";

    const Collective collective = collective_of(into.kind);
    const RankGroup group{ranks, ranks / per_node};
    Call call = call_of(row.device, name(collective), DType::fp16,
                        predict::collective_kernel(collective, group, bytes, row.device));
    call.link = link_within(row.device, per_node);
    call.machine.link = predict::machine_of(row.device, call.engine, call.type, per_node).link;
    into.calls = {call};
    into.fit_type = predict::collective_type(group, row.device);
    const std::string framework = lower_case(row.text("framework"));
    into.stack = framework.find("torch") != std::string::npos ? "torch_distributed" : framework;
    // Left out together: one number of ranks, sizes within a factor of four.
    double from = 1.0;
    while (from * 4.0 <= bytes) from *= 4.0;
    into.family = whole(from) + "/" + whole(ranks) + "/" + whole(per_node);
    into.label = whole(ranks) + " ranks" + (group.nodes > 1.0 ? " on " + whole(group.nodes) + " nodes" : "") + ", " +
                 whole(bytes) + " B";
    return {};
}

}  // namespace

extern const RowReader collective_rows;
const RowReader collective_rows{
    {"all_reduce", "custom_all_reduce", "all_gather", "reduce_scatter", "alltoall", "all_to_all", "send_recv",
     "send_receive"},
    {"message_bytes", "devices_per_node", "topology", "time_us_mean", "time_us_min", "time_us_max", "time_us_std"},
    read};

}  // namespace roofline::assess
