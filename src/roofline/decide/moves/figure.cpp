// Any figure of the device or the model, as --set changes it: each alone.
#include "roofline/decide/move.hpp"

namespace roofline::decide {
namespace {

std::vector<Variant> variants(const Question& question) {
    std::vector<Variant> result;
    for (const ChangedFigure& figure : question.around.figures) {
        result.push_back({.name = figure.text,
                          .costs = "as asked for",
                          .apply = [&figure](Candidate& candidate) -> Result<std::string> {
                              candidate.setup = figure.setup;
                              return "--set " + figure.text;
                          },
                          .answers = Answers::same,
                          .what_if = true});
    }
    return result;
}

}  // namespace

extern const Move figure_move;
const Move figure_move{"figure", "changed figures (--set)", 2, variants};

}  // namespace roofline::decide
