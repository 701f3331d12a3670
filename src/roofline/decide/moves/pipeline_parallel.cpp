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
    const model::Deployment& now = question.asked.setup.deployment();
    std::vector<Variant> result;
    double stages = 1.0;
    while (stages * now.devices() / now.pipeline <= question.around.most_devices) {
        if (stages != now.pipeline) result.push_back(in_stages(stages, question.around));
        stages *= 2.0;
    }
    if (result.empty())
        result.push_back(
            not_here("pipeline stages", fmt::format("all of the {:g} devices that are there are in use (--devices)",
                                                    question.around.most_devices)));
    return result;
}

}  // namespace

extern const Move pipeline_parallel_move;
const Move pipeline_parallel_move{"pipeline_parallel", "pipeline stages", 12, variants};

}  // namespace roofline::decide
