// Prompts in chunks beside decoding: weights are read once for both, and no sequence waits for a whole prompt of
// another.
#include <fmt/format.h>

#include "roofline/decide/move.hpp"

namespace roofline::decide {
namespace {

Variant chunks_of(double tokens, Goal goal) {
    return {
        .name = fmt::format("chunks of {:g} prompt tokens", tokens),
        .costs = "small chunks: later first token; large ones: tokens beside them come late",
        .apply = [tokens, goal](Candidate& candidate) -> Result<std::string> {
            predict::Workload& workload = candidate.setup.workload;
            if (workload.chunk == tokens) return fail(fmt::format("chunks are of {:g} already", tokens));
            if (workload.prompt <= tokens)
                return fail(fmt::format("the prompt of {:g} tokens is no longer than that", workload.prompt));
            if (workload.chunk == 0.0 && goal == Goal::tpot) {
                return fail(
                    "decoding is asked about undisturbed by prompts (--chunk N asks for tokens written beside them)");
            }
            if (candidate.prompts_elsewhere) return fail("prompts are computed elsewhere");
            workload.chunk = tokens;
            return fmt::format("--chunk {:g}", tokens);
        }};
}

std::vector<Variant> variants(const Question& question) {
    return {chunks_of(256.0, question.goal), chunks_of(512.0, question.goal), chunks_of(2048.0, question.goal)};
}

}  // namespace

extern const Move chunk_move;
const Move chunk_move{"chunk", "prompts in chunks", 50, variants};

}  // namespace roofline::decide
