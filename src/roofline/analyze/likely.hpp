// What an operator that nobody wrote a formula for most likely costs: its tensors say what it can read and write, and
// the kernel it started says whether it multiplies matrices. Always marked as estimated.
#pragma once

#include <optional>

#include "roofline/analyze/effort.hpp"
#include "roofline/analyze/structure.hpp"

namespace roofline::analyze {

/// `kernel`: what it started, by the kernel's name. Empty where no argument is a tensor.
std::optional<Effort> likely_effort(const Signature& signature, Piece::Sort kernel);

}  // namespace roofline::analyze
