// What a chunk of tokens does without a state: see states_chunks.cuh for the formulas.
#include "roofline/bench/cuda/eights.cuh"
#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/state_numbers.cuh"
#include "roofline/bench/cuda/states_chunks.cuh"
#include "roofline/bench/cuda/states_inverse.cuh"
#include "roofline/bench/cuda/states_tiles.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr int threads = 256;
constexpr int row_warps = 4;      // of 16 tokens each; of two such warps each has every other 16 tokens that these meet
constexpr int delta_keys = 128;   // and values
constexpr int most_together = 8;  // heads of a group that a block takes, of Mamba-2
constexpr float log2_e = 1.4426950408889634f;

/// The numbers of a head in a chunk that begins at `row`: a lane has two tokens, and those beyond the last bring
/// nothing and let nothing decay.
struct TwoTokens {
    float log[2];    // of all decays so far, to base 2
    float last;      // of all of the chunk
    float given[2];  // Mamba-2's step, a delta net's share

    template <bool Delta>
    __device__ void count(const StateRows& rows, std::size_t row, int there, int head) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const float rate = rows.rates[head] * log2_e;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            log[i] = given[i] = 0.0f;
            const int token = 2 * lane + i;
            if (token >= there) continue;
            const OfHead own = of_head<Delta>(raw_of_head<Delta>(rows, row + static_cast<std::size_t>(token), head), 0);
            log[i] = -own.step * rate;
            given[i] = Delta ? own.share : own.step;
        }
        float sum = log[0] + log[1];
#pragma unroll
        for (int i = 1; i < 32; i *= 2) {
            const float before = __shfl_up_sync(~0u, sum, i);
            if (lane >= i) sum += before;
        }
        last = __shfl_sync(~0u, sum, 31);
        log[0] = sum - log[1];
        log[1] = sum;
    }
};

/// Of a warp.
struct Place {
    int lane = static_cast<int>(threadIdx.x) % 32;
    int warp = static_cast<int>(threadIdx.x) / 32 % row_warps;
    int half = static_cast<int>(threadIdx.x) / 32 / row_warps;
};

/// Of tokens 16 w and on, of warp w, and its half of all up to these: sums += rows of `left` times rows of `right`.
template <int Keys>
__device__ void multiply_tokens(float (&sums)[4][4], std::uint32_t left, std::uint32_t right, const Place& own) {
    constexpr int row_bytes = tile_row(Keys);
    left += static_cast<std::uint32_t>(16 * own.warp * row_bytes) + lane_place(row_bytes);
    right += static_cast<std::uint32_t>(16 * own.half * row_bytes) + lane_place(row_bytes);
#pragma unroll
    for (int step = 0; step < Keys / 16; ++step) {
        std::uint32_t a[4];
        take(a, left + step * 32);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            if (2 * j + own.half > own.warp) continue;
            std::uint32_t b[4];
            take(b, right + static_cast<std::uint32_t>(32 * j * row_bytes + step * 32));
            mma_bf16(sums[2 * j], a[0], a[1], a[2], a[3], b[0], b[2]);
            mma_bf16(sums[2 * j + 1], a[0], a[1], a[2], a[3], b[1], b[3]);
        }
    }
}

/// Of tokens 16 w and on what they make of others, times `of_row` of a token: to memory, in blocks.
template <class OfRow>
__device__ void put_scores(uint4* to, const float (&products)[4][4], const float* logs, const float* of_other,
                           const OfRow& of_row, float skip, const Place& own) {
    to += own.warp * (own.warp + 1) / 2 * 32 + own.lane;
    const int token[2] = {16 * own.warp + own.lane / 4, 16 * own.warp + own.lane / 4 + 8};
    const float log[2] = {logs[token[0]], logs[token[1]]};
    const float by[2] = {of_row(token[0]), of_row(token[1])};
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        const int step = 2 * j + own.half;
        if (step > own.warp) continue;
        std::uint32_t words[4];
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            const int row = n % 2;
            const int other = 16 * step + 8 * (n / 2) + 2 * (own.lane % 4);
            const float2 other_logs = *reinterpret_cast<const float2*>(logs + other);
            const float2 factors = *reinterpret_cast<const float2*>(of_other + other);
            float left = products[2 * j + n / 2][2 * row] * by[row] * factors.x;
            float right = products[2 * j + n / 2][2 * row + 1] * by[row] * factors.y;
            // Of tokens that come later decays could be anything.
            left = other <= token[row] ? left * exp2f(log[row] - other_logs.x) : 0.0f;
            right = other < token[row] ? right * exp2f(log[row] - other_logs.y) : 0.0f;
            words[n] = pack(other == token[row] ? left + skip : left, other + 1 == token[row] ? right + skip : right);
        }
        to[step * 32] = {words[0], words[1], words[2], words[3]};
    }
}

/// Mamba-2: a block multiplies queries and keys of a group, and makes of them what some of its heads need.
template <int Keys>
__global__ __launch_bounds__(threads) void prepare_state_space_kernel(const StateRows rows, const Channels16 channels,
                                                                      const ChunkMemory memory, int together) {
    constexpr int row_bytes = tile_row(Keys);
    extern __shared__ uint4 shared[];
    __shared__ float logs[most_together][chunk];
    __shared__ float given[most_together][chunk];
    let_next_start();
    const Place warp;
    const int of_chunk = static_cast<int>(blockIdx.x);
    const std::size_t row = static_cast<std::size_t>(blockIdx.z) * rows.tokens + of_chunk * chunk;
    const int there = min(chunk, rows.tokens - of_chunk * chunk);
    const int of_group = rows.heads / rows.groups;
    const int sets = (of_group + together - 1) / together;
    const int in_group = static_cast<int>(blockIdx.y) % sets * together;
    const int first = static_cast<int>(blockIdx.y) / sets * of_group + in_group;
    const int heads = min(together, of_group - in_group);
    const std::size_t place = (static_cast<std::size_t>(blockIdx.z) * memory.chunks + of_chunk) * rows.heads + first;
    const std::uint32_t queries = address_in_shared(shared);
    const std::uint32_t keys = queries + chunk * row_bytes;
    wait_for_previous();
    const __nv_bfloat16* from = channels.at + row * channels.row;
    copy_tile<chunk, Keys, threads>(queries, from + channel_of<false, Keys>(rows, first, 0, 0), channels.row, there);
    copy_tile<chunk, Keys, threads>(keys, from + channel_of<false, Keys>(rows, first, 0, Keys), channels.row, there);
    for (int head = static_cast<int>(threadIdx.x) / 32; head < heads; head += threads / 32) {
        TwoTokens own;
        own.count<false>(rows, row, there, first + head);
        ChunkNumbers& to = memory.numbers[place + head];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int token = 2 * warp.lane + i;
            logs[head][token] = own.log[i];
            given[head][token] = own.given[i];
            to.of_query[token] = exp2f(own.log[i]);
            to.of_state[token] = exp2f(own.last - own.log[i]) * own.given[i];
        }
        if (warp.lane == 0) to.decay = exp2f(own.last);
    }
    copies_end();
    copies_come();
    __syncthreads();
    float products[4][4] = {};
    multiply_tokens<Keys>(products, queries, keys, warp);
    for (int head = 0; head < heads; ++head) {
        put_scores(
            memory.scores + (place + head) * (score_blocks * 32), products, logs[head], given[head],
            [](int) { return 1.0f; }, rows.skips[first + head], warp);
    }
}

/// What a block has in shared memory: queries, then in their place values; keys; the system of equations.
struct DeltaRoom {
    static constexpr int tile_bytes = chunk * tile_row(delta_keys);
    static constexpr int keys_at = tile_bytes;
    static constexpr int square_at = 2 * tile_bytes;
    static constexpr int numbers_at = square_at + square_bytes;
    static constexpr int bytes = numbers_at + 5 * chunk * 4;
};

/// Rows 16 w and on of the inverse, of warp w, with its columns scaled, times its half of the columns of a tile of
/// tokens.
__device__ void multiply_inverse(float (&sums)[8][4], const float* square, const float* scales, std::uint32_t tile,
                                 const Place& own) {
    constexpr int row_bytes = tile_row(delta_keys);
    tile += static_cast<std::uint32_t>(own.half * delta_keys) + lane_place(row_bytes);
#pragma unroll
    for (int step = 0; step < row_warps; ++step) {
        if (step > own.warp) continue;
        const int column = 2 * (own.lane % 4);
        const float* const from = square + inverse_place(own.warp, step) + own.lane / 4 * square_row + column;
        std::uint32_t a[4];
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            const float2 pair = *reinterpret_cast<const float2*>(from + n % 2 * 8 * square_row + n / 2 * 8);
            const float2 by = *reinterpret_cast<const float2*>(scales + 16 * step + n / 2 * 8 + column);
            a[n] = pack(pair.x * by.x, pair.y * by.y);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            std::uint32_t b[4];
            take_turned(b, tile + static_cast<std::uint32_t>(16 * step * row_bytes + j * 32));
            mma_bf16(sums[2 * j], a[0], a[1], a[2], a[3], b[0], b[1]);
            mma_bf16(sums[2 * j + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
        }
    }
}

__global__ __launch_bounds__(threads, 4) void prepare_delta_kernel(const StateRows rows, const Channels16 channels,
                                                                   const ChunkMemory memory) {
    constexpr int row_bytes = tile_row(delta_keys);
    using Room = DeltaRoom;
    extern __shared__ uint4 shared[];
    let_next_start();
    const int thread = static_cast<int>(threadIdx.x);
    const Place warp;
    const int of_chunk = static_cast<int>(blockIdx.x);
    const int head = static_cast<int>(blockIdx.y);
    const std::size_t row = static_cast<std::size_t>(blockIdx.z) * rows.tokens + of_chunk * chunk;
    const int there = min(chunk, rows.tokens - of_chunk * chunk);
    const std::size_t place = (static_cast<std::size_t>(blockIdx.z) * memory.chunks + of_chunk) * rows.heads + head;
    const std::uint32_t queries = address_in_shared(shared);
    const std::uint32_t values = queries;
    const std::uint32_t keys = queries + Room::keys_at;
    auto* const bytes = reinterpret_cast<std::uint8_t*>(shared);
    auto* const square = reinterpret_cast<float*>(bytes + Room::square_at);
    auto* const logs = reinterpret_cast<float*>(bytes + Room::numbers_at);
    float* const shares = logs + chunk;
    float* const of_key = shares + chunk;  // brings keys to length 1, then queries
    float* const of_query = of_key + chunk;
    float* const for_keys = of_query + chunk;
    wait_for_previous();

    const __nv_bfloat16* from = channels.at + row * channels.row;
    constexpr int k = delta_keys;
    copy_tile<chunk, k, threads>(queries, from + channel_of<true, k>(rows, head, 0, 0), channels.row, there);
    copy_tile<chunk, k, threads>(keys, from + channel_of<true, k>(rows, head, 0, k), channels.row, there);
    if (thread < 32) {
        TwoTokens own;
        own.count<true>(rows, row, there, head);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            logs[2 * thread + i] = own.log[i];
            shares[2 * thread + i] = own.given[i];
        }
    }
    copies_end();
    copies_come();
    __syncthreads();
    {
        // Two threads for a row, of keys, then of queries; they begin apart so that they meet in no bank.
        const int own = thread / 2;
        const std::uint8_t* const from_row =
            bytes + (own < chunk ? Room::keys_at : 0) + own % chunk * row_bytes + thread % 2 * delta_keys;
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < delta_keys / 16; ++i) {
            const Eight eight = read(from_row, static_cast<std::size_t>((i + thread % 2 * 4) % 8));
#pragma unroll
            for (int j = 0; j < 8; ++j) sum += eight.v[j] * eight.v[j];
        }
        sum += __shfl_xor_sync(~0u, sum, 1);
        const float factor = rsqrtf(sum + length_epsilon);
        if (thread % 2 == 0) {
            of_key[own] = factor;
            ChunkNumbers& to = memory.numbers[place];
            const int token = own % chunk;
            const float decay = exp2f(logs[token]);
            if (own < chunk) {
                for_keys[token] = -shares[token] * decay * factor;
                to.of_state[token] = exp2f(logs[chunk - 1] - logs[token]) * factor;
                if (token == chunk - 1) to.decay = decay;
            } else {
                to.of_query[token] = decay * factor;
            }
        }
    }
    __syncthreads();

    // Keys and queries times keys: the system of equations, and what is made of changes.
    {
        float products[4][4] = {};
        multiply_tokens<delta_keys>(products, keys, keys, warp);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const int token = 16 * warp.warp + warp.lane / 4 + n % 2 * 8;
            const int step = n / 4 * 2 + warp.half;
            if (step > warp.warp) continue;
            const int other = 16 * step + n / 2 % 2 * 8 + 2 * (warp.lane % 4);
            const float2 other_logs = *reinterpret_cast<const float2*>(logs + other);
            const float2 factors = *reinterpret_cast<const float2*>(of_key + other);
            const float by = shares[token] * of_key[token];
            const float left = products[n / 2][n % 2 * 2] * factors.x * by;
            const float right = products[n / 2][n % 2 * 2 + 1] * factors.y * by;
            *reinterpret_cast<float2*>(square + token * square_row + other) = {
                other < token ? left * exp2f(logs[token] - other_logs.x) : 0.0f,
                other + 1 < token ? right * exp2f(logs[token] - other_logs.y) : 0.0f};
        }
    }
    {
        float products[4][4] = {};
        multiply_tokens<delta_keys>(products, queries, keys, warp);
        __syncthreads();  // queries have been read, and the system is there
        copy_tile<chunk, k, threads>(values, from + channel_of<true, k>(rows, head, 0, 2 * k), channels.row, there);
        put_scores(
            memory.scores + place * (score_blocks * 32), products, logs, of_key,
            [&](int token) { return of_query[token]; }, 0.0f, warp);
    }
    invert(square);
    constexpr int steps = delta_keys / 16;
    const int first = warp.half * (steps / 2);  // of the columns of a warp
    {
        float sums[8][4] = {};
        multiply_inverse(sums, square, for_keys, keys, warp);
        uint4* const to = memory.against + ((place * row_warps + warp.warp) * steps + first) * 32 + warp.lane;
#pragma unroll
        for (int j = 0; j < steps / 2; ++j) {
            const auto& left = sums[2 * j];
            const auto& right = sums[2 * j + 1];
            to[j * 32] = {pack(left[0], left[1]), pack(left[2], left[3]), pack(right[0], right[1]),
                          pack(right[2], right[3])};
        }
    }
    copies_end();
    copies_come();
    __syncthreads();
    float sums[8][4] = {};
    multiply_inverse(sums, square, shares, values, warp);
    uint4* const to = memory.alone + ((place * steps + first) * row_warps + warp.warp) * 32 + warp.lane;
#pragma unroll
    for (int j = 0; j < steps / 2; ++j) {
        const auto& upper = sums[2 * j];  // values, once turned
        const auto& lower = sums[2 * j + 1];
        to[j * row_warps * 32] = {turned(pack(upper[0], upper[1])), turned(pack(lower[0], lower[1])),
                                  turned(pack(upper[2], upper[3])), turned(pack(lower[2], lower[3]))};
    }
}

template <int Keys>
void prepare_state_space(const StateRows& rows, const Channels16& channels, const ChunkMemory& memory, Launch launch) {
    constexpr int bytes = 2 * chunk * tile_row(Keys);
    must(cudaFuncSetAttribute(prepare_state_space_kernel<Keys>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
         "shared memory of chunks of tokens");
    // Heads that a block takes share its products; with few chunks there are blocks for fewer.
    const int of_group = rows.heads / rows.groups;
    int together = most_together;
    const auto sets_of = [&] { return (of_group + together - 1) / together; };
    while (together > 1 && rows.sequences * memory.chunks * rows.groups * sets_of() < 2 * multiprocessors())
        together /= 2;
    const dim3 blocks(static_cast<unsigned>(memory.chunks), static_cast<unsigned>(rows.groups * sets_of()),
                      static_cast<unsigned>(rows.sequences));
    start(&prepare_state_space_kernel<Keys>, blocks, threads, bytes, launch.overlap, launch.stream, rows, channels,
          memory, together);
}

}  // namespace

void prepare_chunks(const StateRows& rows, const Channels16& channels, Launch launch) {
    const ChunkMemory memory = chunk_memory(rows);
    if (!rows.delta) {
        if (rows.key_dim == 128) prepare_state_space<128>(rows, channels, memory, launch);
        if (rows.key_dim == 256) prepare_state_space<256>(rows, channels, memory, launch);
        return;
    }
    must(cudaFuncSetAttribute(prepare_delta_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, DeltaRoom::bytes),
         "shared memory of chunks of tokens");
    const dim3 blocks(static_cast<unsigned>(memory.chunks), static_cast<unsigned>(rows.heads),
                      static_cast<unsigned>(rows.sequences));
    start(&prepare_delta_kernel, blocks, threads, DeltaRoom::bytes, launch.overlap, launch.stream, rows, channels,
          memory);
}

}  // namespace roofline::cuda::kernels
