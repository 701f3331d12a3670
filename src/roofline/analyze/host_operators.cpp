#include "roofline/analyze/host_operators.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "roofline/analyze/effort.hpp"

namespace roofline::analyze {

void keep_what_ran(Timeline& timeline) {
    connect(timeline);                         // parents, which stand before their children
    std::vector<std::optional<double>> flops;  // by signature; empty: no formula
    for (const Signature& signature : timeline.signatures) {
        const auto effort = effort_of(signature);
        flops.push_back(effort ? std::optional(effort->flops) : std::nullopt);
    }
    const auto& operations = timeline.operations;
    std::vector<std::optional<double>> inside(operations.size());  // the most FLOPs of an operator within
    std::vector<bool> holds(operations.size(), false);             // any operator at all
    for (std::size_t i = operations.size(); i-- > 0;) {
        const std::uint32_t parent = operations[i].parent;
        if (parent == none) continue;
        holds[parent] = true;
        for (const auto& some : {flops[operations[i].signature], inside[i]}) {
            if (some) inside[parent] = std::max(inside[parent].value_or(0.0), *some);
        }
    }
    const bool gloo = std::any_of(timeline.signatures.begin(), timeline.signatures.end(),
                                  [](const Signature& signature) { return signature.name.starts_with("gloo:"); });
    Spool<Operation> kept;
    std::vector<bool> counted(operations.size(), false);  // it, or one around it
    for (std::size_t i = 0; i < operations.size(); ++i) {
        const Operation& op = operations[i];
        counted[i] = op.parent != none && counted[op.parent];
        if (counted[i]) continue;
        // It only asks for what another thread does.
        if (gloo && timeline.signatures[op.signature].name.starts_with("c10d::")) continue;
        const auto& own = flops[op.signature];
        // A linear layer calls a product of as many FLOPs: that one did the work. A product that copies its bias did
        // the work itself. What has no formula is kept where nothing within explains it.
        const bool done_within = inside[i] && (!own || *inside[i] >= 0.5 * *own);
        if (done_within || (!own && holds[i])) continue;
        counted[i] = true;
        kept.push_back(op);
        kept.back().parent = none;
    }
    timeline.operations = std::move(kept);
    timeline.host_runs_operators = true;
}

}  // namespace roofline::analyze
