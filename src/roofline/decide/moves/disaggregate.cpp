// Prompts on other devices: tokens are no longer written beside chunks of somebody's prompt.
#include <fmt/format.h>

#include "roofline/decide/move.hpp"
#include "roofline/decide/transfer.hpp"

namespace roofline::decide {
namespace {

std::string_view link_name(Level level) {
    if (level == Level::peer) return "link between devices";
    return level == Level::host ? "host's link" : "network";
}

std::vector<Variant> variants(const Question& question) {
    const Transfer transfer = transfer_of(question.scenario);
    return {
        {.name = "prompts on devices of their own",
         .costs = fmt::format(
             "more devices; {:.4g} MB of keys and values of each prompt travel to every device of the others, "
             "{:.3g} ms over the {}{} before the second token",
             transfer.bytes.value / 1e6, transfer.seconds.value * 1e3, link_name(transfer.level),
             transfer.assumed ? " (assumed: 50 GB/s)" : ""),
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
