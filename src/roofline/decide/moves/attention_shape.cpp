// What if the model attended to less, or kept less? Other weights, trained that way: never a setting.
#include <typeinfo>

#include <fmt/format.h>

#include "roofline/decide/move.hpp"
#include "roofline/model/attention/gqa.hpp"

namespace roofline::decide {
namespace {

constexpr double window = 1024.0;
constexpr std::size_t one_full_of = 4;

/// Plain attention over the whole context; kinds built on it (sparse ones) are something else.
const model::Gqa* full_attention(const model::LayerKind& kind) {
    const model::Block* mixer = kind.mixer.get();
    if (mixer == nullptr || typeid(*mixer) != typeid(model::Gqa)) return nullptr;
    const auto* gqa = static_cast<const model::Gqa*>(mixer);
    return gqa->shape().reach == model::Reach::full() ? gqa : nullptr;
}

Result<std::string> use_windows(Candidate& candidate) {
    const predict::Workload& workload = candidate.setup.workload;
    const double context = std::max(workload.decode_context(), workload.prompt + workload.cached);
    if (context <= window) return fail(fmt::format("the context of {:g} tokens is no longer than the window", context));
    model::Architecture changed = *candidate.setup.architecture;
    std::size_t seen = 0;
    for (int& kind : changed.layers) {
        const model::LayerKind original = changed.kinds[static_cast<std::size_t>(kind)];
        const model::Gqa* gqa = full_attention(original);
        if (gqa == nullptr || ++seen % one_full_of == 0) continue;
        const std::string label = original.label + "_windowed";
        std::size_t at = 0;
        while (at < changed.kinds.size() && changed.kinds[at].label != label) ++at;
        if (at == changed.kinds.size()) {
            model::GqaShape shape = gqa->shape();
            shape.reach = model::Reach::window(window);
            model::LayerKind windowed = original;
            windowed.label = label;
            windowed.mixer = std::make_shared<const model::Gqa>(shape);
            changed.kinds.push_back(windowed);
        }
        kind = static_cast<int>(at);
    }
    if (seen == 0) return fail("no layer attends to the whole context with plain keys and values");
    candidate.setup.architecture = std::make_shared<const model::Architecture>(std::move(changed));
    return std::string();
}

Result<std::string> halve_kv_heads(Candidate& candidate) {
    model::Architecture changed = *candidate.setup.architecture;
    bool any = false;
    for (model::LayerKind& kind : changed.kinds) {
        const model::Gqa* gqa = full_attention(kind);
        if (gqa == nullptr || gqa->shape().kv_heads < 2.0) continue;
        model::GqaShape shape = gqa->shape();
        shape.kv_heads /= 2.0;
        kind.mixer = std::make_shared<const model::Gqa>(shape);
        any = true;
    }
    if (!any) return fail("no layer has several plain key-value heads over the whole context");
    candidate.setup.architecture = std::make_shared<const model::Architecture>(std::move(changed));
    return std::string();
}

std::vector<Variant> variants(const Question& question) {
    if (!question.asked.setup.architecture)
        return {not_here("other attention", "only the number of parameters is known")};
    return {{.name = fmt::format("a window of {:g} in 3 of 4 layers", window),
             .costs = "another model, trained so",
             .apply = use_windows,
             .answers = Answers::another_model,
             .what_if = true},
            {.name = "half the key-value heads",
             .costs = "another model, trained so",
             .apply = halve_kv_heads,
             .answers = Answers::another_model,
             .what_if = true}};
}

}  // namespace

extern const Move attention_shape_move;
const Move attention_shape_move{"attention_shape", "attention that reads less", 10, variants};

}  // namespace roofline::decide
