// Multi-token prediction (F49): modules that a checkpoint holds beside its stack. Each guesses one token further, from
// the last hidden state and the embedding of the token before.
#pragma once

#include <optional>

#include "roofline/model/architecture.hpp"
#include "roofline/model/types.hpp"

namespace roofline::model {

/// One module as a model of its own, which knows how many there are; empty: the model has none.
std::optional<Architecture> predictor_of(const Architecture& model);

/// The types it runs in.
TypePlan predictor_types(const Architecture& model, const TypePlan& types);

}  // namespace roofline::model
