// What the blocks of a step on processors share: the work, the products, and rooms for what goes from one to the next.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "roofline/bench/index_scores.hpp"
#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/routing.hpp"
#include "roofline/bench/operands.hpp"
#include "roofline/bench/step.hpp"
#include "roofline/bench/step_weights.hpp"

namespace roofline::bench {

/// Rooms that only grow. What is in one is used up before another thing is put there.
struct StepRooms {
    std::vector<float> stream, normed, attended, result;
    std::vector<float> wide, active, low, entries, queries, wide_queries, by_head, mixed;
    std::vector<float> expanded, gated, opened;
    std::vector<float> index_queries, index_keys, index_scores;
    std::vector<float> scores, taken, given;  // of a router, and rows that experts take and give back
    std::vector<LineOfFloats> keys, values;   // of latent entries, expanded
};
inline float* room(std::vector<float>& values, std::int64_t count) {
    const auto needed = static_cast<std::size_t>(count);
    if (values.size() < needed) values.resize(needed);
    return values.data();
}

class StepRun {
  public:
    StepRun(const StackShape& model, const StepWork& most, Threads& team);
    void begin(const StepWork& step);

    const StackShape shape;
    const StepWork largest;  // that there is room for in caches
    Threads& threads;
    StepWork work;  // the step that is run
    std::int64_t rows = 0;
    StepRooms rooms;
    AttentionScratch scratch;
    Routing routing;
    IndexScores indexer;
    ChosenScratch chosen;
    std::vector<std::int64_t> places;    // of entries that the last indexer chose, for each row
    std::vector<float> gain, norm_bias;  // of every norm

    /// One more product to be run with those that were called since the last were.
    void call(const Linear& linear, float* y, std::int64_t count);
    /// The rows of x are theirs, one product after the other.
    void multiply_called(const float* x);
    void multiply(const Linear& linear, const float* x, float* y, std::int64_t count);
    /// All rows of each head.
    void multiply_each(const std::vector<Linear>& heads, const float* x, float* y);
    /// Rows of the model's width.
    void norm(const float* x, float* y, std::int64_t count);
    /// Of the positions of this step, for heads of some width.
    const float* turns(std::int64_t dim);

  private:
    const ProductKernels& products_ = best_products();
    std::vector<ProductCall> calls_;
    std::vector<const Linear*> called_;
    Activations activations_;
    std::map<std::array<std::int64_t, 3>, std::vector<float>> turns_;
};

// The blocks of a layer: y is what they make of x, both rows of the model's width.
void mix_by_attention(StepRun& run, const AttentionShape& shape, const LayerWeights& layer, const float* x, float* y);
void mix_by_states(StepRun& run, const StateMixerShape& shape, const LayerWeights& layer, const float* x, float* y);
void mix_by_channels(StepRun& run, const ChannelMixerShape& shape, const LayerWeights& layer, const float* x, float* y);
void feed_forward(StepRun& run, const FfnShape& shape, const LayerWeights& layer, const float* x, float* y);

}  // namespace roofline::bench
