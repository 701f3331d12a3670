// What does not fit lies in the host's memory and crosses its link in every step: the way out when there is no other.
#include <fmt/format.h>

#include "roofline/decide/move.hpp"

namespace roofline::decide {
namespace {

/// The smallest share, in twentieths, with which it fits.
Result<std::string> offload(Candidate& candidate, double model::Deployment::* share, const char* flag) {
    if (candidate.setup.device.bandwidth(Level::host) == nullptr)
        return fail(fmt::format("{} states no link to a host", candidate.setup.device.name));
    constexpr int parts = 20;
    for (int part = 0; part <= parts; ++part) {
        candidate.setup.deployment().*share = static_cast<double>(part) / parts;
        const auto scenario = predict::realise(candidate.setup);
        if (!scenario) return std::unexpected(scenario.error());
        if (!predict::fit_deployment(*scenario).fits) continue;
        if (part == 0) return fail("all of it fits: what lies in the host's memory could only be slower");
        return fmt::format("{} {:.2f}", flag, static_cast<double>(part) / parts);
    }
    candidate.setup.deployment().*share = 0.0;
    return fail("it does not fit even so");
}

std::vector<Variant> variants(const Question&) {
    return {{.name = "weights in the host's memory",
             .costs = "the host's link is read in every step",
             .apply =
                 [](Candidate& candidate) {
                     return offload(candidate, &model::Deployment::host_weights, "--offload-weights");
                 }},
            {.name = "KV cache in the host's memory",
             .costs = "the host's link is read in every step",
             .apply = [](Candidate& candidate) {
                 return offload(candidate, &model::Deployment::host_kv, "--offload-kv");
             }}};
}

}  // namespace

extern const Move offload_move;
const Move offload_move{"offload", "the host's memory", 90, variants};

}  // namespace roofline::decide
