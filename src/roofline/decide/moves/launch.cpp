// Captured graphs and fused kernels in place of kernels that the host launches one by one.
#include <fmt/format.h>

#include "roofline/decide/move.hpp"

namespace roofline::decide {
namespace {

std::vector<Variant> variants(const Question& question) {
    const predict::Profile& profile = question.asked.setup.execution.profile;
    const std::string name = "graphs and fused kernels of a serving engine";
    if (!profile.kernels.empty()) return {not_here(name, fmt::format("{} launches its own graphs", profile.name))};
    if (!question.around.engine || profile.name == question.around.engine->profile.name)
        return {not_here(name, fmt::format("profile {} has them already", profile.name))};
    return {{.name = name,
             .costs = "other software; the first start takes longer",
             .apply = [engine = *question.around.engine](Candidate& candidate) -> Result<std::string> {
                 // Constants belong to the device: only the manner of running is taken over.
                 candidate.setup.execution.profile = engine.profile;
                 return fmt::format("--profile {}", engine.profile.name);
             }}};
}

}  // namespace

extern const Move launch_move;
const Move launch_move{"launch", "graph launch and fusion", 30, variants};

}  // namespace roofline::decide
