// More or fewer devices share every matrix.
#include <fmt/format.h>

#include "roofline/decide/move.hpp"
#include "roofline/decide/spread.hpp"

namespace roofline::decide {
namespace {

Variant over(double devices, const Surroundings& around) {
    return {.name = fmt::format("tensor parallelism of {:g}", devices),
            .costs = "devices wait for each other twice a layer",
            .apply = [devices, node = around.node, most = around.most_devices](Candidate& candidate) {
                model::Deployment deployment = candidate.setup.deployment();
                // Experts that were spread over all ranks still are.
                const bool spread_experts = deployment.experts > 1.0;
                deployment.tensor = devices;
                if (spread_experts) deployment.experts = deployment.expert_ranks();
                if (devices == 1.0) deployment.sequence_parallel = false;
                return spread(candidate, deployment, node, most);
            }};
}

std::vector<Variant> variants(const Question& question) {
    return doubled(question, question.asked.setup.deployment().tensor, "tensor parallelism", over);
}

}  // namespace

extern const Move tensor_parallel_move;
const Move tensor_parallel_move{"tensor_parallel", "tensor parallelism", 11, variants};

}  // namespace roofline::decide
