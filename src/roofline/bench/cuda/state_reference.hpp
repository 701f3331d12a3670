// Layers with a state (states.cuh) in float64 on the host.
#pragma once

#include <vector>

#include "roofline/bench/cuda/layer_weights.cuh"

namespace roofline::cuda::kernels {

/// silu of a bias and the sum over inputs, the oldest first, with weights of [tap][channel].
std::vector<double> convolved(const std::vector<std::vector<double>>& inputs, const std::vector<double>& weights,
                              const std::vector<double>& bias);

/// What comes out of the states [head][value][key] of a sequence by a token, and what becomes of them. `channels`: its
/// values, keys and queries in the order that they are convolved in; `of_heads`: a step of each, and perhaps a share.
std::vector<double> update_states(const StateMixerShape& shape, const double* channels, const double* of_heads,
                                  const std::vector<double>& rates, const std::vector<double>& skips, double* states);

/// The norm with gates of a row (GatedRows).
std::vector<double> gated_normed(std::vector<double> values, const double* gates, const std::vector<double>& gains);

/// Of rows as a layer's first product leaves them, what its last one takes, with the states as they were at first.
std::vector<std::vector<double>> mixed_by_states(const StateMixerShape& shape, const StateWeights& weights,
                                                 const StepShape& step, const std::vector<std::vector<double>>& rows);

}  // namespace roofline::cuda::kernels
