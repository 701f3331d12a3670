// The weights and caches of the layers that a step runs (step.hpp), random as they are, and the memory they take.
#pragma once

#include <cstdint>
#include <vector>

#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/operands.hpp"
#include "roofline/bench/shape.hpp"
#include "roofline/bench/step.hpp"

namespace roofline::bench {

struct Linear {
    std::int64_t n = 0;
    std::int64_t k = 0;
    WeightMatrix weights;
    std::vector<float> bias;  // empty: none
};

struct FfnWeights {
    Linear up;
    Linear down;
};

struct LayerWeights {
    Linear qkv;
    Linear q_down, q, kv_down, kv_up;
    std::vector<Linear> into_queries;    // kv_up, absorbed, by heads: [rank, unturned],
    std::vector<Linear> out_of_results;  // and [value, rank]
    Linear index_query, index_key;
    Memory index_keys, index_scales;
    Linear out;
    Linear router;
    std::vector<FfnWeights> ffns;  // experts, or one
    FfnWeights shared;
    Linear shared_gate;
    Linear latent_down, latent_up;
    Memory keys;  // or latent entries; states
    Memory values;
    Linear in;  // of a layer with a state
    Linear select, step;
    Memory rates;
    Memory taps;
    Memory past;  // of the convolution
};

/// How the cache of a kind of layers lies.
struct CacheShape {
    HeadWidths widths;
    KvLayout layout = KvLayout::rows;
    std::int64_t capacity = 0;  // entries that a head has room for
    std::int64_t key_bytes = 0;
    std::int64_t value_bytes = 0;
};
CacheShape cache_shape(const AttentionShape& attention, DType kv, const StepWork& work);

/// The small keys of an indexer from a sequence on; `work` is the largest step.
IndexKeys index_keys(const LayerWeights& layer, const IndexerShape& shape, const StepWork& work,
                     std::int64_t sequence = 0);

/// Widths of products that no kernel of this processor takes are told in a line; none: all are fine.
std::optional<std::string> unfit_products(const StackShape& shape, const StepWork& work);

/// Makes weights one after the other, no two alike.
class WeightMaker {
  public:
    explicit WeightMaker(Threads& threads) : threads_(threads) {}
    Result<Linear> linear(const ProductShape& shape);
    Result<LayerWeights> layer(const LayerShape& shape, DType kv, const StepWork& work);
    /// Of `count` numbers.
    Result<Memory> numbers(std::int64_t count, DType type);

  private:
    Result<void> attention(LayerWeights& layer, const AttentionShape& shape, const StepWork& work);
    Result<void> state(LayerWeights& layer, const StateMixerShape& shape, const StepWork& work);
    Result<void> channels(LayerWeights& layer, const ChannelMixerShape& shape, const StepWork& work);
    Result<void> index(LayerWeights& layer, const IndexerShape& shape, const StepWork& work);
    Result<void> ffn(LayerWeights& layer, const FfnShape& shape);

    Threads& threads_;
    std::uint64_t seed_ = 1ULL << 44U;
};
std::int64_t layer_bytes(const LayerShape& shape, DType kv, const StepWork& work);

}  // namespace roofline::bench
