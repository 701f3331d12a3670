// A mixture of experts in place of a dense model: only noted, because equal quality cannot be computed.
#include "roofline/decide/move.hpp"
#include "roofline/model/ffn/moe.hpp"

namespace roofline::decide {
namespace {

std::vector<Variant> variants(const Question& question) {
    const auto& architecture = question.asked.setup.architecture;
    bool experts = false;
    if (architecture) {
        for (const model::LayerKind& kind : architecture->kinds)
            experts = experts || dynamic_cast<const model::Moe*>(kind.ffn.get()) != nullptr;
    }
    return {not_here("a mixture of experts of equal quality",
                     experts ? "the model is one already"
                             : "another model: it would read fewer weights for a token, but which is as good cannot be "
                               "computed; `predict` prices any that is named")};
}

}  // namespace

extern const Move fewer_active_weights_move;
const Move fewer_active_weights_move{"fewer_active_weights", "experts in place of a dense model", 99, variants};

}  // namespace roofline::decide
