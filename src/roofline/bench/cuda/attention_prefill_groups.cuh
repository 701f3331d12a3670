// Prefill attention, causal, bf16, by Hopper's warp groups: a block takes 128 queries of one head, each of two groups
// 64 of them; one group more has the copy engine bring keys and values, tile after tile. While the values of a tile are
// added up by the tensor cores, the scores of the next, which were multiplied before, become weights: a group's tensor
// cores and its other units work at the same time, and the two groups fill what is left of each other's gaps.
//
// Blocks that see the most keys begin first, and those that see the same keys together: as many kv heads at a time as
// the L2 has room for. (Blocks that stay, and have the next turn's keys come while they end the present one, are faster
// with many short prompts, 369 TFLOP/s for 344, and slower with all others: those that are done sooner do not take
// over.)
//
// A tile of 128 keys of 128 dimensions is 8.4 MFLOP a block, 2,048 cycles of the tensor cores, and 16,384 exponentials,
// 1,024 cycles of the units that have them.
#pragma once

#include <cuda_bf16.h>

#include "roofline/bench/cuda/attention.cuh"
#include "roofline/bench/cuda/attention_meeting.cuh"
#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/tiles.cuh"
#include "roofline/bench/cuda/warpgroup.cuh"

namespace roofline::cuda::kernels {

/// Keys, Values: numbers of a head's. Tile: keys that come together.
template <int Keys, int Values, int Tile>
struct PrefillRoom {
    static constexpr int groups = 2;
    static constexpr int queries = 64 * groups;
    static constexpr int threads = 128 * (groups + 1);
    static constexpr int copying = 24;  // registers of a thread
    static constexpr int multiplying = 240;
    static constexpr int stages = 2;
    static constexpr int key_chunks = Keys / 64;  // lines of 128 bytes of a row
    static constexpr int value_chunks = Values / 64;
    static constexpr int key_bytes = Tile * Keys * 2;
    static constexpr int value_bytes = Tile * Values * 2;
    static constexpr int values_at = stages * key_bytes;
    static constexpr int queries_at = values_at + stages * value_bytes;
    static constexpr int barriers_at = queries_at + queries * Keys * 2;
    static constexpr int bytes = barriers_at + 4 * stages * 8;
    static_assert(bytes <= 227 * 1024);
};

/// What a block does: 128 queries of a head.
struct PrefillTurn {
    int kv_head;  // of all sequences
    int sequence;
    int head;
    int first;  // query
    int begin;  // the first key of the first tile
    int tiles;  // of keys
    int aged;   // the first of these, which have keys that are too old for some query
};

/// `together`: kv heads whose keys and values are read at the same time.
__device__ inline PrefillTurn prefill_turn(const Attention& a, int turn, int together, int queries, int tile) {
    const int group = a.query_heads / a.kv_heads;
    const int parts = (a.tokens + queries - 1) / queries;  // of a head's queries
    const int each = parts * together * group;
    const int begin = turn / each * together;
    const int heads = min(together, a.batch * a.kv_heads - begin) * group;
    const int of_part = turn % each % heads;
    PrefillTurn one{};
    one.kv_head = begin + of_part / group;
    one.sequence = one.kv_head / a.kv_heads;
    one.head = one.kv_head % a.kv_heads * group + of_part % group;
    one.first = (parts - 1 - turn % each / heads) * queries;
    const int past = a.context - a.tokens;
    one.begin = a.window > 0 ? max(0, past + one.first - a.window + 1) / tile * tile : 0;
    one.tiles = (min(a.context, past + one.first + queries) - one.begin + tile - 1) / tile;
    one.aged = a.window > 0 ? (max(0, past + one.first + queries - a.window - one.begin) + tile - 1) / tile : 0;
    return one;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// What a warp group of queries knows of the keys it has seen. A lane has two of its queries, 8 apart. Positions and
/// tiles count from the first key that is brought.
template <int Keys, int Values, int Tile>
class PrefillGroup {
    using Room = PrefillRoom<Keys, Values, Tile>;
    static constexpr int value_sums = (Values < 128 ? Values : 128) / 2;  // of an instruction, a lane's
    static constexpr int instructions = Values / 2 / value_sums;

  public:
    /// `first`: the position of the group's first query.
    __device__ PrefillGroup(std::uint32_t room, int group, int first)
        : room_(room),
          queries_(room + static_cast<std::uint32_t>(Room::queries_at + group * 64 * 128)),
          full_keys_(room + Room::barriers_at),
          position_(first + 16 * (static_cast<int>(threadIdx.x) / 32 % 4) + static_cast<int>(threadIdx.x) % 32 / 4) {
#pragma unroll
        for (int i = 0; i < instructions; ++i) {
#pragma unroll
            for (int j = 0; j < value_sums; ++j) output_[i][j] = 0.0f;
        }
    }

    /// `aged`: as PrefillTurn's. `window`: as Attention's.
    __device__ void take_all(int tiles, int aged, int window, float to_exponent) {
        std::uint32_t weights[Tile / 16][4];
        float scores[Tile / 2];
        begin_scores(0, scores);
        warpgroup_wait<0>();
        sums_settled(scores);
        release(full_keys_ + empty_keys, 0);
        float factor[2];
        if (aged > 0) drop_aged(0, scores, window);
        weigh(0, scores, to_exponent, factor);
        pack(scores, weights);
        for (int tile = 1; tile < tiles; ++tile) {
            begin_scores(tile, scores);
            begin_values(tile - 1, weights);
            warpgroup_wait<1>();
            sums_settled(scores);
            release(full_keys_ + empty_keys, tile);
            if (tile < aged) drop_aged(tile, scores, window);
            weigh(tile, scores, to_exponent, factor);
            warpgroup_wait<0>();
            settle_output();
            release(full_keys_ + empty_values, tile - 1);
#pragma unroll
            for (int i = 0; i < instructions; ++i) {
#pragma unroll
                for (int j = 0; j < value_sums; ++j) output_[i][j] *= factor[j % 4 / 2];
            }
            pack(scores, weights);
        }
        begin_values(tiles - 1, weights);
        warpgroup_wait<0>();
        settle_output();
    }

    /// Of `head`, into rows of `heads` such. `past`: the position of the first token. `sink`: an exponent.
    __device__ void write(__nv_bfloat16* output, int heads, int head, int past, int tokens, float sink,
                          float to_exponent) const {
        const int corner = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float total = total_[half];
            total += __shfl_xor_sync(~0u, total, 1);
            total += __shfl_xor_sync(~0u, total, 2);
            const int token = position_ + 8 * half - past;
            if (token >= tokens) continue;
            const float factor = 1.0f / (total + power(fmaf(-highest_[half], to_exponent, sink)));
            __nv_bfloat16* to = output +
                                (static_cast<std::size_t>(token) * static_cast<std::size_t>(heads) + head) * Values +
                                2 * corner;
#pragma unroll
            for (int i = 0; i < instructions; ++i) {
#pragma unroll
                for (int j = 2 * half; j < value_sums; j += 4) {
                    const __nv_bfloat162 pair =
                        __floats2bfloat162_rn(output_[i][j] * factor, output_[i][j + 1] * factor);
                    *reinterpret_cast<__nv_bfloat162*>(to + i * 2 * value_sums + j / 4 * 8) = pair;
                }
            }
        }
    }

    // Barriers, in bytes from those of full keys on.
    static constexpr std::uint32_t full_values = Room::stages * 8;
    static constexpr std::uint32_t empty_keys = 2 * Room::stages * 8;
    static constexpr std::uint32_t empty_values = 3 * Room::stages * 8;

  private:
    __device__ static int stage(int tile) { return tile % Room::stages; }
    __device__ static void release(std::uint32_t barriers, int tile) {
        if (threadIdx.x % 32 == 0) barrier_arrive(barriers + static_cast<std::uint32_t>(stage(tile) * 8));
    }
    __device__ static void await(std::uint32_t barriers, int tile) {
        barrier_wait(barriers + static_cast<std::uint32_t>(stage(tile) * 8),
                     static_cast<std::uint32_t>(tile / Room::stages % 2));
    }
    __device__ void settle_output() {
#pragma unroll
        for (int i = 0; i < instructions; ++i) sums_settled(output_[i]);
    }

    __device__ void begin_scores(int tile, float (&scores)[Tile / 2]) const {
        await(full_keys_, tile);
        const std::uint32_t keys = room_ + static_cast<std::uint32_t>(stage(tile) * Room::key_bytes);
        warpgroup_begin();
#pragma unroll
        for (int chunk = 0; chunk < Room::key_chunks; ++chunk) {
#pragma unroll
            for (int step = 0; step < 4; ++step) {
                warpgroup_bf16(scores,
                               operand_at(queries_ + static_cast<std::uint32_t>(chunk * Room::queries * 128)) +
                                   static_cast<std::uint64_t>(2 * step),
                               operand_at(keys + static_cast<std::uint32_t>(chunk * Tile * 128)) +
                                   static_cast<std::uint64_t>(2 * step),
                               chunk + step > 0);
            }
        }
        warpgroup_commit();
    }

    __device__ void begin_values(int tile, const std::uint32_t (&weights)[Tile / 16][4]) {
        await(full_keys_ + full_values, tile);
        const std::uint32_t values =
            room_ + static_cast<std::uint32_t>(Room::values_at + stage(tile) * Room::value_bytes);
        warpgroup_begin();
#pragma unroll
        for (int step = 0; step < Tile / 16; ++step) {
#pragma unroll
            for (int i = 0; i < instructions; ++i) {
                warpgroup_bf16_turned(output_[i], weights[step],
                                      columns_at(values + static_cast<std::uint32_t>(i * 2 * Tile * 128), Tile * 128) +
                                          static_cast<std::uint64_t>(step * (16 * 128 >> 4)),
                                      true);
            }
        }
        warpgroup_commit();
    }

    /// Keys that are too old do not count: apart from those that are too new, because few tiles have any.
    __device__ void drop_aged(int tile, float (&scores)[Tile / 2], int window) const {
        const int key = tile * Tile + 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
        for (int j = 0; j < Tile / 2; ++j) {
            if (key + j / 4 * 8 + j % 2 <= position_ + j % 4 / 2 * 8 - window) scores[j] = nothing;
        }
    }

    /// Scores of a tile become weights relative to the highest so far; `factor`: what sums before it are worth then.
    __device__ void weigh(int tile, float (&scores)[Tile / 2], float to_exponent, float (&factor)[2]) {
        const int key = tile * Tile + 2 * (static_cast<int>(threadIdx.x) % 4);
        const bool masked = tile * Tile + Tile > position_ - static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float best = nothing;
#pragma unroll
            for (int i = 2 * half; i < Tile / 2; i += 4) {
#pragma unroll
                for (int j = i; j < i + 2; ++j) {
                    if (masked && key + i / 4 * 8 + j % 2 > position_ + 8 * half) scores[j] = nothing;
                    best = fmaxf(best, scores[j]);
                }
            }
            best = fmaxf(best, __shfl_xor_sync(~0u, best, 1));
            best = fmaxf(best, __shfl_xor_sync(~0u, best, 2));
            const float raised = fmaxf(highest_[half], best);
            factor[half] = power((highest_[half] - raised) * to_exponent);
            highest_[half] = raised;
            total_[half] *= factor[half];
            const float offset = -raised * to_exponent;
#pragma unroll
            for (int i = 2 * half; i < Tile / 2; i += 4) {
#pragma unroll
                for (int j = i; j < i + 2; ++j) {
                    scores[j] = power(fmaf(scores[j], to_exponent, offset));
                    total_[half] += scores[j];
                }
            }
        }
    }

    __device__ static void pack(const float (&scores)[Tile / 2], std::uint32_t (&weights)[Tile / 16][4]) {
#pragma unroll
        for (int step = 0; step < Tile / 16; ++step) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const __nv_bfloat162 pair =
                    __floats2bfloat162_rn(scores[8 * step + 2 * i], scores[8 * step + 2 * i + 1]);
                weights[step][i] = reinterpret_cast<const std::uint32_t&>(pair);
            }
        }
    }

    std::uint32_t room_;
    std::uint32_t queries_;
    std::uint32_t full_keys_;
    int position_;                         // of the lane's first query
    float highest_[2] = {unseen, unseen};  // score, before it is scaled
    float total_[2] = {};                  // of this lane's weights
    float output_[instructions][value_sums];
};

#endif

template <int Keys, int Values, int Tile>
__global__ __launch_bounds__(PrefillRoom<Keys, Values, Tile>::threads,
                             1) void group_prefill_kernel(const __grid_constant__ Attention a, int together) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    using Room = PrefillRoom<Keys, Values, Tile>;
    using Group = PrefillGroup<Keys, Values, Tile>;
    extern __shared__ __align__(1024) float shared[];
    const std::uint32_t room = shared_address(shared);
    const std::uint32_t barriers = room + Room::barriers_at;
    const int group = warpgroup_index();
    const int past = a.context - a.tokens;
    const PrefillTurn turn = prefill_turn(a, static_cast<int>(blockIdx.x), together, Room::queries, Tile);
    if (threadIdx.x < 2 * Room::stages) {
        barrier_make(barriers + threadIdx.x * 8, 1);
        barrier_make(barriers + Group::empty_keys + threadIdx.x * 8, 4 * Room::groups);  // multiplying warps
        barriers_ready();
    }
    __syncthreads();
    let_next_start();
    wait_for_previous();
    if (group == Room::groups) {
        fewer_registers<Room::copying>();
        if (threadIdx.x / 32 != Room::groups * 4) return;
        for (int tile = 0; tile < turn.tiles; ++tile) {
            const auto stage = static_cast<std::uint32_t>(tile % Room::stages);
            const auto fetch = [&](const CUtensorMap& map, int chunks, std::uint32_t to, std::uint32_t full,
                                   std::uint32_t empty) {
                const auto bytes = static_cast<std::uint32_t>(chunks * Tile * 128);
                if (tile >= Room::stages) {
                    barrier_wait(empty + stage * 8, static_cast<std::uint32_t>((tile / Room::stages - 1) % 2));
                }
                if (!elected()) return;
                barrier_expect(full + stage * 8, bytes);
                for (int chunk = 0; chunk < chunks; ++chunk) {
                    entry_copy(to + stage * bytes + static_cast<std::uint32_t>(chunk * Tile * 128), map, chunk * 64,
                               turn.begin + tile * Tile, turn.kv_head, full + stage * 8);
                }
            };
            fetch(a.key_tiles, Room::key_chunks, room, barriers, barriers + Group::empty_keys);
            fetch(a.value_tiles, Room::value_chunks, room + Room::values_at, barriers + Group::full_values,
                  barriers + Group::empty_values);
        }
        return;
    }
    more_registers<Room::multiplying>();
    // A group's own queries.
    constexpr int pieces = Keys / 8;  // of 16 bytes in a query
    const auto* queries =
        static_cast<const std::uint8_t*>(a.queries) +
        (static_cast<std::size_t>(turn.sequence * a.tokens + turn.first) * static_cast<std::size_t>(a.query_stride) +
         static_cast<std::size_t>(turn.head) * Keys) *
            2;
    for (int i = static_cast<int>(threadIdx.x) % 128; i < 64 * pieces; i += 128) {
        const int row = 64 * group + i / pieces;
        const int piece = i % pieces;
        const bool there = turn.first + row < a.tokens;
        copy_piece(room + static_cast<std::uint32_t>(Room::queries_at + (piece / 8 * Room::queries + row) * 128 +
                                                     (piece % 8 ^ row % 8) * 16),
                   queries + (there ? static_cast<std::size_t>(row) * static_cast<std::size_t>(a.query_stride) * 2 +
                                          static_cast<std::size_t>(piece) * 16
                                    : 0),
                   there);
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    shared_settled();
    warpgroup_meets(group);
    Group state(room, group, past - turn.begin + turn.first + 64 * group);
    const float sink = sink_of(a, turn.head);  // now: at the end nothing would hide that it has to come
    const float to_exponent = log2_e * a.key_scale * rsqrtf(static_cast<float>(Keys));
    state.take_all(turn.tiles, turn.aged, a.window, to_exponent);
    state.write(static_cast<__nv_bfloat16*>(a.output) + static_cast<std::size_t>(turn.sequence) *
                                                            static_cast<std::size_t>(a.tokens) *
                                                            static_cast<std::size_t>(a.query_heads) * Values,
                a.query_heads, turn.head, past - turn.begin, a.tokens, sink, to_exponent);
#endif
}

}  // namespace roofline::cuda::kernels
