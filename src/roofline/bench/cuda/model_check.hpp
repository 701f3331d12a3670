// Whether a step's kernels, put together, compute what the model says.
#pragma once

#include "roofline/bench/cuda/model.cuh"

namespace roofline::cuda::kernels {

/// Whether the host can compute the step in a second or so.
bool small_enough(const StackShape& stack, const StepShape& step);

/// How far the logits that the last step left are from float64's. Throws where rows went to other experts than they
/// should have.
double step_error(const Model& model);

constexpr double step_tolerance = 5e-2;
/// Of a step that makes activations narrow: what bf16 moves by half a percent falls on the other side of every tenth
/// boundary between two numbers of e4m3, which are 6 to 12% apart, in every such product.
constexpr double narrow_step_tolerance = 1e-1;

}  // namespace roofline::cuda::kernels
