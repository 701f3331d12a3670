// Whole experts on each device instead of a slice of all, with attention shared or each device attending for itself.
#include <algorithm>

#include <fmt/format.h>

#include "roofline/decide/move.hpp"
#include "roofline/decide/spread.hpp"
#include "roofline/model/ffn/moe.hpp"

namespace roofline::decide {
namespace {

Variant over(double ranks, bool attend_apart, const Surroundings& around) {
    return {.name = attend_apart ? fmt::format("experts over {:g} devices, attention apart", ranks)
                                 : fmt::format("experts over {:g} devices", ranks),
            .costs = attend_apart
                         ? "every device holds all of the attention; tokens travel to experts; uneven experts wait"
                         : "uneven experts make devices wait (priced as even)",
            .apply = [ranks, attend_apart, node = around.node,
                      most = around.most_devices](Candidate& candidate) -> Result<std::string> {
                model::Deployment deployment = candidate.setup.deployment();
                if (attend_apart) {
                    deployment.groups = ranks;
                    deployment.tensor = 1.0;
                    deployment.sequence_parallel = false;
                } else if (deployment.expert_ranks() != ranks) {
                    deployment.tensor = ranks / deployment.groups;
                }
                deployment.experts = ranks;
                if (deployment == candidate.setup.deployment()) return fail("experts are spread like that already");
                return spread(candidate, deployment, node, most);
            }};
}

std::vector<Variant> variants(const Question& question) {
    const std::string name = "expert parallelism";
    const auto& architecture = question.asked.setup.architecture;
    if (!architecture || !model::has_experts(*architecture)) return {not_here(name, "the model has no experts")};
    const model::Deployment& now = question.asked.setup.deployment();
    const double there = question.around.most_devices * now.expert_ranks() / now.devices();
    const double ranks = now.expert_ranks() > 1.0 ? now.expert_ranks() : std::min(8.0, there);
    if (ranks < 2.0) return {not_here(name, "there is one device (--devices says how many there are)")};
    return {over(ranks, false, question.around), over(ranks, true, question.around)};
}

}  // namespace

extern const Move expert_parallel_move;
const Move expert_parallel_move{"expert_parallel", "experts over devices", 13, variants};

}  // namespace roofline::decide
