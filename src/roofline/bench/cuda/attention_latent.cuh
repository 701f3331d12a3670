// Decode attention over latent entries, as DeepSeek's models keep them, on Hopper: 512 numbers and 64 more that are
// rotated; all of them are the key of every query head, the 512 also its value. So what is read once serves all heads
// twice, and the tensor cores have 2 x 1,088 FLOPs a head to do for its 1,152 bytes: with 16 heads 30 a byte, with 128
// more than the chip has to a byte of memory.
//
// Keys and dimensions are the rows of the multiplications, heads their columns: scores[key, head] = entries queries^T,
// and output[dimension, head] += values^T weights. Both read entries where the copy engine put them, the second by
// columns. An entry comes in chunks of 64 dimensions, 64 keys at a time, each into a slot of a ring of its own: it is
// multiplied when it has come, and gives its slot back when its dimensions of the output are done. A block has two warp
// groups. Where heads are few, memory is the limit: all heads are one group's, tiles of 64 keys go to the groups in
// turn, and these wait for each other at the end alone. Where they are many, the tensor cores are: then both groups
// take every tile, each for heads of its own, so that the next one can come meanwhile; and where a block cannot have
// all heads, several read the same entries, one from memory and the others, by then, from the L2.
#pragma once

#include <cuda_bf16.h>

#include "roofline/bench/cuda/attention_meeting.cuh"
#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/tiles.cuh"
#include "roofline/bench/cuda/warpgroup.cuh"

namespace roofline::cuda::kernels {

constexpr int latent_rank = 512;
constexpr int latent_rotary = 64;
constexpr int latent_width = latent_rank + latent_rotary;

/// Heads: of a warp group, 16 or 32, of which some may be none's. Shared: both groups take every tile.
template <int Heads, bool Shared, bool Cluster>
struct LatentRoom {
    static constexpr int groups = 2;                    // of warps that multiply
    static constexpr int threads = (groups + 1) * 128;  // and one that copies
    // A thread's registers: 65,536 are there for all.
    static constexpr int copying = 24;
    static constexpr int multiplying = 240;
    static constexpr int together = 168;
    static constexpr int block_heads = Shared ? groups * Heads : Heads;
    static constexpr int takers = Shared ? groups : 1;  // of a tile
    static constexpr int keys = 64;                     // of a tile
    static constexpr int chunks = latent_width / 64;
    static constexpr int values = latent_rank / 64;  // chunks of a value
    static constexpr int slot_bytes = keys * 128;
    static constexpr int query_bytes = chunks * Heads * 128;  // of a warp group's heads
    static constexpr int weight_bytes = Heads * 128;          // of a warp group: keys of a head lie in a line
    static constexpr int peaks = 5 * Heads;        // floats, of a warp group: its warps' highest scores, and its own
    static constexpr int most_bytes = 226 * 1024;  // the meeting has some of its own
    using Join = Meeting<threads, latent_rank, Cluster>;
    static constexpr int join_bytes = (Join::bytes_for(block_heads) + 15) / 16 * 16;
    static constexpr int others = takers * query_bytes + groups * (weight_bytes + peaks * 4) + join_bytes;
    static constexpr int slots = (most_bytes - others) / (slot_bytes + 16);
    // What lies where.
    static constexpr int queries_at = slots * slot_bytes;
    static constexpr int weights_at = queries_at + takers * query_bytes;
    static constexpr int join_at = weights_at + groups * weight_bytes;
    static constexpr int peaks_at = join_at + join_bytes;
    static constexpr int full_at = peaks_at + groups * peaks * 4;
    static constexpr int empty_at = full_at + slots * 8;
    static constexpr int bytes = empty_at + slots * 8;
    // At the end each warp group leaves its sums where the ring was, and the queries.
    static constexpr int pitch = latent_rank + 4;  // floats, so that lanes write to banks of their own
    static constexpr int known_at = groups * Heads * pitch * 4;
    static_assert(known_at + groups * Heads * 8 <= join_at);
    static_assert(slots > chunks && bytes <= most_bytes);
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// What a warp group knows of the keys it has seen.
template <int Heads, bool Shared, bool Cluster>
class LatentGroup {
    using Room = LatentRoom<Heads, Shared, Cluster>;
    static constexpr int eights = Heads / 8;

  public:
    __device__ LatentGroup(std::uint32_t room, float* shared, int group)
        : ring_(room),
          queries_(room + static_cast<std::uint32_t>(Room::queries_at + (Shared ? group * Room::query_bytes : 0))),
          weights_(room + Room::weights_at + static_cast<std::uint32_t>(group * Room::weight_bytes)),
          full_(room + Room::full_at),
          empty_(room + Room::empty_at),
          peaks_(shared + Room::peaks_at / 4 + group * Room::peaks),
          group_(group),
          warp_(static_cast<int>(threadIdx.x) / 32 % 4),
          lane_(static_cast<int>(threadIdx.x) % 32) {
#pragma unroll
        for (int i = 0; i < eights; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) highest_[i][j] = nothing, total_[i][j] = 0.0f;
        }
#pragma unroll
        for (int i = 0; i < Room::values; ++i) {
#pragma unroll
            for (int j = 0; j < Heads / 2; ++j) output_[i][j] = 0.0f;
        }
    }

    /// The tile `number`, of which `inside` keys count.
    __device__ void take(int number, int inside, float to_exponent) {
        const int first = number * Room::chunks;
        float scores[Heads / 2];
        find_scores(first, scores);
        release(first);  // the rotated part is no value
        weigh(scores, inside, to_exponent);
        warpgroup_begin();
#pragma unroll
        for (int i = 0; i < Room::values; ++i) {
#pragma unroll
            for (int step = 0; step < Room::keys / 16; ++step) {
                warpgroup_bf16_turned(
                    output_[i], operand_at(slot(first + 1 + i)) + static_cast<std::uint64_t>(step * (16 * 128 >> 4)),
                    operand_at(weights_) + static_cast<std::uint64_t>(step * 2), true);
            }
            warpgroup_commit();
        }
        release_values<0>(first + 1);
#pragma unroll
        for (int i = 0; i < Room::values; ++i) sums_settled(output_[i]);
    }

    /// Leaves what it knows in shared memory, where ring and queries were. Where groups had keys of the same heads, all
    /// is relative to the highest score of both, so that it only has to be added up.
    __device__ void leave(float* shared) {
        auto* known = reinterpret_cast<float2*>(shared + Room::known_at / 4);
        const float* others = peaks_ + (Shared ? 0 : group_ == 0 ? Room::peaks : -Room::peaks);
#pragma unroll
        for (int i = 0; i < eights; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                // Weights of a head are spread over eight lanes of each warp.
                float total = total_[i][j];
#pragma unroll
                for (int apart = 4; apart < 32; apart *= 2) total += __shfl_xor_sync(~0u, total, apart);
                if (lane_ < 4) peaks_[warp_ * Heads + head(i, j)] = total;
                if (lane_ < 4 && warp_ == 0) peaks_[4 * Heads + head(i, j)] = highest_[i][j];
            }
        }
        asm volatile("bar.sync 3, %0;" ::"n"(Room::groups * 128) : "memory");  // ring and queries are free too
        float* own = shared + group_ * Heads * Room::pitch;
#pragma unroll
        for (int i = 0; i < eights; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float peak = fmaxf(highest_[i][j], others[4 * Heads + head(i, j)]);
                const float factor = power(highest_[i][j] - peak);
                if (warp_ == 0 && lane_ < 4) {
                    float total = 0.0f;
#pragma unroll
                    for (int warp = 0; warp < 4; ++warp) total += peaks_[warp * Heads + head(i, j)];
                    known[group_ * Heads + head(i, j)] = make_float2(peak, factor * total);
                }
#pragma unroll
                for (int of = 0; of < Room::values; ++of) {
                    float* to = own + head(i, j) * Room::pitch + 64 * of + 16 * warp_ + lane_ / 4;
                    to[0] = factor * output_[of][4 * i + j];
                    to[8] = factor * output_[of][4 * i + 2 + j];
                }
            }
        }
    }

  private:
    __device__ int head(int eight, int which) const { return 8 * eight + 2 * (lane_ % 4) + which; }
    __device__ std::uint32_t slot(int chunk) const {
        return ring_ + static_cast<std::uint32_t>(chunk % Room::slots * Room::slot_bytes);
    }
    __device__ void release(int chunk) const {
        if (lane_ == 0) barrier_arrive(empty_ + static_cast<std::uint32_t>(chunk % Room::slots * 8));
    }
    template <int done>
    __device__ void release_values(int first) const {
        if constexpr (done < Room::values) {
            warpgroup_wait<Room::values - 1 - done>();
            release(first + done);
            release_values<done + 1>(first);
        }
    }

    /// Chunks are multiplied as they come: the rotated one, then the others.
    __device__ void find_scores(int first, float (&scores)[Heads / 2]) const {
#pragma unroll
        for (int i = 0; i < Room::chunks; ++i) {
            const int chunk = first + i;
            barrier_wait(full_ + static_cast<std::uint32_t>(chunk % Room::slots * 8),
                         static_cast<std::uint32_t>((chunk / Room::slots) & 1));
            const std::uint64_t keys = operand_at(slot(chunk));
            const std::uint64_t queries =
                operand_at(queries_ + static_cast<std::uint32_t>((i == 0 ? Room::values : i - 1) * Heads * 128));
            warpgroup_begin();
#pragma unroll
            for (int step = 0; step < 4; ++step) {
                warpgroup_bf16(scores, keys + static_cast<std::uint64_t>(2 * step),
                               queries + static_cast<std::uint64_t>(2 * step), i + step > 0);
            }
            warpgroup_commit();
        }
        warpgroup_wait<0>();
        sums_settled(scores);
    }

    /// Scores become weights relative to the highest so far, which the output follows, and lie ready for the tensor
    /// cores.
    __device__ void weigh(float (&scores)[Heads / 2], int inside, float to_exponent) {
        const int row = 16 * warp_ + lane_ / 4;
#pragma unroll
        for (int j = 0; j < Heads / 2; ++j) {
            scores[j] *= to_exponent;
            if (row + (j % 4 >= 2 ? 8 : 0) >= inside) scores[j] = nothing;
        }
#pragma unroll
        for (int i = 0; i < eights; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                float best = fmaxf(scores[4 * i + j], scores[4 * i + 2 + j]);
#pragma unroll
                for (int apart = 4; apart < 32; apart *= 2) best = fmaxf(best, __shfl_xor_sync(~0u, best, apart));
                if (lane_ < 4) peaks_[warp_ * Heads + head(i, j)] = best;
            }
        }
        warpgroup_meets(group_);
#pragma unroll
        for (int i = 0; i < eights; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                float raised = highest_[i][j];
#pragma unroll
                for (int warp = 0; warp < 4; ++warp) raised = fmaxf(raised, peaks_[warp * Heads + head(i, j)]);
                const float factor = power(highest_[i][j] - raised);
                highest_[i][j] = raised;
                total_[i][j] *= factor;
#pragma unroll
                for (int of = 0; of < Room::values; ++of) {
                    output_[of][4 * i + j] *= factor;
                    output_[of][4 * i + 2 + j] *= factor;
                }
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const float weight = power(scores[4 * i + 2 * half + j] - raised);
                    total_[i][j] += weight;
                    write_weight(head(i, j), row + 8 * half, weight);
                }
            }
        }
        shared_settled();
        warpgroup_meets(group_);
    }

    __device__ void write_weight(int line, int key, float weight) const {
        const std::uint32_t to =
            weights_ + static_cast<std::uint32_t>(line * 128 + (key / 8 ^ line % 8) * 16 + key % 8 * 2);
        const __nv_bfloat16 narrow = __float2bfloat16_rn(weight);
        asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(reinterpret_cast<const std::uint16_t&>(narrow))
                     : "memory");
    }

    std::uint32_t ring_;
    std::uint32_t queries_;
    std::uint32_t weights_;
    std::uint32_t full_;
    std::uint32_t empty_;
    float* peaks_;
    int group_;
    int warp_;
    int lane_;
    float highest_[eights][2];
    float total_[eights][2];  // of this lane's keys
    float output_[Room::values][Heads / 2];
};

#endif

template <int Heads, bool Shared, bool Cluster>
__global__ __launch_bounds__(LatentRoom<Heads, Shared, Cluster>::threads,
                             1) void latent_decode_kernel(const __grid_constant__ Attention a) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    using Room = LatentRoom<Heads, Shared, Cluster>;
    extern __shared__ __align__(1024) float shared[];
    const std::uint32_t room = shared_address(shared);
    const std::uint32_t full = room + Room::full_at;
    const std::uint32_t empty = room + Room::empty_at;
    const int group = warpgroup_index();
    const int heads = a.query_heads / a.kv_heads;  // of this block
    const int sequence = static_cast<int>(blockIdx.z) / a.kv_heads;
    const int begin = split_index() * a.split_keys;
    const int end = min(a.context, begin + a.split_keys);
    const int tiles = begin < end ? (end - begin + Room::keys - 1) / Room::keys : 0;
    if constexpr (Cluster) cluster_arrive();
    if (threadIdx.x < Room::slots) {
        barrier_make(full + threadIdx.x * 8, 1);
        barrier_make(empty + threadIdx.x * 8, 4 * Room::takers);  // warps that have the tile
        barriers_ready();
    }
    __syncthreads();
    let_next_start();
    if (group == Room::groups) {
        fewer_registers<Room::copying>();
        const auto fetch = [&](int chunk) {
            const int of = chunk % Room::chunks;
            const std::uint32_t barrier = full + static_cast<std::uint32_t>(chunk % Room::slots * 8);
            if (!elected()) return;
            barrier_expect(barrier, Room::slot_bytes);
            entry_copy(room + static_cast<std::uint32_t>(chunk % Room::slots * Room::slot_bytes), a.key_tiles,
                       of == 0 ? latent_rank : (of - 1) * 64, begin + chunk / Room::chunks * Room::keys, sequence,
                       barrier);
        };
        // The kernel before may write the newest entry, and no other: those before it need not wait.
        const int settled = (min(end, a.context - 1) - begin) / Room::keys * Room::chunks;
        const int all = tiles * Room::chunks;
        int chunk = 0;
        const bool copies = threadIdx.x / 32 == Room::groups * 4;
        for (; copies && chunk < min(Room::slots, settled); ++chunk) fetch(chunk);
        wait_for_previous();
        for (; copies && chunk < all; ++chunk) {
            if (chunk >= Room::slots) {
                barrier_wait(empty + static_cast<std::uint32_t>(chunk % Room::slots * 8),
                             static_cast<std::uint32_t>((chunk / Room::slots - 1) & 1));
            }
            fetch(chunk);
        }
        more_registers<Room::together>();  // when the others have given them back
    } else {
        more_registers<Room::multiplying>();
        wait_for_previous();
        const auto* queries = static_cast<const std::uint8_t*>(a.queries) +
                              (static_cast<std::size_t>(sequence) * static_cast<std::size_t>(a.query_stride) +
                               static_cast<std::size_t>(blockIdx.z % a.kv_heads * heads) * latent_width) *
                                  2;
        constexpr int pieces = latent_width / 8;  // of 16 bytes in a query
        for (int i = static_cast<int>(threadIdx.x); i < Room::block_heads * pieces; i += Room::groups * 128) {
            const int head = i / pieces;
            const int piece = i % pieces;
            const int line = (head / Heads * Room::chunks + piece / 8) * Heads + head % Heads;
            copy_piece(room + static_cast<std::uint32_t>(Room::queries_at + line * 128 + (piece % 8 ^ head % 8) * 16),
                       queries + static_cast<std::size_t>(head < heads ? i : 0) * 16, head < heads);
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        shared_settled();
        asm volatile("bar.sync 3, %0;" ::"n"(Room::groups * 128) : "memory");
        LatentGroup<Heads, Shared, Cluster> state(room, shared, group);
        const float to_exponent = log2_e * a.key_scale * rsqrtf(static_cast<float>(latent_width));
        for (int tile = Shared ? 0 : group; tile < tiles; tile += Shared ? 1 : Room::groups) {
            state.take(tile, end - begin - tile * Room::keys, to_exponent);
        }
        state.leave(shared);
        fewer_registers<Room::together>();
    }
    __syncthreads();
    const typename Room::Join join(a, shared + Room::join_at / 4);
    const auto* known = reinterpret_cast<const float2*>(shared + Room::known_at / 4);
    constexpr int fours = latent_rank / 4;
#pragma unroll
    for (int i = 0; i < (Room::block_heads * fours + Room::threads - 1) / Room::threads; ++i) {
        const int four = static_cast<int>(threadIdx.x) + i * Room::threads;
        if (four >= heads * fours) break;
        const int head = four / fours;
        const float* from = shared + head * Room::pitch + four % fours * 4;
        Sum one{*reinterpret_cast<const float4*>(from), known[head].x, known[head].y};
        if constexpr (!Shared) {
            const float4 other = *reinterpret_cast<const float4*>(from + Heads * Room::pitch);
            one.sum = make_float4(one.sum.x + other.x, one.sum.y + other.y, one.sum.z + other.z, one.sum.w + other.w);
            one.weight += known[Heads + head].y;
        }
        join.bring(four, one);
    }
    join.end();
#endif
}

}  // namespace roofline::cuda::kernels
