#include "roofline/model/predictor.hpp"

#include <algorithm>

namespace roofline::model {
namespace {

std::vector<int> kinds_of_module(const Architecture& model) {
    return model.predictor.empty() ? std::vector<int>{model.layers.back()} : model.predictor;
}

}  // namespace

std::optional<Architecture> predictor_of(const Architecture& model) {
    if (model.predictors <= 0.0) return std::nullopt;
    Architecture module = model;
    module.name = model.name + " MTP";
    module.layers = kinds_of_module(model);
    module.positions = 0.0;
    module.predicts = true;
    module.notes.clear();
    return module;
}

TypePlan predictor_types(const Architecture& model, const TypePlan& types) {
    TypePlan result = types;
    result.layers = types.predictor;
    result.predictor.clear();
    const auto kinds = kinds_of_module(model);
    if (result.layers.size() == kinds.size()) return result;
    result.layers.clear();
    for (const int kind : kinds) {
        const auto like = std::find(model.layers.rbegin(), model.layers.rend(), kind);
        result.layers.push_back(like == model.layers.rend()
                                    ? types.layers.back()
                                    : types.layers[static_cast<std::size_t>(model.layers.rend() - like) - 1]);
    }
    return result;
}

}  // namespace roofline::model
