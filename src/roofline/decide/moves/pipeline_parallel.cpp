// Devices hold consecutive layers: more memory for each, no faster for any one sequence.
#include <fmt/format.h>

#include "roofline/decide/move.hpp"
#include "roofline/decide/spread.hpp"

namespace roofline::decide {
namespace {

Variant in_stages(double stages, const Surroundings& around) {
    return {
        .name = fmt::format("{:g} pipeline stage{}", stages, stages > 1.0 ? "s" : ""),
        .costs = "one sequence keeps one stage busy; needs as many sequences as stages",
        .apply = [stages, node = around.node, most = around.most_devices](Candidate& candidate) -> Result<std::string> {
            if (!candidate.setup.architecture) return fail("only the number of parameters is known");
            const auto layers = static_cast<double>(candidate.setup.architecture->layers.size());
            if (stages > layers) return fail(fmt::format("{:g} layers cannot fill {:g} stages", layers, stages));
            model::Deployment deployment = candidate.setup.deployment();
            deployment.pipeline = stages;
            return spread(candidate, deployment, node, most);
        }};
}

std::vector<Variant> variants(const Question& question) {
    return doubled(question, question.asked.setup.deployment().pipeline, "pipeline stages", in_stages);
}

}  // namespace

extern const Move pipeline_parallel_move;
const Move pipeline_parallel_move{"pipeline_parallel", "pipeline stages", 12, variants};

}  // namespace roofline::decide
