#include "roofline/decide/spread.hpp"

#include <fmt/format.h>

namespace roofline::decide {

std::string deployment_flags(const model::Deployment& deployment) {
    std::string flags;
    const auto add = [&](const char* flag, double value) {
        if (value > 1.0) flags += fmt::format("{}{} {:g}", flags.empty() ? "" : " ", flag, value);
    };
    add("--tp", deployment.tensor);
    add("--pp", deployment.pipeline);
    add("--dp", deployment.groups * deployment.replicas);
    add("--cp", deployment.context);
    add("--ep", deployment.experts);
    if (deployment.exchanges_tokens() && deployment.exchange)
        flags += fmt::format(" --expert-exchange {}", model::name(*deployment.exchange));
    if (deployment.sequence_parallel) flags += " --sequence-parallel";
    if (deployment.two_batches) flags += " --two-batch-overlap";
    return flags.empty() ? "--tp 1" : flags;
}

Result<std::string> spread(Candidate& candidate, model::Deployment deployment, double node, double most_devices) {
    if (deployment.devices() > most_devices)
        return fail(fmt::format("needs {:g} devices, {:g} are there (--devices)", deployment.devices(), most_devices));
    deployment.node = deployment.replica_devices() <= node ? 0.0 : node;
    candidate.setup.deployment() = deployment;
    return deployment_flags(deployment);
}

std::vector<Variant> doubled(const Question& question, double now, const char* name,
                             Variant (*with)(double degree, const Surroundings& around)) {
    const double others = question.asked.setup.deployment().devices() / now;
    std::vector<Variant> result;
    for (double degree = 1.0; degree * others <= question.around.most_devices; degree *= 2.0) {
        if (degree != now) result.push_back(with(degree, question.around));
    }
    if (result.empty())
        result.push_back(not_here(name, fmt::format("all of the {:g} devices that are there are in use (--devices)",
                                                    question.around.most_devices)));
    return result;
}

}  // namespace roofline::decide
