// How a model is spread over devices. A plain value: what one device then holds and does follows from it, block by
// block (Block::on_rank), and what the devices must tell each other follows in the lowering.
//
// Devices are numbered with the tensor ranks of a group next to each other, then the ranks that share a context, then
// attention groups, then pipeline stages, then replicas; so the busiest links are the shortest.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/collective.hpp"
#include "roofline/core/dtype.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/model/architecture.hpp"

namespace roofline::model {

/// How tokens of groups that attend apart come to experts that are spread over devices: each to the devices that hold
/// its experts, or all to all devices, each of which works on those that chose its experts.
enum class ExpertExchange { all_to_all, gather };
std::string_view name(ExpertExchange exchange);

struct Deployment {
    double tensor = 1.0;    // devices that share every head, matrix and vocabulary row
    double context = 1.0;   // devices that share every sequence: its new tokens in prefill, its cache in decode
    double groups = 1.0;    // groups that attend to their own sequences and have their experts in common
    double experts = 1.0;   // devices over which whole experts are spread; the rest of tensor x groups cuts each expert
    double pipeline = 1.0;  // stages that hold consecutive layers
    double replicas = 1.0;  // copies of all of that, which share nothing
    double node = 0.0;      // devices in a node; 0: one node holds them all

    bool sequence_parallel = false;               // norms and sums are split by tokens over the tensor ranks
    double imbalance = 1.0;                       // tokens of the busiest expert rank over the mean
    double redundant_experts = 0.0;               // copies of busy experts, in all
    std::optional<DType> dispatch = {};           // in what tokens travel to experts; empty: as they are
    std::optional<ExpertExchange> exchange = {};  // empty: as the engine does; without one, all to all
    double overlap = 0.0;                         // share of communication that hides behind computing
    bool two_batches = false;                     // half a batch computes while the other half communicates
    double host_weights = 0.0;                    // share of the weights that stays in the host's memory
    double host_kv = 0.0;                         // share of the cache that does

    double stage_devices() const { return tensor * context * groups; }
    double replica_devices() const { return stage_devices() * pipeline; }
    double devices() const { return replica_devices() * replicas; }
    double expert_ranks() const { return tensor * groups; }
    double expert_cut() const { return expert_ranks() / experts; }  // devices that share one expert
    bool exchanges_tokens() const { return groups > 1.0 && experts > 1.0 && expert_cut() == 1.0; }
    bool single() const { return replica_devices() == 1.0; }

    /// `ranks` devices numbered `stride` apart.
    RankGroup group_of(double ranks, double stride) const;
    RankGroup tensor_group() const { return group_of(tensor, 1.0); }
    RankGroup context_group() const { return group_of(context, tensor); }
    RankGroup expert_group() const { return group_of(expert_ranks(), 1.0); }
    /// Hand-overs between neighbouring stages that leave the node, of pipeline - 1.
    double hops_between_nodes() const;

    bool operator==(const Deployment&) const = default;
};

/// "TP4 x PP2", "attention DP8, EP8 (gather)"; "one device".
std::string describe(const Deployment& deployment);

/// Layers [first, last) of a pipeline stage.
struct LayerRange {
    std::size_t first = 0;
    std::size_t last = 0;
    bool operator==(const LayerRange&) const = default;
};

/// Layers as evenly as they go, the first stages taking one more.
std::vector<LayerRange> pipeline_ranges(std::size_t layers, double stages);

/// Whether any layer has experts that could be spread.
bool has_experts(const Architecture& model);

/// The model as one device of a deployment sees it: fewer heads, narrower matrices, fewer experts and rows of the
/// vocabulary. What cannot be cut so is refused, with the values that work.
Result<Architecture> on_rank(const Architecture& uncut, const Deployment& deployment);

}  // namespace roofline::model
