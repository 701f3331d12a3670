// Decode steps replayed from CUDA graphs carry no shapes; the prompt before them, launched kernel by kernel, ran the
// same weights and has them. What a role did there, cut down to one token a sequence, is what it does in a decode.
#pragma once

#include "roofline/analyze/items.hpp"
#include "roofline/analyze/steps.hpp"
#include "roofline/core/quantity.hpp"

namespace roofline::analyze {

/// Gives items of decode steps without shapes the work of the step before them that has some: kernel by kernel where
/// both ran the same ones, else role by role. Batch, tokens and context of those steps and their stages are filled in.
/// How much time that explains is returned.
Seconds borrow_from_prompts(const Timeline& timeline, Items& items, Steps& steps);

}  // namespace roofline::analyze
