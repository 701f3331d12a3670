// Profilers write "TensorList" where a list of tensors stands, not of what type it is, and nothing at all of its
// tensors where there are more than thirty. Other calls of the file know: the same tensors stand alone elsewhere with
// their types, and an optimizer's lists hold what a backward pass made gradients for.
#pragma once

#include "roofline/analyze/timeline.hpp"

namespace roofline::analyze {

/// Gives lists the types, and those of optimizers that are empty the sizes, which other calls of the file tell.
void tell_lists(Timeline& timeline);

}  // namespace roofline::analyze
