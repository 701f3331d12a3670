// Tokens guessed ahead by something cheap and checked all at once (D2).
#include <fmt/format.h>

#include "roofline/decide/move.hpp"

namespace roofline::decide {
namespace {

std::vector<Variant> variants(const Question& question) {
    const Speculation speculation = question.around.speculation;
    Variant variant;
    variant.name = fmt::format("speculative decoding, {:g} drafted", speculation.draft_tokens);
    const auto draft = question.around.draft;
    variant.costs = fmt::format("assumed: {:g}% of guesses right ({:.2f} tokens a step)",
                                100.0 * speculation.acceptance, speculation.tokens_per_step());
    variant.costs += draft ? fmt::format("; guessed by {}, time and memory counted", draft->model_title)
                           : fmt::format(", each guess costs {:g}% of a step; a draft head or model and its memory",
                                         100.0 * speculation.draft_cost);
    variant.apply = [speculation, draft](Candidate& candidate) -> Result<std::string> {
        if (candidate.setup.workload.chunk > 0.0 && !candidate.prompts_elsewhere)
            return fail("not priced beside chunks of prompts yet");
        if (!candidate.setup.architecture) return fail("only the number of parameters is known");
        candidate.speculation = speculation;
        candidate.setup.draft = draft;
        return std::string();
    };
    return {variant};
}

}  // namespace

extern const Move speculate_move;
const Move speculate_move{"speculate", "speculative decoding", 60, variants};

}  // namespace roofline::decide
