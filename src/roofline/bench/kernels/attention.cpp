#include "roofline/bench/kernels/attention.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

namespace roofline::bench {
namespace {

constexpr std::int64_t most_rows = 256;        // of queries that share a piece; attention_lanes.inc has room for them
constexpr std::int64_t least_positions = 128;  // a shorter piece is not worth the combining; whole tiles
constexpr float nothing_yet = -1e30F;

/// Room for so many floats in whole lines. Widths are multiples of 16, so rows of them are whole too.
std::int64_t in_lines(std::int64_t floats) {
    return (floats + 15) / 16 * 16;
}

/// The score of a query's sink.
float sink_of(const AttentionCall& call, std::int64_t query) {
    return call.sinks != nullptr ? call.sinks[query % call.query_heads] : nothing_yet;
}

/// The first position that is not before this one and begins a tile of whatever layout.
std::int64_t whole_tiles(std::int64_t position) {
    return (position + 63) / 64 * 64;
}

/// One token for each sequence: pieces of the context are shared out. Who ends the last piece of a head combines them.
template <class T>
void decode(const AttentionCall& call, AttentionKernels::Piece<T> piece, Threads& threads, AttentionScratch& scratch) {
    const std::int64_t group = call.query_heads / call.kv_heads;
    const std::int64_t heads = call.batch * call.kv_heads;
    const std::int64_t key = call.widths.key;
    const std::int64_t d = call.widths.value;
    const Parts parts((call.context + least_positions - 1) / least_positions, (threads.count() + heads - 1) / heads);
    // Where heads are many, or a thread is alone, nobody waits for a whole one.
    const std::int64_t splits = threads.count() == 1 || heads >= 4 * threads.count() ? 1 : parts.count();
    const std::int64_t queries = call.batch * call.query_heads;
    const std::int64_t values_at = in_lines(2 * group);  // of a state
    const std::int64_t state_size = values_at + group * d;
    scratch.lines.resize(static_cast<std::size_t>(queries * key + heads * splits * state_size) / 16);
    scratch.ended.assign(static_cast<std::size_t>(heads), 0);
    const float scale = 1.0F / std::sqrt(static_cast<float>(key));
    float* scaled = scratch.lines.data()->floats;
    for (std::int64_t i = 0; i < queries * key; ++i) scaled[i] = call.q[i] * scale;
    float* partial = scaled + queries * key;
    const auto* keys = static_cast<const T*>(call.keys);
    const auto* values = static_cast<const T*>(call.values);
    const auto combine = [&](std::int64_t head) {
        for (std::int64_t query = 0; query < group; ++query) {
            const float sink = sink_of(call, head * group + query);
            float largest = sink;
            const float* states = partial + head * splits * state_size;
            for (std::int64_t split = 0; split < splits; ++split)
                largest = std::max(largest, states[split * state_size + query]);
            float* out = call.out + (head * group + query) * d;
            std::fill(out, out + d, 0.0F);
            float sum = std::exp(sink - largest);
            for (std::int64_t split = 0; split < splits; ++split) {
                const float* state = states + split * state_size;
                const float weight = std::exp(state[query] - largest);
                sum += weight * state[group + query];
                for (std::int64_t i = 0; i < d; ++i) out[i] += weight * state[values_at + query * d + i];
            }
            const float share = 1.0F / sum;
            for (std::int64_t i = 0; i < d; ++i) out[i] *= share;
        }
    };
    const auto attend_to = [&](std::int64_t item) {
        const std::int64_t head = item % heads;
        const std::int64_t split = item / heads;
        const auto begin_of = [&](std::int64_t at) {
            return at == splits ? call.context : std::min(call.context, parts.begin(at) * least_positions);
        };
        const std::int64_t first = begin_of(split);
        const std::int64_t last = begin_of(split + 1);
        float* state = partial + (head * splits + split) * state_size;
        std::fill(state, state + group, nothing_yet);
        std::fill(state + group, state + state_size, 0.0F);
        if (first < last) {
            const std::int64_t position = head * call.capacity;
            piece(scaled + head * group * key, group, keys + position * key,
                  values + position * call.widths.value_pitch(), first, last - first, call.widths,
                  {state, state + group, state + values_at});
        }
        const std::atomic_ref<std::int64_t> ended(scratch.ended[static_cast<std::size_t>(head)]);
        if (ended.fetch_add(1, std::memory_order_acq_rel) == splits - 1) combine(head);
    };
    // Neighbouring heads go to the same thread, as long as threads keep step: what it asks for ahead at the end of a
    // head is the beginning of the next.
    const std::int64_t each = splits == 1 ? heads / threads.count() : 0;
    threads.run(heads * splits, [&](std::int64_t item, int) {
        const bool in_step = item < each * threads.count();
        attend_to(in_step ? item % threads.count() * each + item / threads.count() : item);
    });
}

/// Blocks of new tokens look at what all of them see together, then each at what of its own past is left.
template <class T>
void prefill(const AttentionCall& call, AttentionKernels::Piece<T> piece, Threads& threads) {
    const std::int64_t group = call.query_heads / call.kv_heads;
    const std::int64_t key = call.widths.key;
    const std::int64_t d = call.widths.value;
    const std::int64_t block = std::max<std::int64_t>(1, std::min<std::int64_t>(16, most_rows / group));
    const std::int64_t blocks = (call.tokens + block - 1) / block;
    const std::int64_t past = call.context - call.tokens;
    const float scale = 1.0F / std::sqrt(static_cast<float>(key));
    const auto* keys = static_cast<const T*>(call.keys);
    const auto* values = static_cast<const T*>(call.values);
    threads.run(call.batch * call.kv_heads * blocks, [&](std::int64_t item, int) {
        // The longest blocks first, so that the last to finish is short.
        const std::int64_t first = (blocks - 1 - item / (call.batch * call.kv_heads)) * block;
        const std::int64_t head = item % (call.batch * call.kv_heads);
        const std::int64_t sequence = head / call.kv_heads;
        const std::int64_t kv_head = head % call.kv_heads;
        const std::int64_t tokens = std::min(block, call.tokens - first);
        const std::int64_t rows = tokens * group;
        static thread_local std::vector<LineOfFloats> lines;
        lines.assign(static_cast<std::size_t>(rows * (key + d) + in_lines(2 * rows)) / 16, {});
        float* scaled = lines.data()->floats;
        float* sought = scaled + rows * key;
        float* largest = sought + rows * d;
        float* sums = largest + rows;
        std::fill(largest, largest + rows, nothing_yet);
        const auto query_of = [&](std::int64_t row) {
            const std::int64_t token = sequence * call.tokens + first + row / group;
            return token * call.query_heads + kv_head * group + row % group;
        };
        for (std::int64_t row = 0; row < rows; ++row) {
            const float* query = call.q + query_of(row) * key;
            for (std::int64_t i = 0; i < key; ++i) scaled[row * key + i] = query[i] * scale;
        }
        const T* own_keys = keys + head * call.capacity * key;
        const T* own_values = values + head * call.capacity * call.widths.value_pitch();
        const auto look = [&](std::int64_t row, std::int64_t count, std::int64_t begin, std::int64_t end) {
            if (begin >= end) return;
            piece(scaled + row * key, count, own_keys, own_values, begin, end - begin, call.widths,
                  {largest + row, sums + row, sought + row * d});
        };
        // What all see: not what is before the window of the last of them, nor what is after the first.
        const auto begin_of = [&](std::int64_t token) {
            return call.window > 0 ? std::max<std::int64_t>(0, past + first + token + 1 - call.window) : 0;
        };
        const std::int64_t shared_end = past + first + 1;
        const std::int64_t shared = std::min(shared_end, whole_tiles(begin_of(tokens - 1)));
        look(0, rows, shared, shared_end);
        for (std::int64_t token = 0; token < tokens; ++token) {
            look(token * group, group, begin_of(token), shared);
            look(token * group, group, std::max(shared_end, begin_of(token)), shared_end + token);
        }
        for (std::int64_t row = 0; row < rows; ++row) {
            float* out = call.out + query_of(row) * d;
            const float sink = sink_of(call, query_of(row));
            const float most = std::max(sink, largest[row]);
            const float weight = std::exp(largest[row] - most);
            const float factor = weight / (weight * sums[row] + std::exp(sink - most));
            for (std::int64_t i = 0; i < d; ++i) out[i] = sought[row * d + i] * factor;
        }
    });
}

template <class Place>
void lay(const Bf16* rows, Bf16* to, KvLayout layout, std::int64_t heads, std::int64_t context, std::int64_t head_dim,
         Threads& threads, const Place& place) {
    const std::int64_t room = kv_room(layout, context);
    threads.ranges(heads, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t head = first; head < last; ++head) {
            for (std::int64_t position = 0; position < context; ++position) {
                const Bf16* from = rows + (head * context + position) * head_dim;
                for (std::int64_t i = 0; i < head_dim; ++i)
                    to[head * room * head_dim + place(layout, position, i, head_dim)] = from[i];
            }
        }
    });
}

}  // namespace

void lay_keys(const Bf16* rows, Bf16* to, KvLayout layout, std::int64_t heads, std::int64_t context,
              std::int64_t head_dim, Threads& threads) {
    lay(rows, to, layout, heads, context, head_dim, threads, key_place);
}

void lay_values(const Bf16* rows, Bf16* to, KvLayout layout, std::int64_t heads, std::int64_t context,
                std::int64_t head_dim, Threads& threads) {
    lay(rows, to, layout, heads, context, head_dim, threads, value_place);
}

void attend(const AttentionCall& call, const AttentionKernels& kernels, Threads& threads, AttentionScratch& scratch) {
    const bool one = call.tokens == 1;
    if (call.kv == DType::bf16) {
        const auto piece = call.widths.even() ? kernels.bf16 : kernels.bf16_rows;
        one ? decode<Bf16>(call, piece, threads, scratch) : prefill<Bf16>(call, piece, threads);
    } else {
        one ? decode<float>(call, kernels.fp32, threads, scratch) : prefill<float>(call, kernels.fp32, threads);
    }
}

const AttentionKernels& best_attention(const HeadWidths& widths) {
    static const std::array all = {neon_attention(),   neon_pairs_attention(), amx_attention(),
                                   avx512_attention(), avx2_attention(),       &portable_attention()};
    const auto best = std::ranges::find_if(
        all, [&](const AttentionKernels* kernels) { return kernels != nullptr && kernels->takes(widths); });
    return **best;
}

}  // namespace roofline::bench
