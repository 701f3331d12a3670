// Attention of a step, over grouped heads or latent entries, with its products and what is between them.
#include <algorithm>
#include <cmath>

#include "roofline/bench/kernels/rowwise.hpp"
#include "roofline/bench/step_run.hpp"

namespace roofline::bench {
namespace {

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

void attend_to_heads(StepRun& run, const AttentionShape& shape, const LayerWeights& layer, const float* x, float* y) {
    const std::int64_t kept = shape.kept(run.work.tokens, run.work.context);
    const std::int64_t d = shape.head_dim;
    const CacheShape cache = cache_shape(shape, run.shape.kv, run.largest);
    const QkvRows fused{run.work.batch, run.work.tokens, kept - run.work.tokens, shape.query_heads, shape.kv_heads, d};
    float* qkv = room(run.rooms.wide, run.rows * fused.width());
    float* queries = room(run.rooms.queries, run.rows * shape.query_heads * d);
    float* mixed = room(run.rooms.mixed, run.rows * shape.query_heads * d);
    if (shape.gated || shape.keys_as_values) {
        const std::int64_t width = shape.query_heads * d;
        const std::int64_t values = shape.kv_heads * d;
        const std::int64_t ahead = fused.width() - (shape.keys_as_values ? values : 0);  // of the gates
        float* made = room(run.rooms.gated, run.rows * layer.qkv.n);
        run.multiply(layer.qkv, x, made, run.rows);
        turn(made, qkv, {run.rows, 1, ahead, layer.qkv.n, fused.width()}, run.threads);
        if (shape.keys_as_values)
            turn(made + width, qkv + ahead, {run.rows, 1, values, layer.qkv.n, fused.width()}, run.threads);
        if (shape.gated) {
            const std::int64_t gates = shape.gates();
            float* opened = room(run.rooms.opened, run.rows * (width + gates));
            turn(made + ahead, opened + width, {run.rows, 1, gates, layer.qkv.n, width + gates}, run.threads);
        }
    } else {
        run.multiply(layer.qkv, x, qkv, run.rows);
    }
    if (shape.norm == HeadNorm::each_head)
        norm_runs(qkv, run.rows, fused.width(), shape.query_heads + shape.kv_heads, d, run.threads);
    if (shape.norm == HeadNorm::whole_width) {
        norm_runs(qkv, run.rows, fused.width(), 1, shape.query_heads * d, run.threads);
        norm_runs(qkv + shape.query_heads * d, run.rows, fused.width(), 1, shape.kv_heads * d, run.threads);
    }
    if (shape.rotary) rotary(qkv, run.turns(d), fused, run.threads);
    kv_write(qkv, layer.keys.data(), layer.values.data(), cache.capacity, run.shape.kv, cache.layout, fused,
             run.threads);
    take_queries(qkv, queries, fused, run.threads);
    attend({.batch = run.work.batch,
            .tokens = run.work.tokens,
            .query_heads = shape.query_heads,
            .kv_heads = shape.kv_heads,
            .widths = cache.widths,
            .context = kept,
            .capacity = cache.capacity,
            .window = shape.window,
            .kv = run.shape.kv,
            .q = queries,
            .keys = layer.keys.data(),
            .values = layer.values.data(),
            .sinks = shape.sinks ? run.gain.data() : nullptr,
            .out = mixed},
           best_attention(cache.widths), run.threads, run.scratch);
    if (shape.gated) {
        const std::int64_t width = shape.query_heads * d;
        turn(mixed, run.rooms.opened.data(), {run.rows, 1, width, width, width + shape.gates()}, run.threads);
        open_gates(run.rooms.opened.data(), mixed, run.rows, width, width / shape.gates(), run.threads);
    }
    run.multiply(layer.out, mixed, y, run.rows);
}

/// Keys and values of every head, made of the entries of this step.
void attend_expanded(StepRun& run, const AttentionShape& shape, const LayerWeights& layer, const float* queries,
                     const float* entries, float* mixed) {
    const std::int64_t heads = shape.query_heads;
    const std::int64_t key = shape.head_dim;
    const std::int64_t value = shape.value_dim;
    const std::int64_t each = shape.unturned() + value;
    float* low = room(run.rooms.low, run.rows * shape.rank);
    float* wide = room(run.rooms.wide, run.rows * heads * each);
    turn(entries, low, {run.rows, 1, shape.rank, shape.entry(), shape.rank}, run.threads);
    run.multiply(layer.kv_up, low, wide, run.rows);
    const HeadWidths widths{key, value};
    const KvLayout layout = best_attention(widths).layout(run.shape.kv, widths);
    const std::int64_t capacity = kv_room(layout, run.work.tokens);
    const QkvRows expanded{run.work.batch, run.work.tokens, 0, 0, heads, key, false, value};
    float* fused = room(run.rooms.expanded, run.rows * expanded.width());
    run.threads.ranges(run.rows, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
            for (std::int64_t head = 0; head < heads; ++head) {
                const float* from = wide + (row * heads + head) * each;
                float* to = fused + row * expanded.width() + head * key;
                std::copy_n(from, shape.unturned(), to);
                std::copy_n(entries + row * shape.entry() + shape.rank, shape.rope_dim, to + shape.unturned());
                std::copy_n(from + shape.unturned(), value,
                            fused + row * expanded.width() + heads * key + head * value);
            }
        }
    });
    const std::int64_t column = run.work.batch * heads * capacity * bits(run.shape.kv) / 8;  // bytes
    run.rooms.keys.resize(size((column * key + 63) / 64));
    run.rooms.values.resize(size((column * value + 63) / 64));
    kv_write(fused, run.rooms.keys.data(), run.rooms.values.data(), capacity, run.shape.kv, layout, expanded,
             run.threads);
    attend({.batch = run.work.batch,
            .tokens = run.work.tokens,
            .query_heads = heads,
            .kv_heads = heads,
            .widths = widths,
            .context = run.work.tokens,
            .capacity = capacity,
            .kv = run.shape.kv,
            .q = queries,
            .keys = run.rooms.keys.data(),
            .values = run.rooms.values.data(),
            .out = mixed},
           best_attention(widths), run.threads, run.scratch);
}

/// Over the entries themselves: what would make keys of them goes into the queries, what would make values of them
/// out of the results.
void attend_absorbed(StepRun& run, const AttentionShape& shape, const LayerWeights& layer, const CacheShape& cache,
                     const float* queries, float* mixed) {
    const std::int64_t heads = shape.query_heads;
    float* by_head = room(run.rooms.by_head, run.rows * heads * std::max(shape.unturned(), shape.rank));
    float* made = room(run.rooms.wide, run.rows * heads * std::max(shape.rank, shape.value_dim));
    float* wide_queries = room(run.rooms.wide_queries, run.rows * heads * shape.entry());
    turn(queries, by_head, {run.rows, heads, shape.unturned(), shape.head_dim, shape.unturned()}, run.threads);
    run.multiply_each(layer.into_queries, by_head, made);
    // Scores are divided by the root of a head's width, not of an entry's.
    const float scale = std::sqrt(static_cast<float>(shape.entry()) / static_cast<float>(shape.head_dim));
    turn(made, wide_queries, {heads, run.rows, shape.rank, shape.rank, shape.entry(), scale}, run.threads);
    turn(queries + shape.unturned(), wide_queries + shape.rank,
         {run.rows * heads, 1, shape.rope_dim, shape.head_dim, shape.entry(), scale}, run.threads);
    const AttentionCall call{.batch = run.work.batch,
                             .tokens = run.work.tokens,
                             .query_heads = heads,
                             .kv_heads = 1,
                             .widths = cache.widths,
                             .context = run.work.context,
                             .capacity = cache.capacity,
                             .kv = run.shape.kv,
                             .q = wide_queries,
                             .keys = layer.keys.data(),
                             .values = layer.keys.data(),
                             .out = mixed};
    if (shape.chosen > 0)
        attend_to_chosen(call, run.places.data(), shape.chosen, best_attention(call.widths), run.threads, run.chosen);
    else
        attend(call, best_attention(call.widths), run.threads, run.scratch);
    turn(mixed, by_head, {run.rows, heads, shape.rank, shape.rank, shape.rank}, run.threads);
    run.multiply_each(layer.out_of_results, by_head, made);
    turn(made, mixed, {heads, run.rows, shape.value_dim, shape.value_dim, shape.value_dim}, run.threads);
}

/// Small queries of `low` and keys of `x`; where there are more entries than a token sees, which those are.
void index_entries(StepRun& run, const AttentionShape& shape, const LayerWeights& layer, const float* low,
                   const float* x) {
    const IndexerShape& indexer = shape.indexer;
    const std::int64_t made = indexer.key.n;
    const std::int64_t past = run.work.context - run.work.tokens;
    float* queries = room(run.rooms.index_queries, run.rows * indexer.query.n);
    float* keys = room(run.rooms.index_keys, run.rows * made);
    float* scores = room(run.rooms.index_scores, run.rows * run.work.context);
    run.multiply(layer.index_query, low, queries, run.rows);
    run.multiply(layer.index_key, x, keys, run.rows);
    norm_runs(keys, run.rows, made, 1, indexer.dim, run.threads);
    const float* table = run.turns(shape.rope_dim);
    const TurnedHeads of_queries{run.rows,       run.work.tokens, indexer.heads,
                                 shape.rope_dim, indexer.dim,     indexer.query.n};
    rotary(queries, table, of_queries, run.threads);
    rotary(keys, table, TurnedHeads{run.rows, run.work.tokens, 1, shape.rope_dim, indexer.dim, made}, run.threads);
    const IndexKeys kept = index_keys(layer, indexer, run.largest);
    write_index_keys({keys, made}, kept, run.work.batch, run.work.tokens, past, run.threads);
    run.indexer.find(queries, {keys + indexer.dim, made}, kept,
                     {run.work.batch, run.work.tokens, indexer.heads, run.work.context}, scores, run.threads);
    if (run.work.context <= shape.chosen) return;
    run.places.resize(size(run.rows * shape.chosen));
    choose_entries(scores, run.work.context, run.rows, run.work.tokens, past, shape.chosen, run.places.data(),
                   run.threads);
}

void attend_to_entries(StepRun& run, const AttentionShape& shape, const LayerWeights& layer, const float* x, float* y) {
    const std::int64_t heads = shape.query_heads;
    const CacheShape cache = cache_shape(shape, run.shape.kv, run.largest);
    float* queries = room(run.rooms.queries, run.rows * heads * shape.head_dim);
    float* entries = room(run.rooms.entries, run.rows * shape.entry());
    if (layer.q_down.n > 0) {
        float* low = room(run.rooms.low, run.rows * layer.q_down.n);
        run.multiply(layer.q_down, x, low, run.rows);
        rms_norm(low, run.gain.data(), low, run.rows, layer.q_down.n, run.threads);
        run.multiply(layer.q, low, queries, run.rows);
        if (shape.indexer.heads > 0) index_entries(run, shape, layer, low, x);
    } else {
        run.multiply(layer.q, x, queries, run.rows);
    }
    run.multiply(layer.kv_down, x, entries, run.rows);
    norm_runs(entries, run.rows, shape.entry(), 1, shape.rank, run.threads);
    const float* table = run.turns(shape.rope_dim);
    const TurnedHeads of_queries{run.rows,       run.work.tokens, heads,
                                 shape.rope_dim, shape.head_dim,  heads * shape.head_dim};
    rotary(queries + shape.unturned(), table, of_queries, run.threads);
    const TurnedHeads of_entries{run.rows, run.work.tokens, 1, shape.rope_dim, shape.rope_dim, shape.entry()};
    rotary(entries + shape.rank, table, of_entries, run.threads);
    const QkvRows written{
        run.work.batch, run.work.tokens, run.work.context - run.work.tokens, 0, 1, shape.entry(), true};
    kv_write(entries, layer.keys.data(), nullptr, cache.capacity, run.shape.kv, cache.layout, written, run.threads);
    float* mixed = room(run.rooms.mixed, run.rows * heads * std::max(shape.rank, shape.value_dim));
    if (run.work.expanded)
        attend_expanded(run, shape, layer, queries, entries, mixed);
    else
        attend_absorbed(run, shape, layer, cache, queries, mixed);
    run.multiply(layer.out, mixed, y, run.rows);
}

}  // namespace

void mix_by_attention(StepRun& run, const AttentionShape& shape, const LayerWeights& layer, const float* x, float* y) {
    if (shape.latent())
        attend_to_entries(run, shape, layer, x, y);
    else
        attend_to_heads(run, shape, layer, x, y);
}

}  // namespace roofline::bench
