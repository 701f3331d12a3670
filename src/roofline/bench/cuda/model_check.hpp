// Whether a step's kernels, put together, compute what the model says.
#pragma once

#include "roofline/bench/cuda/model.cuh"

namespace roofline::cuda::kernels {

/// Whether the host can compute the step in a second or so.
bool small_enough(const StackShape& stack, const StepShape& step);

/// How far the logits that the last step left are from float64's.
double step_error(const Model& model);

constexpr double step_tolerance = 5e-2;

}  // namespace roofline::cuda::kernels
