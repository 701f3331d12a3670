// Communication that is split or hidden.
#include "roofline/decide/move.hpp"
#include "roofline/decide/spread.hpp"

namespace roofline::decide {
namespace {

Variant two_batches(const Surroundings& around) {
    return {.name = "two batches, one computing while one communicates",
            .costs = "weights are read twice; twice the graphs",
            .apply = [node = around.node, most = around.most_devices](Candidate& candidate) -> Result<std::string> {
                model::Deployment deployment = candidate.setup.deployment();
                if (deployment.stage_devices() == 1.0) return fail("a single device has nobody to talk to");
                if (deployment.two_batches) return fail("two batches overlap already");
                if (candidate.setup.workload.batch < 2.0 * deployment.replicas * deployment.groups)
                    return fail("a single sequence makes no two batches");
                deployment.two_batches = true;
                return spread(candidate, deployment, node, most);
            }};
}

Variant sequence_parallel(const Surroundings& around) {
    return {.name = "norms and sums split by tokens",
            .costs = "none",
            .apply = [node = around.node, most = around.most_devices](Candidate& candidate) -> Result<std::string> {
                model::Deployment deployment = candidate.setup.deployment();
                if (deployment.tensor == 1.0) return fail("nothing is split by tensor parallelism");
                if (deployment.sequence_parallel) return fail("they are split already");
                deployment.sequence_parallel = true;
                return spread(candidate, deployment, node, most);
            }};
}

std::vector<Variant> variants(const Question& question) {
    return {two_batches(question.around), sequence_parallel(question.around)};
}

}  // namespace

extern const Move overlap_move;
const Move overlap_move{"overlap", "communication hidden or split", 15, variants};

}  // namespace roofline::decide
