// How tokens of devices that attend apart come to their experts: gathered everywhere, or sent where they are needed.
#include <fmt/format.h>

#include "roofline/decide/move.hpp"
#include "roofline/decide/spread.hpp"

namespace roofline::decide {
namespace {

Variant by(model::ExpertExchange way, const Surroundings& around) {
    const bool gathers = way == model::ExpertExchange::gather;
    return {
        .name = gathers ? "tokens gathered for experts" : "tokens sent to their experts alone",
        .costs = gathers ? "every token travels to every device"
                         : "needs a library for it (DeepEP and the like), which must be installed",
        .apply = [way, node = around.node, most = around.most_devices](Candidate& candidate) -> Result<std::string> {
            model::Deployment deployment = predict::deployment_as_run(candidate.setup);
            if (!deployment.exchanges_tokens()) return fail("no tokens travel to experts");
            if (deployment.exchange == way) return fail("that is how it is done already");
            deployment.exchange = way;
            return spread(candidate, deployment, node, most);
        }};
}

std::vector<Variant> variants(const Question& question) {
    const auto& architecture = question.asked.setup.architecture;
    if (!architecture || !model::has_experts(*architecture))
        return {not_here("exchange of tokens", "the model has no experts")};
    return {by(model::ExpertExchange::gather, question.around), by(model::ExpertExchange::all_to_all, question.around)};
}

}  // namespace

extern const Move expert_exchange_move;
const Move expert_exchange_move{"expert_exchange", "tokens on their way to experts", 14, variants};

}  // namespace roofline::decide
