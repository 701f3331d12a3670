// The kernels of states.cuh.
#include <algorithm>

#include "roofline/bench/cuda/cluster.cuh"
#include "roofline/bench/cuda/eights.cuh"
#include "roofline/bench/cuda/launch.cuh"
#include "roofline/bench/cuda/state_channels.cuh"
#include "roofline/bench/cuda/state_numbers.cuh"
#include "roofline/bench/cuda/states.cuh"
#include "roofline/bench/cuda/states_chunks.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr int threads = 256;
constexpr int most_threads = 320;  // of a block that takes values of a head
constexpr int prompt_chunk = 8;    // tokens of a prompt that are put into shared memory at a time
constexpr float epsilon = 1e-5f;

__device__ float number(const void* from, std::size_t index) {
    return __bfloat162float(static_cast<const __nv_bfloat16*>(from)[index]);
}

/// The sum over `lanes` neighbouring lanes, a power of two, in each of them.
__device__ float sum_of(float value, int lanes) {
    for (int i = lanes / 2; i > 0; i /= 2) value += __shfl_xor_sync(~0u, value, i);
    return value;
}

/// A thread takes eight channels of a run of `strip` tokens; it begins with the tokens before the run.
__global__ __launch_bounds__(threads) void convolve_kernel(void* to, const void* x, int x_row, const Convolution by,
                                                           int tokens, int strip, std::size_t total) {
    let_next_start();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
    if (index >= total) return;
    const int pieces = by.channels / 8;
    const int strips = (tokens + strip - 1) / strip;
    const int piece = static_cast<int>(index % pieces);
    const int first = static_cast<int>(index / pieces % strips) * strip;
    const std::size_t sequence = index / pieces / strips;
    Channels channels;
    channels.begin(by, sequence, piece * 8);
    wait_for_previous();
    const std::size_t row = sequence * tokens;
    for (int token = max(0, first - (by.taps - 1)); token < first; ++token) {
        channels.take(static_cast<const uint4*>(x)[(row + token) * x_row + piece]);
    }
    for (int token = first; token < min(first + strip, tokens); ++token) {
        const uint4 newest = static_cast<const uint4*>(x)[(row + token) * x_row + piece];
        write(to, (row + token) * pieces + piece, channels.take(newest));
        if (token > tokens - 1 - by.taps) channels.keep(by.position + token, newest);
    }
}

/// Brings queries and keys to length 1: of a warp sixteen lanes have eight numbers of a query, the others of a key.
__device__ void make_length_one(Eight& eight) {
    float square = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) square += eight.v[i] * eight.v[i];
    const float factor = rsqrtf(sum_of(square, 16) + length_epsilon);
#pragma unroll
    for (int i = 0; i < 8; ++i) eight.v[i] *= factor;
}

__device__ void add_product(float& sum, const float4& a, const float4& b) {
    sum = fmaf(a.x, b.x, sum);
    sum = fmaf(a.y, b.y, sum);
    sum = fmaf(a.z, b.z, sum);
    sum = fmaf(a.w, b.w, sum);
}

__device__ void put(float4* to, const Eight& eight) {
    to[0] = {eight.v[0], eight.v[1], eight.v[2], eight.v[3]};
    to[1] = {eight.v[4], eight.v[5], eight.v[6], eight.v[7]};
}

/// What comes out of a value's state by a token, and what becomes of it. `Lanes` lanes keep 16 numbers each; queries
/// and keys, one after the other, are in shared memory. Both products with the state are made with the one before the
/// token, so that one pass does: new = decay old + given key, and so new query = decay (old query) + given (key query).
template <bool Delta, int Lanes>
__device__ float update(float4 (&state)[4], const float4* queries, int lane, float value, const OfHead& head,
                        float skip) {
    float4 key[4];
    float both = 0.0f;
    float by_key = 0.0f;
    float by_query = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        key[i] = queries[(4 + i) * Lanes + lane];
        const float4 query = queries[i * Lanes + lane];
        add_product(both, key[i], query);
        add_product(by_query, state[i], query);
        if constexpr (Delta) add_product(by_key, state[i], key[i]);
    }
    float given = head.step * value;
    if constexpr (Delta) given = (value - head.decay * sum_of(by_key, Lanes)) * head.share;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        state[i].x = head.decay * state[i].x + given * key[i].x;
        state[i].y = head.decay * state[i].y + given * key[i].y;
        state[i].z = head.decay * state[i].z + given * key[i].z;
        state[i].w = head.decay * state[i].w + given * key[i].w;
    }
    // A lane's share of the result: one sum over lanes for both products.
    return sum_of(head.decay * by_query + given * both, Lanes) + skip * value;
}

template <int Lanes>
__device__ float4* state_of(const StateRows& rows, int head, int value, int lane) {
    return reinterpret_cast<float4*>(rows.states) +
           ((static_cast<std::size_t>(blockIdx.y) * rows.heads + head) * rows.value_dim + value) * (4 * Lanes) + lane;
}

/// One token of few sequences: convolution, update and, of a delta net, the norm at once. A block takes some values of
/// a head, `Lanes` lanes for each; where the norm needs them all, the blocks of a head are a cluster.
template <bool Delta, int Lanes>
__global__ __launch_bounds__(most_threads) void states_at_once_kernel(const StateRows rows, int pieces, bool norm) {
    constexpr int keys = 16 * Lanes;
    __shared__ float4 convolved[(2 * keys + most_threads / Lanes) / 4];
    __shared__ float2 squares[8];
    __shared__ float of_warps[most_threads / 32];
    let_next_start();
    const int values = static_cast<int>(blockDim.x) / Lanes;
    const int piece = static_cast<int>(blockIdx.x) % pieces;
    const int head = static_cast<int>(blockIdx.x) / pieces;
    const std::size_t sequence = blockIdx.y;
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % Lanes;
    const int value = piece * values + thread / Lanes;

    // What no kernel of this step writes comes while the one before ends: the state, weights, the past. (The step
    // before wrote the state; between the two lie a head and a choice of tokens, which overlap with nothing so far
    // away.)
    float4* const place = state_of<Lanes>(rows, head, value, lane);
    float4 state[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) state[i] = __ldcs(place + i * Lanes);
    const float rate = rows.rates[head];
    const float skip = Delta ? 0.0f : rows.skips[head];
    const float gain = norm ? number(rows.gains, value) : 0.0f;
    const bool convolves = thread * 8 < 2 * keys + values;
    const int channel = channel_of<Delta, keys>(rows, head, piece * values, thread * 8);
    // Of channels that several blocks convolve, one keeps the past.
    const bool first_of_group = head % (rows.heads / rows.groups) == 0 && piece == 0;
    Channels channels;
    if (convolves) channels.begin(rows.convolution, sequence, channel);
    if (norm) cluster_arrive();
    wait_for_previous();
    if (norm) cluster_wait();  // all of them are there: what they share can be written

    const std::size_t row = sequence * rows.width;
    const auto* numbers = static_cast<const __nv_bfloat16*>(rows.rows) + row;
    if (convolves) {
        const uint4 newest = *reinterpret_cast<const uint4*>(numbers + rows.convolved_at + channel);
        Eight eight = channels.take(newest);
        if (Delta && thread < 32) make_length_one(eight);
        put(convolved + thread * 2, eight);
        if (thread * 8 >= 2 * keys || first_of_group) channels.keep(rows.convolution.position, newest);
    }
    const OfHead own = of_head<Delta>(raw_of_head<Delta>(rows, sequence, head), rate);
    const float gate = silu(number(numbers, static_cast<std::size_t>(rows.gates_at + head * rows.value_dim + value)));
    __syncthreads();
    const float mine = reinterpret_cast<const float*>(convolved)[2 * keys + thread / Lanes];
    const float y = update<Delta, Lanes>(state, convolved, lane, mine, own, skip);
#pragma unroll
    for (int i = 0; i < 4; ++i) __stcs(place + i * Lanes, state[i]);
    float factor = Delta ? 1.0f : gate;
    if (norm) {
        // The sum over the values of a warp, of the block, of the cluster.
        const float square = sum_of(lane == 0 ? y * y : 0.0f, 32);
        if (thread % 32 == 0) of_warps[thread / 32] = square;
        __syncthreads();
        if (thread < pieces) {
            float sum = 0.0f;
            for (int i = 0; i < static_cast<int>(blockDim.x) / 32; ++i) sum += of_warps[i];
            cluster_write(&squares[piece], thread, float2{sum, 0.0f});
        }
        cluster_arrive();
        cluster_wait();
        float sum = 0.0f;
        for (int i = 0; i < pieces; ++i) sum += squares[i].x;
        factor = rsqrtf(sum / static_cast<float>(rows.value_dim) + epsilon) * gain * gate;
    }
    if (lane == 0) {
        const std::size_t at = (sequence * rows.heads + head) * rows.value_dim + value;
        static_cast<__nv_bfloat16*>(rows.to)[at] = __float2bfloat16_rn(y * factor);
    }
}

/// Tokens of many sequences, or of prompts, convolved already: a block takes some values of a head through all tokens
/// of a sequence, their states in registers. Of prompts `Chunk` tokens are put into shared memory at a time, a warp for
/// each, and the next are on their way meanwhile; within a chunk no warp waits for another.
template <bool Delta, int Lanes, int Chunk>
__global__ __launch_bounds__(most_threads, Chunk == 1 ? 3 : 1) void states_kernel(const StateRows rows,
                                                                                  const __nv_bfloat16* channels,
                                                                                  int channel_row, int pieces) {
    constexpr int keys = 16 * Lanes;
    constexpr int most_values = most_threads / Lanes;
    constexpr bool prompt = Chunk > 1;
    constexpr int buffers = prompt ? 2 : 1;
    // Queries, keys, values, and what gates make of them.
    __shared__ float4 given[buffers][Chunk][(2 * keys + (Delta ? 1 : 2) * most_values) / 4];
    __shared__ OfHead of_heads[buffers][Chunk];
    let_next_start();
    const int values = static_cast<int>(blockDim.x) / Lanes;
    const int piece = static_cast<int>(blockIdx.x) % pieces;
    const int head = static_cast<int>(blockIdx.x) / pieces;
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % Lanes;
    const int within = thread / Lanes;
    float4* const place = state_of<Lanes>(rows, head, piece * values + within, lane);
    float4 state[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) state[i] = rows.fresh ? float4{} : __ldcs(place + i * Lanes);
    const float rate = rows.rates[head];
    const float skip = Delta ? 0.0f : rows.skips[head];
    const bool gated = !Delta && rows.gates_at >= 0;
    wait_for_previous();

    // A lane takes eight numbers at a time of its warp's token; with one token a thread does of that. Nothing is done
    // with them before they are needed.
    const std::size_t first = static_cast<std::size_t>(blockIdx.y) * rows.tokens;
    const int own_token = prompt ? thread / 32 : 0;
    const int own_piece = prompt ? thread % 32 : thread;
    constexpr int step = prompt ? 32 : most_threads;
    constexpr int turns = prompt ? (2 * keys + (Delta ? 1 : 2) * most_values) / 8 / 32 + 1 : 1;
    const int gates_begin = 2 * keys + values;
    const int all = gates_begin + (gated ? values : 0);
    uint4 fetched[turns];
    RawOfHead fetched_head{};
    const auto fetch = [&](int chunk) {
        const std::size_t row = first + chunk * Chunk + own_token;
        if (own_token >= Chunk || chunk * Chunk + own_token >= rows.tokens) return;
#pragma unroll
        for (int i = 0; i < turns; ++i) {
            const int at = (own_piece + i * step) * 8;
            if (at >= all) continue;
            const __nv_bfloat16* from =
                at < gates_begin
                    ? channels + row * channel_row + channel_of<Delta, keys>(rows, head, piece * values, at)
                    : static_cast<const __nv_bfloat16*>(rows.rows) + row * rows.width + rows.gates_at +
                          head * rows.value_dim + piece * values + at - gates_begin;
            fetched[i] = *reinterpret_cast<const uint4*>(from);
        }
        fetched_head = raw_of_head<Delta>(rows, row, head);
    };
    const auto share = [&](int chunk) {
        const int buffer = chunk % buffers;
        if (own_token >= Chunk || chunk * Chunk + own_token >= rows.tokens) return;
#pragma unroll
        for (int i = 0; i < turns; ++i) {
            const int at = own_piece + i * step;
            if (at * 8 >= all) continue;
            Eight eight = read(&fetched[i], 0);
            if (Delta && at < 32) make_length_one(eight);
#pragma unroll
            for (int j = 0; j < 8; ++j) eight.v[j] = at * 8 >= gates_begin ? silu(eight.v[j]) : eight.v[j];
            put(given[buffer][own_token] + at * 2, eight);
        }
        if (prompt && own_piece == 0) of_heads[buffer][own_token] = of_head<Delta>(fetched_head, rate);
    };
    const std::size_t row_values = static_cast<std::size_t>(rows.heads) * rows.value_dim;
    auto* to =
        static_cast<__nv_bfloat16*>(rows.to) + first * row_values + head * rows.value_dim + piece * values + within;
    const int chunks = (rows.tokens + Chunk - 1) / Chunk;
    fetch(0);
    for (int chunk = 0; chunk < chunks; ++chunk) {
        share(chunk);
        __syncthreads();
        if (chunk + 1 < chunks) fetch(chunk + 1);
        const int buffer = chunk % buffers;
        const int count = min(Chunk, rows.tokens - chunk * Chunk);
        for (int token = 0; token < count; ++token) {
            const auto* const numbers = reinterpret_cast<const float*>(given[buffer][token]);
            const OfHead own = prompt ? of_heads[buffer][token] : of_head<Delta>(fetched_head, rate);
            float y = update<Delta, Lanes>(state, given[buffer][token], lane, numbers[2 * keys + within], own, skip);
            if (gated) y *= numbers[gates_begin + within];
            if (lane == 0) *to = __float2bfloat16_rn(y);
            to += row_values;
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) __stcs(place + i * Lanes, state[i]);
}

dim3 blocks_for(std::size_t total) {
    return dim3(static_cast<unsigned>((total + threads - 1) / threads));
}

/// Values of a head that a block takes: as many as it has threads for, in whole warps and pieces of eight.
int values_of_block(const StateRows& rows, int lanes) {
    for (int values = most_threads / lanes / 8 * 8; values >= 8; values -= 8) {
        if (rows.value_dim % values == 0 && values * lanes % 32 == 0) return values;
    }
    return 0;
}

void refuse_other_sizes(const Convolution& by) {
    if (by.taps < 2 || by.taps > most_taps || by.channels % 8 != 0) {
        throw Failure{"convolutions have 2 to " + std::to_string(most_taps) +
                      " taps over a multiple of 8 channels, not " + std::to_string(by.taps) + " over " +
                      std::to_string(by.channels)};
    }
}

/// Whether blocks are few enough that what each of them convolves again costs less than a kernel of its own.
bool goes_at_once(const StateRows& rows, int pieces) {
    return rows.convolution.weights != nullptr && rows.gates_at >= 0 && rows.tokens == 1 && !rows.fresh &&
           rows.sequences * rows.heads * pieces <= 4 * multiprocessors();
}

bool goes_in_chunks(const StateRows& rows) {
    return rows.chunks != nullptr && chunk_bytes(rows) > 0;
}

/// Whether the norm of a delta net could be made too.
template <bool Delta, int Lanes>
bool start_states(const StateRows& rows, int values, Launch launch) {
    const int pieces = rows.value_dim / values;
    const dim3 blocks(static_cast<unsigned>(rows.heads * pieces), static_cast<unsigned>(rows.sequences));
    if (goes_at_once(rows, pieces)) {
        const bool norm = Delta && pieces <= 8 && overlap_possible();
        start_clusters(&states_at_once_kernel<Delta, Lanes>, blocks, norm ? pieces : 1, values * Lanes, 0,
                       launch.overlap, launch.stream, rows, pieces, norm);
        return norm;
    }
    const auto* channels = static_cast<const __nv_bfloat16*>(rows.rows) + rows.convolved_at;
    int channel_row = rows.width;
    if (rows.convolution.weights != nullptr) {
        convolve(rows.convolved, channels, rows.width, rows.convolution, rows.sequences * rows.tokens, rows.tokens,
                 launch);
        channels = static_cast<const __nv_bfloat16*>(rows.convolved);
        channel_row = rows.convolution.channels;
    }
    if (goes_in_chunks(rows)) {
        prepare_chunks(rows, {channels, channel_row}, launch);
        go_through_chunks(rows, {channels, channel_row}, launch);
    } else if (rows.tokens == 1) {
        start(&states_kernel<Delta, Lanes, 1>, blocks, values * Lanes, 0, launch.overlap, launch.stream, rows, channels,
              channel_row, pieces);
    } else {
        start(&states_kernel<Delta, Lanes, prompt_chunk>, blocks, values * Lanes, 0, launch.overlap, launch.stream,
              rows, channels, channel_row, pieces);
    }
    return false;
}

}  // namespace

void convolve(void* to, const void* x, int x_row, const Convolution& by, int rows, int tokens, Launch launch) {
    refuse_other_sizes(by);
    const int strip = std::min(tokens, 16);
    const std::size_t strips = static_cast<std::size_t>((tokens + strip - 1) / strip);
    const std::size_t total = product_of({rows / tokens, by.channels / 8}) * strips;
    start(&convolve_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, to, x, x_row / 8, by, tokens,
          strip, total);
}

void run_states(const StateRows& rows, Launch launch) {
    const int lanes = rows.key_dim / 16;
    const int values = rows.key_dim % 16 == 0 && lanes > 0 ? values_of_block(rows, lanes) : 0;
    const bool known = lanes == 8 || (lanes == 16 && !rows.delta);
    if (!known || values == 0) {
        throw Failure{std::string("states of ") + (rows.delta ? "delta nets" : "Mamba-2") + " are read by 128 keys" +
                      (rows.delta ? "" : " or 256") + ", and have a multiple of 8 values: not " +
                      std::to_string(rows.key_dim) + " and " + std::to_string(rows.value_dim)};
    }
    if (rows.convolution.weights != nullptr) refuse_other_sizes(rows.convolution);
    if (rows.tokens > 1 && !goes_in_chunks(rows) && values * lanes < 32 * prompt_chunk) {
        throw Failure{"prompts need states of at least " + std::to_string(32 * prompt_chunk / lanes) + " values, not " +
                      std::to_string(rows.value_dim)};
    }
    const bool normed = rows.delta   ? start_states<true, 8>(rows, values, launch)
                        : lanes == 8 ? start_states<false, 8>(rows, values, launch)
                                     : start_states<false, 16>(rows, values, launch);
    if (normed || !rows.delta || rows.gates_at < 0) return;
    GatedRows gated;
    gated.to = rows.to;
    gated.values = rows.to;
    gated.width = gated.value_row = rows.heads * rows.value_dim;
    gated.gates = static_cast<const std::uint16_t*>(rows.rows) + rows.gates_at;
    gated.gate_row = rows.width;
    gated.gains = rows.gains;
    gated.rows = rows.sequences * rows.tokens;
    gated.run = rows.value_dim;
    gated_norm(gated, launch);
}

}  // namespace roofline::cuda::kernels
