#include "roofline/bench/kernels/attention.hpp"

#include <algorithm>
#include <cmath>

namespace roofline::bench {
namespace {

constexpr std::int64_t most_rows = 256;        // of queries that share a piece; attention_lanes.inc has room for them
constexpr std::int64_t least_positions = 128;  // a shorter piece is not worth the combining
constexpr float nothing_yet = -1e30F;

/// One token for each sequence: pieces of the context are shared out, then combined.
template <class T>
void decode(const AttentionCall& call, AttentionKernels::Piece<T> piece, Threads& threads, AttentionScratch& scratch) {
    const std::int64_t group = call.query_heads / call.kv_heads;
    const std::int64_t heads = call.batch * call.kv_heads;
    const std::int64_t d = call.head_dim;
    const std::int64_t wanted = (4 * threads.count() + heads - 1) / heads;
    const std::int64_t splits = std::clamp(call.context / least_positions, std::int64_t{1}, wanted);
    const std::int64_t queries = call.batch * call.query_heads;
    const std::int64_t state_size = group * (d + 2);
    scratch.floats.resize(static_cast<std::size_t>(queries * d + heads * splits * state_size));
    scratch.narrow.resize(static_cast<std::size_t>(queries * d));
    const float scale = 1.0F / std::sqrt(static_cast<float>(d));
    float* scaled = scratch.floats.data();
    for (std::int64_t i = 0; i < queries * d; ++i) {
        scratch.narrow[static_cast<std::size_t>(i)] = to_bf16(call.q[i] * scale);
        scaled[i] = call.q[i] * scale;
    }
    float* partial = scaled + queries * d;
    const auto* keys = static_cast<const T*>(call.keys);
    const auto* values = static_cast<const T*>(call.values);
    threads.run(heads * splits, [&](std::int64_t item, int) {
        const std::int64_t head = item / splits;
        const std::int64_t split = item % splits;
        const std::int64_t first = call.context * split / splits;
        const std::int64_t last = call.context * (split + 1) / splits;
        float* state = partial + item * state_size;
        std::fill(state, state + group, nothing_yet);
        std::fill(state + group, state + state_size, 0.0F);
        const std::int64_t base = (head * call.capacity + first) * d;
        piece(scaled + head * group * d, scratch.narrow.data() + head * group * d, group, keys + base, values + base,
              last - first, d, {state, state + group, state + 2 * group});
    });
    threads.run(heads, [&](std::int64_t head, int) {
        for (std::int64_t query = 0; query < group; ++query) {
            float largest = nothing_yet;
            const float* states = partial + head * splits * state_size;
            for (std::int64_t split = 0; split < splits; ++split)
                largest = std::max(largest, states[split * state_size + query]);
            float* out = call.out + (head * group + query) * d;
            std::fill(out, out + d, 0.0F);
            float sum = 0.0F;
            for (std::int64_t split = 0; split < splits; ++split) {
                const float* state = states + split * state_size;
                const float weight = std::exp(state[query] - largest);
                sum += weight * state[group + query];
                for (std::int64_t i = 0; i < d; ++i) out[i] += weight * state[2 * group + query * d + i];
            }
            for (std::int64_t i = 0; i < d; ++i) out[i] /= sum;
        }
    });
}

/// Blocks of new tokens look at what all of them may see together, then each at the rest of its own past.
template <class T>
void prefill(const AttentionCall& call, AttentionKernels::Piece<T> piece, Threads& threads) {
    const std::int64_t group = call.query_heads / call.kv_heads;
    const std::int64_t d = call.head_dim;
    const std::int64_t block = std::max<std::int64_t>(1, std::min<std::int64_t>(16, most_rows / group));
    const std::int64_t blocks = (call.tokens + block - 1) / block;
    const std::int64_t past = call.context - call.tokens;
    const float scale = 1.0F / std::sqrt(static_cast<float>(d));
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
        static thread_local std::vector<float> floats;
        static thread_local std::vector<Bf16> narrow;
        floats.assign(static_cast<std::size_t>(rows * (2 * d + 2)), 0.0F);
        narrow.resize(static_cast<std::size_t>(rows * d));
        float* scaled = floats.data();
        float* largest = scaled + rows * d;
        float* sums = largest + rows;
        float* sought = sums + rows;
        std::fill(largest, largest + rows, nothing_yet);
        const auto query_of = [&](std::int64_t row) {
            const std::int64_t token = sequence * call.tokens + first + row / group;
            return (token * call.query_heads + kv_head * group + row % group) * d;
        };
        for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t i = 0; i < d; ++i) {
                scaled[row * d + i] = call.q[query_of(row) + i] * scale;
                narrow[static_cast<std::size_t>(row * d + i)] = to_bf16(scaled[row * d + i]);
            }
        }
        const std::int64_t base = head * call.capacity * d;
        const std::int64_t shared = past + first + 1;
        piece(scaled, narrow.data(), rows, keys + base, values + base, shared, d, {largest, sums, sought});
        for (std::int64_t token = 1; token < tokens; ++token) {
            const std::int64_t row = token * group;
            piece(scaled + row * d, narrow.data() + row * d, group, keys + base + shared * d,
                  values + base + shared * d, token, d, {largest + row, sums + row, sought + row * d});
        }
        for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t i = 0; i < d; ++i) call.out[query_of(row) + i] = sought[row * d + i] / sums[row];
        }
    });
}

}  // namespace

void attend(const AttentionCall& call, const AttentionKernels& kernels, Threads& threads, AttentionScratch& scratch) {
    const bool one = call.tokens == 1;
    if (call.kv == DType::bf16) {
        one ? decode<Bf16>(call, kernels.bf16, threads, scratch) : prefill<Bf16>(call, kernels.bf16, threads);
    } else {
        one ? decode<float>(call, kernels.fp32, threads, scratch) : prefill<float>(call, kernels.fp32, threads);
    }
}

const AttentionKernels& best_attention() {
    static const AttentionKernels* const best = [] {
        for (const AttentionKernels* kernels : {neon_attention(), avx512_attention(), avx2_attention()}) {
            if (kernels != nullptr) return kernels;
        }
        return &portable_attention();
    }();
    return *best;
}

}  // namespace roofline::bench
