#include "roofline/bench/step_weights.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

namespace roofline::bench {
namespace {

/// Every product of a layer as it is stored, with how many of it there are.
void each_product(const LayerShape& layer, const StepWork& work,
                  const std::function<void(const ProductShape&, std::int64_t)>& visit) {
    const AttentionShape& attention = layer.attention;
    for (const ProductShape* shape : {&attention.qkv, &attention.q_down, &attention.q, &attention.kv_down})
        visit(*shape, 1);
    if (attention.latent() && !work.expanded) {
        const WeightFormat type = attention.kv_up.type;
        visit({.n = attention.rank, .k = attention.unturned(), .type = type}, attention.query_heads);
        visit({.n = attention.value_dim, .k = attention.rank, .type = type}, attention.query_heads);
    } else {
        visit(attention.kv_up, 1);
    }
    for (const ProductShape* shape : {&attention.indexer.query, &attention.indexer.key, &attention.out})
        visit(*shape, 1);
    visit(layer.state.in, 1);
    visit(layer.state.out, 1);
    const ChannelMixerShape& channels = layer.channels;
    for (const ProductShape* shape : {&channels.in, &channels.select, &channels.step, &channels.out}) visit(*shape, 1);
    const FfnShape& ffn = layer.ffn;
    const std::int64_t experts = std::max<std::int64_t>(1, ffn.experts);
    visit(ffn.router, 1);
    visit(ffn.up, experts);
    visit(ffn.down, experts);
    for (const ProductShape* shape :
         {&ffn.shared_up, &ffn.shared_down, &ffn.shared_gate, &ffn.latent_down, &ffn.latent_up})
        visit(*shape, 1);
}

}  // namespace

CacheShape cache_shape(const AttentionShape& attention, DType kv, const StepWork& work) {
    CacheShape cache;
    cache.widths =
        attention.latent() ? HeadWidths{attention.entry(), attention.rank, true} : HeadWidths::same(attention.head_dim);
    cache.layout = best_attention(cache.widths).layout(kv, cache.widths);
    cache.capacity = kv_room(cache.layout, attention.kept(work.tokens, work.context));
    const std::int64_t entries = work.batch * attention.kv_heads * cache.capacity;
    cache.key_bytes = entries * cache.widths.key * bits(kv) / 8;
    cache.value_bytes = cache.widths.shared ? 0 : entries * cache.widths.value * bits(kv) / 8;
    return cache;
}

IndexKeys index_keys(const LayerWeights& layer, const IndexerShape& shape, const StepWork& work,
                     std::int64_t sequence) {
    const std::int64_t capacity = IndexKeys::room(work.context);
    return {layer.index_keys.as<std::int8_t>() + sequence * capacity * shape.dim,
            layer.index_scales.as<float>() + sequence * capacity, shape.dim, capacity, IndexKeys::best_tiles()};
}

std::int64_t layer_bytes(const LayerShape& shape, DType kv, const StepWork& work) {
    const CacheShape cache = cache_shape(shape.attention, kv, work);
    const IndexerShape& indexer = shape.attention.indexer;
    std::int64_t bytes = cache.key_bytes + cache.value_bytes;
    if (indexer.heads > 0) bytes += work.batch * IndexKeys::room(work.context) * (indexer.dim + 4);
    if (shape.state.heads > 0)
        bytes += 4 * (work.batch * shape.state.kept() + shape.state.taps * shape.state.channels());
    const ChannelMixerShape& channels = shape.channels;
    if (channels.channels > 0)
        bytes += 4 * (work.batch * channels.kept() + channels.channels * (channels.taps + channels.key_dim));
    each_product(shape, work, [&](const ProductShape& product, std::int64_t count) {
        if (product) bytes += count * WeightMatrix::bytes(product.n, product.k, product.stored());
    });
    return bytes;
}

namespace {

/// fp32 numbers that a layer has under way for a row of the step: its rows of every kind, and what goes into its widest
/// products once more in the narrow form that they take.
std::int64_t numbers_under_way(const StackShape& shape, const LayerShape& layer, const StepWork& work) {
    const AttentionShape& attention = layer.attention;
    const FfnShape& ffn = layer.ffn;
    std::int64_t of_attention = attention.qkv.n + 2 * attention.query_heads * attention.head_dim;
    if (attention.gated)
        of_attention += attention.qkv.n + attention.query_heads * attention.head_dim + attention.gates();
    if (attention.keys_as_values) of_attention += 2 * attention.qkv.n;
    if (attention.latent()) {
        // Entries for every head, four times over where they are absorbed; expanded, in rows and as keys and values.
        of_attention +=
            attention.q_down.n + attention.entry() * (1 + 4 * attention.query_heads) + 4 * attention.kv_up.n;
    }
    // Queries, keys, a score of every entry, and the places of the best.
    if (attention.indexer.heads > 0)
        of_attention +=
            2 * attention.indexer.query.n + 2 * attention.indexer.key.n + work.context + 2 * attention.chosen;
    const std::int64_t of_row = ffn.up.n + 2 * ffn.down.k + (ffn.experts > 0 ? 3 * shape.hidden : 0);
    const std::int64_t of_ffn = ffn.slots() * of_row + ffn.experts + ffn.shared_up.n + ffn.shared_down.k +
                                2 * ffn.latent_down.n + (ffn.norms_apart ? shape.hidden : 0);
    const std::int64_t of_state = layer.state.in.n + 5 * layer.state.channels();
    const ChannelMixerShape& channels = layer.channels;
    const std::int64_t of_channels = channels.in.n + 8 * channels.channels + 2 * channels.select.n + channels.step.k;
    return 4 * shape.hidden + of_attention + of_state + of_channels + of_ffn;
}

}  // namespace

std::int64_t StepBytes::least() const {
    return std::accumulate(layers.begin(), layers.end(), outside + working);
}

StepBytes step_bytes(const StackShape& shape, const StepWork& work) {
    StepBytes bytes;
    std::int64_t most = 0;
    for (const LayerShape& layer : shape.kinds) {
        bytes.layers.push_back(layer_bytes(layer, shape.kv, work));
        most = std::max(most, numbers_under_way(shape, layer, work));
    }
    bytes.outside = WeightMatrix::bytes(shape.head.n, shape.head.k, shape.head.stored()) +
                    (shape.vocabulary + shape.positions) * shape.hidden * 2;
    bytes.working = work.batch * work.tokens * 4 * most + work.batch * shape.vocabulary * 4;
    return bytes;
}

std::optional<std::string> unfit_products(const StackShape& shape, const StepWork& work) {
    std::optional<std::string> problem;
    const auto look = [&](const ProductShape& product, std::int64_t) {
        if (!product || problem) return;
        // Both formats of a matrix that has two are of GGUF, and all kernels read either.
        const std::int64_t grain = std::max(grain_of(product.type), grain_of(product.others.format));
        if (best_products().of(product.type) == nullptr)
            problem = unread_by("processor", product.type);
        else if (product.k % grain != 0)
            problem = fmt::format("a width of the model, {}, is no multiple of {}", product.k, grain);
    };
    for (const LayerShape& layer : shape.kinds) each_product(layer, work, look);
    look(shape.head, 1);
    return problem;
}

Result<Linear> WeightMaker::linear(const ProductShape& shape) {
    Linear made;
    made.n = shape.n;
    made.k = shape.k;
    if (!shape) return made;
    auto weights = WeightMatrix::random(shape.n, shape.k, shape.stored(), seed_ += 1ULL << 36U, threads_);
    if (weights && best_products().in_tiles(shape.type)) weights = weights->in_tiles(best_products().tiles, threads_);
    if (!weights) return std::unexpected(weights.error());
    made.weights = std::move(*weights);
    if (shape.bias) made.bias.assign(static_cast<std::size_t>(shape.n), CpuModel::bias);
    return made;
}

Result<Memory> WeightMaker::numbers(std::int64_t count, DType type) {
    auto memory = Memory::reserve(count * bits(type) / 8);
    if (!memory) return memory;
    fill_random(*memory, type, seed_ += 1ULL << 36U, threads_);
    return memory;
}

namespace {

/// One of several things that may each fail to be made.
template <class T>
Result<void> take(T& target, Result<T> made) {
    if (!made) return std::unexpected(made.error());
    target = std::move(*made);
    return {};
}

}  // namespace

Result<void> WeightMaker::attention(LayerWeights& layer, const AttentionShape& shape, const StepWork& work) {
    struct Wanted {
        Linear& target;
        const ProductShape& shape;
    };
    const bool absorbed = shape.latent() && !work.expanded;
    const ProductShape none;
    for (const Wanted& wanted : {Wanted{layer.qkv, shape.qkv},
                                 {layer.q_down, shape.q_down},
                                 {layer.q, shape.q},
                                 {layer.kv_down, shape.kv_down},
                                 {layer.kv_up, absorbed ? none : shape.kv_up},
                                 {layer.index_query, shape.indexer.query},
                                 {layer.index_key, shape.indexer.key},
                                 {layer.out, shape.out}}) {
        if (auto done = take(wanted.target, linear(wanted.shape)); !done) return done;
    }
    if (!absorbed) return {};
    for (std::int64_t head = 0; head < shape.query_heads; ++head) {
        const WeightFormat type = shape.kv_up.type;
        auto& into = layer.into_queries.emplace_back();
        if (auto done = take(into, linear({.n = shape.rank, .k = shape.unturned(), .type = type})); !done) return done;
        auto& out_of = layer.out_of_results.emplace_back();
        if (auto done = take(out_of, linear({.n = shape.value_dim, .k = shape.rank, .type = type})); !done) return done;
    }
    return {};
}

namespace {

Result<void> fill_with(Memory& target, std::int64_t count, float value) {
    if (auto done = take(target, Memory::reserve(4 * count)); !done) return done;
    std::fill_n(target.as<float>(), count, value);
    return {};
}

}  // namespace

// Sequences begin with nothing.
Result<void> WeightMaker::state(LayerWeights& layer, const StateMixerShape& shape, const StepWork& work) {
    if (auto done = take(layer.in, linear(shape.in)); !done) return done;
    if (auto done = take(layer.out, linear(shape.out)); !done) return done;
    if (auto done = take(layer.taps, numbers(shape.taps * shape.channels(), DType::fp32)); !done) return done;
    if (auto done = fill_with(layer.keys, work.batch * shape.values() * shape.key_dim, 0.0F); !done) return done;
    return fill_with(layer.past, work.batch * (shape.taps - 1) * shape.channels(), 0.0F);
}

Result<void> WeightMaker::channels(LayerWeights& layer, const ChannelMixerShape& shape, const StepWork& work) {
    if (auto done = take(layer.in, linear(shape.in)); !done) return done;
    if (auto done = take(layer.select, linear(shape.select)); !done) return done;
    if (auto done = take(layer.step, linear(shape.step)); !done) return done;
    if (auto done = take(layer.out, linear(shape.out)); !done) return done;
    if (auto done = take(layer.taps, numbers(shape.taps * shape.channels, DType::fp32)); !done) return done;
    if (auto done = fill_with(layer.rates, shape.channels * shape.key_dim, 1.0F); !done) return done;
    if (auto done = fill_with(layer.keys, work.batch * shape.channels * shape.key_dim, 0.0F); !done) return done;
    return fill_with(layer.past, work.batch * (shape.taps - 1) * shape.channels, 0.0F);
}

/// Random keys of all that is in the cache already.
Result<void> WeightMaker::index(LayerWeights& layer, const IndexerShape& shape, const StepWork& work) {
    const std::int64_t capacity = IndexKeys::room(work.context);
    if (auto done = take(layer.index_keys, Memory::reserve(work.batch * capacity * shape.dim)); !done) return done;
    if (auto done = take(layer.index_scales, Memory::reserve(work.batch * capacity * 4)); !done) return done;
    const auto rows = numbers(work.context * shape.dim, DType::fp32);
    if (!rows) return std::unexpected(rows.error());
    for (std::int64_t sequence = 0; sequence < work.batch; ++sequence) {
        const IndexKeys own = index_keys(layer, shape, work, sequence);
        write_index_keys({rows->as<float>(), shape.dim}, own, 1, work.context, 0, threads_);
    }
    return {};
}

Result<void> WeightMaker::ffn(LayerWeights& layer, const FfnShape& shape) {
    layer.ffns.resize(static_cast<std::size_t>(std::max<std::int64_t>(1, shape.experts)));
    for (FfnWeights& ffn : layer.ffns) {
        if (auto done = take(ffn.up, linear(shape.up)); !done) return done;
        if (auto done = take(ffn.down, linear(shape.down)); !done) return done;
    }
    if (auto done = take(layer.router, linear(shape.router)); !done) return done;
    if (auto done = take(layer.shared.up, linear(shape.shared_up)); !done) return done;
    if (auto done = take(layer.shared.down, linear(shape.shared_down)); !done) return done;
    if (auto done = take(layer.latent_down, linear(shape.latent_down)); !done) return done;
    if (auto done = take(layer.latent_up, linear(shape.latent_up)); !done) return done;
    return take(layer.shared_gate, linear(shape.shared_gate));
}

Result<LayerWeights> WeightMaker::layer(const LayerShape& shape, DType kv, const StepWork& work) {
    LayerWeights layer;
    if (auto done = attention(layer, shape.attention, work); !done) return std::unexpected(done.error());
    if (auto done = ffn(layer, shape.ffn); !done) return std::unexpected(done.error());
    if (shape.state.heads > 0 || shape.channels.channels > 0) {
        auto done = shape.state.heads > 0 ? state(layer, shape.state, work) : channels(layer, shape.channels, work);
        if (!done) return std::unexpected(done.error());
        return layer;
    }
    const IndexerShape& indexer = shape.attention.indexer;
    if (indexer.heads > 0) {
        if (auto done = index(layer, indexer, work); !done) return std::unexpected(done.error());
    }
    const CacheShape cache = cache_shape(shape.attention, kv, work);
    if (auto done = take(layer.keys, numbers(cache.key_bytes * 8 / bits(kv), kv)); !done)
        return std::unexpected(done.error());
    if (cache.value_bytes > 0) {
        if (auto done = take(layer.values, numbers(cache.value_bytes * 8 / bits(kv), kv)); !done)
            return std::unexpected(done.error());
    }
    return layer;
}

}  // namespace roofline::bench
