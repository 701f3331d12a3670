// Decode attention by a block whose warps work as a team, for heads so wide that the sums of a whole group do not fit
// one warp's registers, or barely. A unit of keys is weighed by warps that divide the keys (and with an fp8 cache the
// heads), the weights pass through shared memory, and then each warp adds up its 32 dimensions of all the unit's values
// for all heads. So a lane keeps 16 sums where that of a warp on its own keeps 128, queries are brought into shape once
// a block, and a block has one result, not one a warp to be joined. It costs two barriers a unit: all warps wait for
// the slowest.
//
// Operands and orders are those of attention_warp.cuh and attention_fp8.cuh.
#pragma once

#include <algorithm>

#include "roofline/bench/cuda/attention_fp8.cuh"
#include "roofline/bench/cuda/attention_meeting.cuh"
#include "roofline/bench/cuda/attention_warp.cuh"
#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/digits.cuh"

namespace roofline::cuda::kernels {

#if __CUDA_ARCH__ >= 900

template <int Words>
__device__ inline void write_words(std::uint32_t to, const std::uint32_t (&words)[Words]) {
    static_assert(Words == 2 || Words == 4);
    if constexpr (Words == 4) {
        shared_write(to, {words[0], words[1], words[2], words[3]});
    } else {
        asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(to), "r"(words[0]), "r"(words[1]) : "memory");
    }
}

template <int Words>
__device__ inline void read_words(std::uint32_t from, std::uint32_t (&words)[Words]) {
    static_assert(Words == 1 || Words == 2 || Words == 4);
    if constexpr (Words == 4) {
        const uint4 four = shared_read(from);
        words[0] = four.x, words[1] = four.y, words[2] = four.z, words[3] = four.w;
    } else if constexpr (Words == 2) {
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "r"(from));
    } else {
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(words[0]) : "r"(from));
    }
}

#endif

/// What differs between formats of the cache. Tiles: of 8 query heads. Steps: groups of 8 keys that a warp weighs of a
/// unit. `held`: heads that a lane has scores of. `weight_words`: a lane's weights of these keys, for a tile, as they
/// are passed on.
template <class Cache, int Dimension, int Tiles, int Steps>
struct TeamWarp;

/// Scores of one tile, those of heads 2c and 2c+1 with the quad's key of each eight (c: the lane's corner of its quad).
template <int Dimension, int Tiles, int Steps>
struct TeamWarp<Fp8Cache, Dimension, Tiles, Steps> {
    static constexpr int warps = Dimension / 32;
    static constexpr int slices = warps / Tiles;  // of a unit's keys
    static constexpr int row_bytes = Dimension;
    static constexpr int held = 2;
    static constexpr int weight_words = Steps;
    static constexpr int query_gap = 16;  // bytes between two heads, so that lanes find different banks
    static constexpr int key_loads = row_bytes / 64;
    using Order = TileOrder<row_bytes>;
    static_assert(Steps % 2 == 0);

#if __CUDA_ARCH__ >= 900
    int quad = static_cast<int>(threadIdx.x) % 32 / 4;
    int corner = static_cast<int>(threadIdx.x) % 4;
    int tile = static_cast<int>(threadIdx.x) / 32 % Tiles;
    int slice = static_cast<int>(threadIdx.x) / 32 / Tiles;
    std::uint32_t query[key_loads][8];
    float exponents[held];
    float scores[Steps][held];

    __device__ int head(int index) const { return 8 * tile + 2 * corner + index; }
    __device__ bool speaks() const { return quad == 0; }  // for the lanes that have scores of the same heads
    static constexpr int lanes_apart = 4;                 // and how far from each other they are
    static constexpr int lanes_end = 32;

    /// Eight values of a query on their way to shared memory; `power` is that of the head's largest.
    __device__ static uint4 shaped(const uint4& eight, int power) { return halve_eight(eight, power); }
    __device__ static float unit_of_query(int power) { return power_of_two(power); }

    template <int Pitch>
    __device__ void begin(std::uint32_t queries, const float* units, float to_exponent) {
#pragma unroll
        for (int i = 0; i < key_loads; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const uint4 eight = shared_read(
                    queries + static_cast<std::uint32_t>((8 * tile + quad) * Pitch + 128 * i + 32 * corner + 16 * j));
#pragma unroll
                for (int k = 0; k < 4; ++k) query[i][4 * j + k] = word(eight, k);
            }
        }
#pragma unroll
        for (int i = 0; i < held; ++i) exponents[i] = to_exponent * units[head(i)];
    }

    __device__ void score(std::uint32_t keys) {
        const std::uint32_t first =
            keys + static_cast<std::uint32_t>(Order::place(Order::row(quad), corner) + slice * 8 * Steps * row_bytes);
        // A chain of sums would wait for itself: there are two for each 16 keys, and all go on in turns.
        float sums[Steps][4] = {};
#pragma unroll
        for (int i = 0; i < key_loads; ++i) {
#pragma unroll
            for (int step = 0; step < Steps; step += 2) {
                const uint4 upper = row_piece(first, i, 8 * step * row_bytes);
                const uint4 lower = row_piece(first, i, 8 * (step + 1) * row_bytes);
#pragma unroll
                for (int j = 0; j < 8; j += 2) {
                    mma_fp16(sums[step + j / 2 % 2], fp16_pair(word(upper, j / 2), 0), fp16_pair(word(lower, j / 2), 0),
                             fp16_pair(word(upper, j / 2), 1), fp16_pair(word(lower, j / 2), 1), query[i][j],
                             query[i][j + 1]);
                }
            }
        }
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
#pragma unroll
            for (int i = 0; i < held; ++i) {
                scores[step][i] = sums[step / 2 * 2][step % 2 * 2 + i] + sums[step / 2 * 2 + 1][step % 2 * 2 + i];
            }
        }
    }

    /// Scores of keys from `inside` on do not count.
    __device__ void mask(int inside) {
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
            if (8 * (slice * Steps + step) + Order::row(quad) < inside) continue;
            scores[step][0] = scores[step][1] = __int_as_float(0xFF800000);
        }
    }

    /// The highest of a head's scores that this lane has, as an exponent.
    __device__ float best(int index) const {
        float highest = nothing;
#pragma unroll
        for (int step = 0; step < Steps; ++step) highest = fmaxf(highest, scores[step][index]);
        return highest * exponents[index];
    }

    /// Weights relative to `highest`, for all warps to read, and added to `total`. `to`: of this lane's first tile and
    /// slice.
    __device__ void pass_on(std::uint32_t to, const float (&highest)[held], float (&total)[held]) const {
        std::uint32_t pairs[Steps];
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
            float weights[held];
#pragma unroll
            for (int i = 0; i < held; ++i) {
                weights[i] = power(fmaf(scores[step][i], exponents[i], -highest[i]));
                total[i] += weights[i];
            }
            pairs[step] = turned(fp16_pair(weights[0], weights[1]));
        }
        write_words(to + static_cast<std::uint32_t>((slice * Tiles + tile) * 128 * weight_words), pairs);
    }

    /// Adds the values of a slice for 32 dimensions: `values`, of the lane's two keys in the first eight.
    __device__ static void add(float (&output)[2][Tiles][4], const std::uint32_t (&values)[2],
                               const std::uint32_t (&weights)[Tiles][weight_words]) {
#pragma unroll
        for (int step = 0; step < Steps; step += 2) {
            std::uint32_t four[2][2][1];  // dimensions, of two keys in each eight
#pragma unroll
            for (int i = 0; i < 2; ++i) {
#pragma unroll
                for (int key = 0; key < 2; ++key) {
                    read_words(values[key] + static_cast<std::uint32_t>(8 * (step + i) * row_bytes), four[i][key]);
                }
            }
#pragma unroll
            for (int m = 0; m < 2; ++m) {
                // Bytes 2m and 2m+1 of both keys, dimension by dimension.
                const int bytes = m == 0 ? 0x5140 : 0x7362;
                const std::uint32_t upper = __byte_perm(four[0][0][0], four[0][1][0], bytes);
                const std::uint32_t lower = __byte_perm(four[1][0][0], four[1][1][0], bytes);
#pragma unroll
                for (int t = 0; t < Tiles; ++t) {
                    mma_fp16(output[m][t], fp16_pair(upper, 0), fp16_pair(upper, 1), fp16_pair(lower, 0),
                             fp16_pair(lower, 1), weights[t][step], weights[t][step + 1]);
                }
            }
        }
    }
#endif
};

/// Scores of all tiles, of each those of the quad's head with keys 2c and 2c+1 of each eight.
template <int Dimension, int Tiles, int Steps>
struct TeamWarp<Bf16, Dimension, Tiles, Steps> {
    static constexpr int warps = Dimension / 32;
    static constexpr int slices = warps;
    static constexpr int row_bytes = 2 * Dimension;
    static constexpr int held = Tiles;
    static constexpr int weight_words = 2 * Steps;
    static constexpr int query_gap = 64;
    static constexpr int key_loads = row_bytes / 64;
    using Order = TileOrder<row_bytes>;

#if __CUDA_ARCH__ >= 900
    int quad = static_cast<int>(threadIdx.x) % 32 / 4;
    int corner = static_cast<int>(threadIdx.x) % 4;
    int slice = static_cast<int>(threadIdx.x) / 32;
    std::uint32_t query[Tiles][key_loads][4];
    float to_exponent;
    float scores[Tiles][Steps][2];

    __device__ int head(int index) const { return 8 * index + quad; }
    __device__ bool speaks() const { return corner == 0; }
    static constexpr int lanes_apart = 1;
    static constexpr int lanes_end = 4;

    __device__ static uint4 shaped(const uint4& eight, int) { return eight; }
    __device__ static float unit_of_query(int) { return 1.0f; }

    template <int Pitch>
    __device__ void begin(std::uint32_t queries, const float*, float exponent) {
#pragma unroll
        for (int t = 0; t < Tiles; ++t) {
#pragma unroll
            for (int i = 0; i < key_loads; ++i) {
                Bf16::unpack(
                    shared_read(queries + static_cast<std::uint32_t>((8 * t + quad) * Pitch + 64 * i + 16 * corner)),
                    query[t][i]);
            }
        }
        to_exponent = exponent;
    }

    __device__ void score(std::uint32_t keys) {
        const std::uint32_t first =
            keys + static_cast<std::uint32_t>(Order::place(Order::row(quad), corner) + slice * 8 * Steps * row_bytes);
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
            float sums[4][4] = {};  // chains of sums that do not wait for each other
#pragma unroll
            for (int i = 0; i < key_loads; ++i) {
                std::uint32_t pairs[4];
                Bf16::unpack(row_piece(first, i, 8 * step * row_bytes), pairs);
#pragma unroll
                for (int j = 0; j < 4; j += 2) {
                    mma_bf16(sums[i % 2 * 2 + j / 2], query[0][i][j], Tiles > 1 ? query[Tiles - 1][i][j] : 0u,
                             query[0][i][j + 1], Tiles > 1 ? query[Tiles - 1][i][j + 1] : 0u, pairs[j], pairs[j + 1]);
                }
            }
#pragma unroll
            for (int t = 0; t < Tiles; ++t) {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int at = 2 * t + i;
                    scores[t][step][i] = (sums[0][at] + sums[1][at]) + (sums[2][at] + sums[3][at]);
                }
            }
        }
    }

    __device__ void mask(int inside) {
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                if (8 * (slice * Steps + step) + Order::row(2 * corner + i) < inside) continue;
#pragma unroll
                for (int t = 0; t < Tiles; ++t) scores[t][step][i] = __int_as_float(0xFF800000);
            }
        }
    }

    __device__ float best(int index) const {
        float highest = nothing;
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
            highest = fmaxf(highest, fmaxf(scores[index][step][0], scores[index][step][1]));
        }
        return highest * to_exponent;
    }

    __device__ void pass_on(std::uint32_t to, const float (&highest)[held], float (&total)[held]) const {
#pragma unroll
        for (int t = 0; t < Tiles; ++t) {
            std::uint32_t words[weight_words];
#pragma unroll
            for (int i = 0; i < weight_words; ++i) {
                const float weight = tf32(power(fmaf(scores[t][i / 2][i % 2], to_exponent, -highest[t])));
                total[t] += weight;
                words[i] = __float_as_uint(weight);
            }
            write_words(to + static_cast<std::uint32_t>((slice * Tiles + t) * 128 * weight_words), words);
        }
    }

    __device__ static void add(float (&output)[2][Tiles][4], const std::uint32_t (&values)[2],
                               const std::uint32_t (&weights)[Tiles][weight_words]) {
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
            std::uint32_t even[2];  // pairs of dimensions
            std::uint32_t odd[2];
            read_words(values[0] + static_cast<std::uint32_t>(8 * step * row_bytes), even);
            read_words(values[1] + static_cast<std::uint32_t>(8 * step * row_bytes), odd);
#pragma unroll
            for (int m = 0; m < 2; ++m) {
#pragma unroll
                for (int t = 0; t < Tiles; ++t) {
                    mma_tf32(output[m][t], even[m] << 16, even[m] & 0xFFFF0000u, odd[m] << 16, odd[m] & 0xFFFF0000u,
                             weights[t][2 * step], weights[t][2 * step + 1]);
                }
            }
        }
    }
#endif
};

/// Where things lie in shared memory. Stages: units on the way.
template <class Cache, int Dimension, int Tiles, int Steps, int Stages, bool Cluster>
struct Team {
    using Warp = TeamWarp<Cache, Dimension, Tiles, Steps>;
    static constexpr int threads = Warp::warps * 32;
    static constexpr int heads = 8 * Tiles;
    static constexpr int unit = Warp::slices * 8 * Steps;
    static constexpr int unit_bytes = unit * Warp::row_bytes;  // of keys alone
    static constexpr int query_pitch = 2 * Dimension + Warp::query_gap;
    static constexpr int weight_bytes = Warp::slices * Tiles * 128 * Warp::weight_words;

    static constexpr int weights = Stages * 2 * unit_bytes;
    // The queries lie where the weights will: they are in registers before there are any.
    static constexpr int meeting = weights + std::max(weight_bytes, heads* query_pitch);
    static constexpr int statistics = meeting + Meeting<threads, Dimension, Cluster>::bytes_for(heads);
    static constexpr int barriers = statistics + 2 * Warp::slices * heads * 4;
    static constexpr int turn = barriers + Stages * 8;
    static constexpr int bytes = turn + 4;
    static_assert(bytes <= 227 * 1024);
};

template <class Cache, int Dimension, int Tiles, int Steps, int Stages, bool Cluster>
__global__ __launch_bounds__(Dimension, 1) void team_decode_kernel(const __grid_constant__ Attention a) {
#if __CUDA_ARCH__ >= 900
    using Room = Team<Cache, Dimension, Tiles, Steps, Stages, Cluster>;
    using Warp = typename Room::Warp;
    using Order = typename Warp::Order;
    constexpr int unit = Room::unit;
    constexpr int slices = Warp::slices;
    extern __shared__ __align__(1024) float shared[];
    const std::uint32_t room = shared_address(shared);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int quad = lane / 4;
    const int corner = lane % 4;
    const bool fills = warp == 1;  // has the ring filled
    const int group = a.query_heads / a.kv_heads;
    const int begin = split_index() * a.split_keys;
    const int end = min(a.context, begin + a.split_keys);
    const int first_row = static_cast<int>(blockIdx.z) * a.capacity;
    const std::uint32_t full = room + Room::barriers;
    volatile float* our_turn = shared + Room::turn / 4;  // whether the kernel before has ended
    float* peaks = shared + Room::statistics / 4;        // [heads][slices]
    float* totals = peaks + slices * Room::heads;
    if constexpr (Cluster) cluster_arrive();
    if (threadIdx.x == 0) {
        for (int i = 0; i < Stages; ++i) barrier_make(full + i * 8, 1);
        barriers_ready();
        *our_turn = 0.0f;
    }
    __syncthreads();
    let_next_start();

    const std::uint64_t policy = read_once_policy();
    const auto fetch = [&](int first, int stage) {
        if (first >= end || !elected()) return;
        const std::uint32_t to = room + static_cast<std::uint32_t>(stage * 2 * Room::unit_bytes);
        const int line = (first_row + first) * Order::lines;
        barrier_expect(full + stage * 8, 2 * Room::unit_bytes);
        tile_copy(to, a.key_tiles, line, full + stage * 8, policy);
        tile_copy(to + Room::unit_bytes, a.value_tiles, line, full + stage * 8, policy);
    };
    const auto prefetch = [&](int first) {
        if (first >= end || !elected()) return;
        tile_prefetch(a.key_tiles, (first_row + first) * Order::lines);
        tile_prefetch(a.value_tiles, (first_row + first) * Order::lines);
    };
    // As in ring_decode_kernel: settled keys are asked for before our turn, one unit after the other, and the newest
    // one's unit comes as far as the L2.
    int asked = 0;
    for (int first = begin; fills && asked < Stages && first < end && first + unit < a.context; first += unit) {
        bool turn = false;
        while (asked > 0 && !turn && !barrier_passed(full + (asked - 1) * 8, 0)) turn = *our_turn != 0.0f;
        if (__any_sync(~0u, turn)) break;
        fetch(first, asked++);
    }
    if (const int next = begin + asked * unit; fills && asked < Stages && next + unit >= a.context) prefetch(next);
    wait_for_previous();
    if (threadIdx.x == 0) *our_turn = 1.0f;

    // The queries, each brought into shape once, by as many threads a head as there are.
    constexpr int threads_a_head = Room::threads / Room::heads;
    constexpr int loads = Dimension / 8 / threads_a_head;
    const int query_head = static_cast<int>(threadIdx.x) / threads_a_head;
    const int query_part = static_cast<int>(threadIdx.x) % threads_a_head;
    uint4 raw[loads] = {};
    if (query_head < group) {
        const int sequence = static_cast<int>(blockIdx.z) / a.kv_heads;
        const int kv_head = static_cast<int>(blockIdx.z) % a.kv_heads;
        const auto* source = reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(a.queries) +
                                                            static_cast<std::size_t>(sequence) * a.query_stride +
                                                            (kv_head * group + query_head) * Dimension);
#pragma unroll
        for (int i = 0; i < loads; ++i) raw[i] = source[query_part + i * threads_a_head];
    }
    if (fills) {  // behind the queries: before them they would come late
        for (; asked < Stages; ++asked) fetch(begin + asked * unit, asked);
        // Until the queries have come nothing makes room in the ring: memory goes on with a unit more.
        prefetch(begin + Stages * unit);
    }
    std::uint32_t largest = 0;
#pragma unroll
    for (int i = 0; i < loads; ++i) largest = max(largest, largest_size(raw[i]));
#pragma unroll
    for (int apart = 1; apart < threads_a_head; apart *= 2) {
        largest = max(largest, __shfl_xor_sync(~0u, largest, apart));
    }
    const int query_power = group_power(largest);
    const std::uint32_t weights = room + Room::weights;
#pragma unroll
    for (int i = 0; i < loads; ++i) {
        shared_write(weights + static_cast<std::uint32_t>(query_head * Room::query_pitch +
                                                          (query_part + i * threads_a_head) * 16),
                     Warp::shaped(raw[i], query_power));
    }
    if (query_part == 0) totals[query_head] = Warp::unit_of_query(query_power);
    __syncthreads();
    Warp own;
    own.template begin<Room::query_pitch>(weights, totals,
                                          log2_e * a.key_scale * rsqrtf(static_cast<float>(Dimension)));

    float highest[Warp::held];  // what the weights of a lane's heads are relative to
    float total[Warp::held];    // of this lane's weights alone
#pragma unroll
    for (int i = 0; i < Warp::held; ++i) highest[i] = nothing, total[i] = 0.0f;
    // Sums: of dimensions 4q to 4q+3 of the warp's 32 (q: the lane's quad), for heads 2c and 2c+1 of each tile.
    float output[2][Tiles][4] = {};
    float relative[Tiles][2];  // to what
#pragma unroll
    for (int t = 0; t < Tiles; ++t) relative[t][0] = relative[t][1] = nothing;
    const auto raised = [&](float before, int head) {
#pragma unroll
        for (int s = 0; s < slices; ++s) before = fmaxf(before, peaks[head * slices + s]);
        return before;
    };

    std::uint32_t value_place[2];
#pragma unroll
    for (int key = 0; key < 2; ++key) {
        const int at = (warp * 32 + quad * 4) * Warp::row_bytes / Dimension;  // in a row
        const int line = at / 128;
        value_place[key] = static_cast<std::uint32_t>(
            (Order::place(Order::row(2 * corner + key), at % 128 / 16) ^ line * 16) + line * 128 + at % 16);
    }
    int stage = 0;
    std::uint32_t parity = 0;
    for (int first = begin; first < end; first += unit) {
        const int inside = end - first;
        const std::uint32_t keys = room + static_cast<std::uint32_t>(stage * 2 * Room::unit_bytes);
        const std::uint32_t values = keys + Room::unit_bytes;
        barrier_wait(full + stage * 8, parity);
        own.score(keys);
        if (inside < unit) {
            own.mask(inside);
            // What lies behind the last value has a weight of zero, but may be no number.
            for (int i = inside * Warp::row_bytes + static_cast<int>(threadIdx.x) * 16; i < Room::unit_bytes;
                 i += Room::threads * 16) {
                shared_clear(values + static_cast<std::uint32_t>(i));
            }
        }
        float best[Warp::held];
        bool rises = false;
#pragma unroll
        for (int i = 0; i < Warp::held; ++i) {
            best[i] = own.best(i);
            rises |= best[i] > highest[i] + 8.0f;
        }
        // As in DecodeState: sums are brought to a higher score only where it has risen by 2^8.
        if (__syncthreads_or(rises)) {
#pragma unroll
            for (int i = 0; i < Warp::held; ++i) {
#pragma unroll
                for (int apart = Warp::lanes_apart; apart < Warp::lanes_end; apart *= 2) {
                    best[i] = fmaxf(best[i], __shfl_xor_sync(~0u, best[i], apart));
                }
                if (own.speaks()) peaks[own.head(i) * slices + own.slice] = best[i];
            }
            __syncthreads();
#pragma unroll
            for (int i = 0; i < Warp::held; ++i) {
                const float now = raised(highest[i], own.head(i));
                total[i] *= power(highest[i] - now);
                highest[i] = now;
            }
#pragma unroll
            for (int t = 0; t < Tiles; ++t) {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const float now = raised(relative[t][i], 8 * t + 2 * corner + i);
                    const float factor = power(relative[t][i] - now);
                    relative[t][i] = now;
#pragma unroll
                    for (int m = 0; m < 2; ++m) output[m][t][i] *= factor, output[m][t][i + 2] *= factor;
                }
            }
        }
        // All have come here, so all are done with the unit before.
        if (fills && first > begin) fetch(first + (Stages - 1) * unit, stage == 0 ? Stages - 1 : stage - 1);
        const std::uint32_t lane_weights = weights + static_cast<std::uint32_t>(lane * 4 * Warp::weight_words);
        own.pass_on(lane_weights, highest, total);
        __syncthreads();
#pragma unroll
        for (int s = 0; s < slices; ++s) {
            if (s * 8 * Steps >= inside) break;
            std::uint32_t words[Tiles][Warp::weight_words];
#pragma unroll
            for (int t = 0; t < Tiles; ++t) {
                read_words(lane_weights + static_cast<std::uint32_t>((s * Tiles + t) * 128 * Warp::weight_words),
                           words[t]);
            }
            const std::uint32_t slice_values = values + static_cast<std::uint32_t>(s * 8 * Steps * Warp::row_bytes);
            Warp::add(output, {slice_values + value_place[0], slice_values + value_place[1]}, words);
        }
        if (++stage == Stages) stage = 0, parity ^= 1;
    }

    __syncthreads();  // the units of the queries have been read
#pragma unroll
    for (int i = 0; i < Warp::held; ++i) {
#pragma unroll
        for (int apart = Warp::lanes_apart; apart < Warp::lanes_end; apart *= 2) {
            total[i] += __shfl_xor_sync(~0u, total[i], apart);
        }
        if (own.speaks()) totals[own.head(i) * slices + own.slice] = total[i];
    }
    __syncthreads();
    const Meeting<Room::threads, Dimension, Cluster> meeting(a, shared + Room::meeting / 4);
#pragma unroll
    for (int t = 0; t < Tiles; ++t) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int head = 8 * t + 2 * corner + i;
            if (head >= group) continue;
            float weight = 0.0f;
#pragma unroll
            for (int s = 0; s < slices; ++s) weight += totals[head * slices + s];
            meeting.bring(head * (Dimension / 4) + 8 * warp + quad,
                          {make_float4(output[0][t][i], output[0][t][i + 2], output[1][t][i], output[1][t][i + 2]),
                           relative[t][i], weight});
        }
    }
    meeting.end();
#endif
}

}  // namespace roofline::cuda::kernels
