// Prompts on other devices: tokens are no longer written beside chunks of somebody's prompt.
#include "roofline/decide/move.hpp"

namespace roofline::decide {
namespace {

std::vector<Variant> variants(const Question& question) {
    return {
        {.name = "prompts on devices of their own",
         .costs = "more devices, and keys and values travel to the others (not priced)",
         .apply = [goal = question.goal](Candidate& candidate) -> Result<std::string> {
             if (candidate.setup.workload.chunk == 0.0) {
                 return fail(
                     "decoding is asked about undisturbed by prompts (--chunk N asks for tokens written beside them)");
             }
             if (goal == Goal::throughput || goal == Goal::cost)
                 return fail("a prompt takes devices' time wherever it is computed");
             candidate.prompts_elsewhere = true;
             return std::string();
         }}};
}

}  // namespace

extern const Move disaggregate_move;
const Move disaggregate_move{"disaggregate", "prefill and decode apart", 55, variants};

}  // namespace roofline::decide
