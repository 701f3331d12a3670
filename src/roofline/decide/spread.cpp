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

}  // namespace roofline::decide
