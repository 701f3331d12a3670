// The kernels of head_rows.cuh.
#include <algorithm>
#include <bit>

#include "roofline/bench/cuda/eights.cuh"
#include "roofline/bench/cuda/head_rows.cuh"
#include "roofline/bench/cuda/launch.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr int threads = 256;
constexpr float epsilon = 1e-5f;

/// `lanes` lanes, a power of two of at least as many as a head has pieces of 16 bytes, take a head.
__global__ __launch_bounds__(threads) void settle_heads_kernel(HeadRows rows, int lanes, std::size_t total) {
    let_next_start();
    const std::size_t thread = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
    const bool there = thread / static_cast<unsigned>(lanes) < total;
    const std::size_t index = there ? thread / static_cast<unsigned>(lanes) : 0;
    const int pieces = rows.head_dim / 8;
    const int half = pieces / 2;
    const int piece = static_cast<int>(thread % static_cast<unsigned>(lanes));
    const bool mine = there && piece < pieces;
    const int all = rows.heads + 2 * rows.kv_heads;
    const int head = static_cast<int>(index % static_cast<unsigned>(all));
    const std::size_t row = index / static_cast<unsigned>(all);
    const std::size_t token = row % static_cast<unsigned>(rows.tokens);
    const bool is_value = head >= rows.heads + rows.kv_heads;
    const std::size_t at = row * (rows.row / 8) + static_cast<std::size_t>(head) * pieces + piece;
    // What no kernel writes comes while the kernel before ends.
    Eight added{};
    Eight gain{};
    float2 angles[8] = {};
    if (mine && rows.bias != nullptr) added = read(rows.bias, static_cast<std::size_t>(head) * pieces + piece);
    if (mine && rows.norms != nullptr) gain = read(rows.norms, (head < rows.heads ? 0 : pieces) + piece);
    if (mine && rows.angles != nullptr) {
        const float2* from = rows.angles + (rows.position + token) * (rows.head_dim / 2) + piece % half * 8;
#pragma unroll
        for (int i = 0; i < 8; ++i) angles[i] = from[i];
    }
    wait_for_previous();
    Eight eight{};
    if (mine) eight = read(rows.rows, at);
#pragma unroll
    for (int i = 0; i < 8; ++i) eight.v[i] += added.v[i];
    if (rows.norms != nullptr) {
        float squares = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i) squares += eight.v[i] * eight.v[i];
        for (int i = lanes / 2; i > 0; i /= 2) squares += __shfl_xor_sync(~0u, squares, i);
        if (!is_value) {
            const float factor = rsqrtf(squares / static_cast<float>(rows.head_dim) + epsilon);
#pragma unroll
            for (int i = 0; i < 8; ++i) eight.v[i] *= factor * gain.v[i];
        }
    }
    if (rows.angles != nullptr) {
        // The other number of a pair is half a head away.
        const bool upper = piece >= half;
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int partner = lane - piece + (upper ? piece - half : (piece + half) % lanes);
        Eight other;
#pragma unroll
        for (int i = 0; i < 8; ++i) other.v[i] = __shfl_sync(~0u, eight.v[i], partner);
        if (!is_value) {
            if (upper) {
                turn(other, eight, angles);
            } else {
                turn(eight, other, angles);
            }
        }
    }
    if (!mine) return;
    if (head < rows.heads) {
        if (rows.bias != nullptr || rows.norms != nullptr || rows.angles != nullptr) write(rows.rows, at, eight);
        return;
    }
    const int kv_head = (head - rows.heads) % rows.kv_heads;
    const std::size_t sequence = row / static_cast<unsigned>(rows.tokens);
    const std::size_t to = ((sequence * rows.kv_heads + kv_head) * rows.capacity + rows.place + token) * pieces + piece;
    void* cache = is_value ? rows.values : rows.keys;
    if (rows.fresh_keys != nullptr) {
        const std::size_t fresh = ((sequence * rows.kv_heads + kv_head) * rows.tokens + token) * pieces + piece;
        write(is_value ? rows.fresh_values : rows.fresh_keys, fresh, eight);
    }
    if (rows.cache == Format::fp8) {
        static_cast<uint2*>(cache)[to] = as_fp8(eight);
    } else {
        write(cache, to, eight);
    }
}

/// A row a block: the entry's norm, then turned parts, 16 numbers a thread.
__global__ __launch_bounds__(threads) void settle_entries_kernel(LatentRows rows) {
    __shared__ float sums[threads / 32];
    let_next_start();
    const std::size_t row = blockIdx.x;
    const std::size_t token = row % static_cast<unsigned>(rows.tokens);
    const std::size_t sequence = row / static_cast<unsigned>(rows.tokens);
    const std::size_t entry_pieces = static_cast<std::size_t>(rows.rank + rows.rope_dim) / 8;
    const std::size_t place = sequence * rows.capacity + rows.capacity - rows.tokens + token;
    const std::size_t from = row * static_cast<unsigned>(rows.entry_row) / 8;
    const int pieces = rows.rank / 8;
    const int piece = static_cast<int>(threadIdx.x);
    Eight gain{};
    if (piece < pieces) gain = read(rows.gains, piece);  // which no kernel writes
    wait_for_previous();
    Eight mine{};
    if (piece < pieces) mine = read(rows.entries, from + piece);
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) squares += mine.v[i] * mine.v[i];
#pragma unroll
    for (int i = 16; i > 0; i /= 2) squares += __shfl_xor_sync(~0u, squares, i);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = squares;
    __syncthreads();
    squares = 0.0f;
    for (const float sum : sums) squares += sum;
    if (piece < pieces) {
        const float factor = rsqrtf(squares / static_cast<float>(rows.rank) + epsilon);
#pragma unroll
        for (int i = 0; i < 8; ++i) mine.v[i] *= factor * gain.v[i];
        write(rows.cache, place * entry_pieces + piece, mine);
        if (rows.low != nullptr) write(rows.low, row * pieces + piece, mine);
    }
    // Of all heads and, behind them, of the entry.
    const int half = rows.rope_dim / 16;
    const float2* angles = rows.angles + (rows.position + token) * (rows.rope_dim / 2);
    for (int i = static_cast<int>(threadIdx.x); i < (rows.heads + 1) * half; i += threads) {
        const int head = i / half;
        const bool of_entry = head == rows.heads;
        const std::size_t at =
            of_entry
                ? from + pieces
                : (row * static_cast<unsigned>(rows.query_row) + static_cast<std::size_t>(head) * rows.query_head) / 8;
        const std::size_t to =
            of_entry
                ? place * entry_pieces + pieces
                : (row * static_cast<unsigned>(rows.turned_row) + static_cast<std::size_t>(head) * rows.turned_head) /
                      8;
        const void* source = of_entry ? rows.entries : rows.queries;
        Eight low = read(source, at + i % half);
        Eight high = read(source, at + half + i % half);
        turn(low, high, angles + i % half * 8);
        if (!of_entry) {
#pragma unroll
            for (int j = 0; j < 8; ++j) low.v[j] *= rows.factor, high.v[j] *= rows.factor;
        }
        void* target = of_entry ? rows.cache : rows.turned;
        write(target, to + i % half, low);
        write(target, to + half + i % half, high);
    }
}

__global__ __launch_bounds__(threads) void place_expanded_kernel(ExpandedRows rows, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
    if (index >= total) return;
    const int unturned = rows.unturned / 8;
    const int turned = rows.rope_dim / 8;
    const int value = rows.value_dim / 8;
    const int each = unturned + turned + value;
    const int piece = static_cast<int>(index % static_cast<unsigned>(each));
    const int head = static_cast<int>(index / static_cast<unsigned>(each) % static_cast<unsigned>(rows.heads));
    const std::size_t row = index / static_cast<unsigned>(each) / static_cast<unsigned>(rows.heads);
    const std::size_t sequence = row / static_cast<unsigned>(rows.tokens);
    const std::size_t token = row % static_cast<unsigned>(rows.tokens);
    const std::size_t to = (sequence * rows.heads + head) * rows.tokens + token;
    const std::size_t made = (row * rows.heads + head) * static_cast<unsigned>(unturned + value);
    const auto* from = static_cast<const uint4*>(rows.made);
    auto* keys = static_cast<uint4*>(rows.keys) + to * static_cast<unsigned>(unturned + turned);
    if (piece < unturned) {
        keys[piece] = from[made + piece];
    } else if (piece < unturned + turned) {
        const std::size_t place = sequence * rows.capacity + rows.capacity - rows.tokens + token;
        const std::size_t entry = place * static_cast<unsigned>(rows.rank + rows.rope_dim) / 8 + rows.rank / 8;
        keys[piece] = static_cast<const uint4*>(rows.cache)[entry + piece - unturned];
    } else {
        const int inside = piece - unturned - turned;
        static_cast<uint4*>(rows.values)[to * value + inside] = from[made + unturned + inside];
    }
}

dim3 blocks_for(std::size_t total) {
    return dim3(static_cast<unsigned>((total + threads - 1) / threads));
}

}  // namespace

void settle_heads(const HeadRows& rows, Launch launch) {
    if (rows.head_dim % 16 != 0 || rows.head_dim > 256) {
        throw Failure{"heads have a multiple of 16 numbers, up to 256, not " + std::to_string(rows.head_dim)};
    }
    const int lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(rows.head_dim / 8)));
    const std::size_t total = product_of({rows.count, rows.heads + 2 * rows.kv_heads});
    start(&settle_heads_kernel, blocks_for(total * static_cast<std::size_t>(lanes)), threads, 0, launch.overlap,
          launch.stream, rows, lanes, total);
}

void settle_entries(const LatentRows& rows, Launch launch) {
    if (rows.rank % 8 != 0 || rows.rank > 8 * threads || rows.rope_dim % 16 != 0) {
        throw Failure{"latent entries have a multiple of 8 numbers up to " + std::to_string(8 * threads) +
                      " and a multiple of 16 that are turned, not " + std::to_string(rows.rank) + " and " +
                      std::to_string(rows.rope_dim)};
    }
    start(&settle_entries_kernel, dim3(static_cast<unsigned>(rows.count)), threads, 0, launch.overlap, launch.stream,
          rows);
}

void place_expanded(const ExpandedRows& rows, Launch launch) {
    const std::size_t total =
        product_of({rows.count, rows.heads, (rows.unturned + rows.rope_dim + rows.value_dim) / 8});
    start(&place_expanded_kernel, blocks_for(total), threads, 0, launch.overlap, launch.stream, rows, total);
}

}  // namespace roofline::cuda::kernels
