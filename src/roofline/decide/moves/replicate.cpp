// Copies that share nothing but the sequences.
#include "roofline/decide/move.hpp"
#include "roofline/decide/spread.hpp"

namespace roofline::decide {
namespace {

std::vector<Variant> variants(const Question& question) {
    return {{.name = "twice as many replicas",
             .costs = "the weights are stored twice",
             .apply = [node = question.around.node,
                       most = question.around.most_devices](Candidate& candidate) -> Result<std::string> {
                 model::Deployment deployment = candidate.setup.deployment();
                 if (candidate.setup.workload.batch < 2.0 * deployment.replicas)
                     return fail("there are not enough sequences to share");
                 if (deployment.groups > 1.0) return fail("attention groups share the sequences already");
                 deployment.replicas *= 2.0;
                 return spread(candidate, deployment, node, most);
             }}};
}

}  // namespace

extern const Move replicate_move;
const Move replicate_move{"replicate", "replicas", 14, variants};

}  // namespace roofline::decide
