// How attention is computed and how its cache is kept, the model being the same.
#include "roofline/decide/move.hpp"

namespace roofline::decide {
namespace {

Variant flash() {
    return {.name = "flash attention", .costs = "none", .apply = [](Candidate& candidate) -> Result<std::string> {
                auto& scores = candidate.setup.lowering.scores;
                if (scores == model::AttentionScores::on_chip) return fail("scores stay on the chip already");
                scores = model::AttentionScores::on_chip;
                return "--attention flash";
            }};
}

std::vector<Variant> variants(const Question&) {
    return {flash(), not_here("paged attention",
                              "counted already: a sequence takes the memory of the tokens it has, not of its longest")};
}

}  // namespace

extern const Move attention_kernel_move;
const Move attention_kernel_move{"attention_kernel", "flash and paged attention", 31, variants};

}  // namespace roofline::decide
