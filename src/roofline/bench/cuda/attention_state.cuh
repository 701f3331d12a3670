// What a warp of decode attention keeps from key to key: for each query head of its group the highest score, the sum of
// the weights, and their sum of values; how scores become weights; and how the results of warps and splits are put
// together.
#pragma once

#include <algorithm>
#include <cuda_bf16.h>

#include "roofline/bench/cuda/attention.cuh"
#include "roofline/bench/cuda/cluster.cuh"
#include "roofline/bench/cuda/tiles.cuh"

namespace roofline::cuda::kernels {

constexpr int most_splits = 96;
constexpr int most_in_cluster = 8;  // blocks, on any device that has clusters

constexpr float log2_e = 1.4426950408889634f;
constexpr float nothing = -1e30f;  // a score that is no key's: finite, so that differences of two are numbers

/// Heads: tiles of 8 query heads. Dimension: of a head. Cache: says how many values a lane takes of 16 bytes, which of
/// them an output belongs to, and whether keys or heads are the rows of the scores. A lane has two scores of each eight
/// keys: where heads are rows, those of its quad's head with the keys of columns 2c and 2c+1 (c: its corner of the
/// quad); where keys are rows, those of heads 2c and 2c+1 with its quad's key.
template <class Cache, int Dimension, int Heads>
struct DecodeState {
    static constexpr int row_bytes = Dimension * 16 / Cache::values;
    static constexpr int key_loads = Dimension / (4 * Cache::values);    // of a key, by a lane of its quad
    static constexpr int value_loads = Dimension / (8 * Cache::values);  // of a value, by each of 8 lanes
    static_assert(value_loads > 0);
    using Order = TileOrder<row_bytes>;  // of keys and values among lanes, however they are read

    static constexpr int held = Cache::keys_are_rows ? 2 : 1;  // heads of a tile that a lane has scores of

    float highest[Heads][held];  // what the sums are relative to
    float total[Heads][held];    // of this lane's weights alone
    float output[Heads][value_loads * Cache::words][4];

    __device__ void clear() {
#pragma unroll
        for (int tile = 0; tile < Heads; ++tile) {
#pragma unroll
            for (int i = 0; i < held; ++i) highest[tile][i] = nothing, total[tile][i] = 0.0f;
#pragma unroll
            for (int i = 0; i < value_loads * Cache::words; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) output[tile][i][j] = 0.0f;
            }
        }
    }

    /// Scores of 8 Steps keys, of which `inside` count, become weights relative to `highest`.
    template <int Steps>
    __device__ void weigh(float (&scores)[Steps][2], int tile, int inside, const float (&to_exponent)[held]) {
        const int corner = static_cast<int>(threadIdx.x) % 4;
        const int quad = static_cast<int>(threadIdx.x) % 32 / 4;
        if (inside < 8 * Steps) {  // the last keys
#pragma unroll
            for (int step = 0; step < Steps; ++step) {
#pragma unroll
                for (int which = 0; which < 2; ++which) {
                    if (8 * step + Order::row(Cache::keys_are_rows ? quad : 2 * corner + which) >= inside)
                        scores[step][which] = __int_as_float(0xFF800000);
                }
            }
        }
        const auto higher = [](float a, float b) { return fmaxf(a, b); };
        float best[held];
        bool rises = false;
#pragma unroll
        for (int i = 0; i < held; ++i) {
            best[i] = nothing;
#pragma unroll
            for (int step = 0; step < Steps; ++step) {
                best[i] = fmaxf(best[i], held == 2 ? scores[step][i] : fmaxf(scores[step][0], scores[step][1]));
            }
            if constexpr (!Cache::keys_are_rows) best[i] = over_keys(best[i], higher);  // two steps: no need to wait
            best[i] *= to_exponent[i];
            rises |= best[i] > highest[tile][i] + 8.0f;
        }
        // Sums are kept relative to a score that is the highest so far or at most 2^8 below it: they are brought to
        // another only when it rises by more, which after the first keys is rare.
        if (__any_sync(~0u, rises)) {
            float factor[held];
#pragma unroll
            for (int i = 0; i < held; ++i) {
                if constexpr (Cache::keys_are_rows) best[i] = over_keys(best[i], higher);
                const float raised = fmaxf(best[i], highest[tile][i]);
                factor[i] = power(highest[tile][i] - raised);
                highest[tile][i] = raised;
                total[tile][i] *= factor[i];
            }
            const float even = held == 2 ? factor[0] : __shfl_sync(~0u, factor[0], 8 * corner);
            const float odd = held == 2 ? factor[held - 1] : __shfl_sync(~0u, factor[0], 8 * corner + 4);
#pragma unroll
            for (int i = 0; i < value_loads * Cache::words; ++i) {
                output[tile][i][0] *= even;
                output[tile][i][1] *= odd;
                output[tile][i][2] *= even;
                output[tile][i][3] *= odd;
            }
        }
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
#pragma unroll
            for (int which = 0; which < 2; ++which) {
                const int head = which % held;
                scores[step][which] = power(fmaf(scores[step][which], to_exponent[head], -highest[tile][head]));
            }
        }
    }

    static constexpr int pitch = Dimension + 4;  // of a head's sums in shared memory
    /// Where four dimensions of them lie there: two quads that write together then write to all banks.
    __device__ static constexpr int place_of(int four) {
        return four ^ (four / (Order::piece(1) * Cache::values / 4) & 1);
    }

    /// Shared memory that `end` needs; it may be what the keys and values lay in.
    static constexpr int shared_bytes(int warps) {
        return warps * 8 * Heads * (pitch + 2) * static_cast<int>(sizeof(float));
    }
    /// What the blocks of a cluster write to each other needs memory of its own: one may be done before another.
    static constexpr int received_fours = 8 * Heads * Dimension / 4 + most_in_cluster;
    static constexpr int received_bytes = received_fours * static_cast<int>(sizeof(float4) + sizeof(float2));

    /// Puts the warps' results together, and at last those of the splits. `shared` is free for use by all warps. Four
    /// dimensions at a time: what is waited for here, nothing else hides. The splits of a head meet by way of the L2,
    /// or where they are a cluster in each other's shared memory (`received`), which saves a trip or two.
    template <int Warps, bool Cluster>
    __device__ void end(const Attention& a, float* shared, float4* received) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int warp = static_cast<int>(threadIdx.x) / 32;
        const int quad = lane / 4;
        const int corner = lane % 4;
        const int group = a.query_heads / a.kv_heads;
        const int sequence = static_cast<int>(blockIdx.y) / a.kv_heads;
        const int kv_head = static_cast<int>(blockIdx.y) % a.kv_heads;
        // Warps' results side by side in shared memory, [warp][head][dimension], then merged.
        float* sums = shared;                               // [Warps][8 Heads][pitch]
        float* peaks = shared + Warps * 8 * Heads * pitch;  // [Warps][8 Heads]
        float* totals = peaks + Warps * 8 * Heads;
#pragma unroll
        for (int tile = 0; tile < Heads; ++tile) {
#pragma unroll
            for (int i = 0; i < held; ++i) {
                const float sum = over_keys(total[tile][i], [](float a, float b) { return a + b; });
                if ((held == 2 ? quad : corner) != 0) continue;
                const int head = warp * 8 * Heads + 8 * tile + (held == 2 ? 2 * corner + i : quad);
                peaks[head] = highest[tile][i];
                totals[head] = sum;
            }
#pragma unroll
            for (int i = 0; i < value_loads * Cache::words; i += 2) {
#pragma unroll
                for (int which = 0; which < 2; ++which) {
                    // Two pairs are four dimensions that lie together, in an order of the format's own.
                    float four[4];
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        four[Cache::element((i + j / 2) % Cache::words, j % 2) % 4] =
                            output[tile][i + j / 2][which + 2 * (j % 2)];
                    }
                    const int head = 8 * tile + 2 * corner + which;
                    if (head >= group) continue;
                    const int dimension = i / Cache::words * 8 * Cache::values + Order::piece(quad) * Cache::values +
                                          2 * (i % Cache::words);
                    *reinterpret_cast<float4*>(sums + (warp * 8 * Heads + head) * pitch + 4 * place_of(dimension / 4)) =
                        make_float4(four[0], four[1], four[2], four[3]);
                }
            }
        }
        __syncthreads();
        const auto heads_before = static_cast<std::size_t>(sequence) * a.query_heads + kv_head * group;
        auto* result = static_cast<__nv_bfloat16*>(a.output) + heads_before * Dimension;
        // [head of a sequence][split][dimension], and behind them all the highest scores and totals, [head][split].
        auto* parts = reinterpret_cast<float4*>(a.parts) + heads_before * a.splits * (Dimension / 4);
        auto* statistics =
            reinterpret_cast<float2*>(reinterpret_cast<float4*>(a.parts) +
                                      static_cast<std::size_t>(a.batch) * a.query_heads * a.splits * (Dimension / 4)) +
            heads_before * a.splits;
        const int fours = group * Dimension / 4;
        const int share = (fours + a.splits - 1) / a.splits;  // that a block of a cluster puts together
        auto* received_statistics = reinterpret_cast<float2*>(received + received_fours);
        if constexpr (Cluster) cluster_wait();  // all have begun, so there is memory to write to
        const auto write = [&](int four, const float4& sum, float factor) {
            __nv_bfloat162 pairs[2] = {__floats2bfloat162_rn(sum.x * factor, sum.y * factor),
                                       __floats2bfloat162_rn(sum.z * factor, sum.w * factor)};
            *reinterpret_cast<uint2*>(result + 4 * four) = reinterpret_cast<const uint2&>(pairs);
        };
        for (int i = static_cast<int>(threadIdx.x); i < fours; i += Warps * 32) {
            const int head = i / (Dimension / 4);
            const int four = i % (Dimension / 4);
            float peak = nothing;
#pragma unroll
            for (int j = 0; j < Warps; ++j) peak = fmaxf(peak, peaks[j * 8 * Heads + head]);
            float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            float weight = 0.0f;
#pragma unroll
            for (int j = 0; j < Warps; ++j) {
                const float factor = power(peaks[j * 8 * Heads + head] - peak);
                add(sum, factor,
                    *reinterpret_cast<const float4*>(sums + (j * 8 * Heads + head) * pitch + 4 * place_of(four)));
                weight += factor * totals[j * 8 * Heads + head];
            }
            if (a.splits == 1) {
                write(i, sum, a.value_scale / weight);
            } else if constexpr (Cluster) {
                const int at = static_cast<int>(blockIdx.x) * share + i % share;
                cluster_write(received + at, i / share, sum);
                cluster_write(received_statistics + at, i / share, make_float2(peak, weight));
            } else {
                const int part = head * a.splits + static_cast<int>(blockIdx.x);
                parts[static_cast<std::size_t>(part) * (Dimension / 4) + four] = sum;
                if (four == 0) statistics[part] = make_float2(peak, weight);
            }
        }
        if (a.splits == 1) return;
        if constexpr (Cluster) {
            cluster_arrive();
            cluster_wait();
            const int first = static_cast<int>(blockIdx.x) * share;
            for (int i = static_cast<int>(threadIdx.x); i < min(share, fours - first); i += Warps * 32) {
                join<most_in_cluster>(
                    a, first + i, [&](int split) { return received_statistics[split * share + i]; },
                    [&](int split) { return received[split * share + i]; }, write);
            }
            return;
        }

        // The last block of a head's splits to arrive puts the parts together.
        __shared__ bool last;
        __syncthreads();
        if (threadIdx.x == 0) {
            last = take_ticket(&a.tickets[blockIdx.y]) + 1 == static_cast<unsigned>(a.splits);
            if (last) a.tickets[blockIdx.y] = 0;
        }
        __syncthreads();
        if (!last) return;
        for (int i = static_cast<int>(threadIdx.x); i < fours; i += Warps * 32) {
            const int head = i / (Dimension / 4);
            const int four = i % (Dimension / 4);
            join<16>(
                a, i, [&](int split) { return __ldcg(statistics + head * a.splits + split); },
                [&](int split) {
                    return __ldcg(parts + static_cast<std::size_t>(head * a.splits + split) * (Dimension / 4) + four);
                },
                write);
        }
    }

  private:
    /// What lanes have of a head, each of its own keys, put together.
    template <class Join>
    __device__ static float over_keys(float value, const Join& join) {
#pragma unroll
        for (int apart = held == 2 ? 4 : 1; apart < (held == 2 ? 32 : 4); apart *= 2) {
            value = join(value, __shfl_xor_sync(~0u, value, apart));
        }
        return value;
    }

    /// How many had a ticket before. What the block wrote is seen by those who come later, and the other way round.
    __device__ static unsigned take_ticket(unsigned* tickets) {
        unsigned before;
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(tickets) : "memory");
        return before;
    }

    /// Puts four dimensions of the splits together, `together` splits on their way at a time: `known_of` gives a
    /// split's highest score and total, `part_of` its sums.
    template <int together, class Known, class Part, class Write>
    __device__ static void join(const Attention& a, int i, const Known& known_of, const Part& part_of,
                                const Write& write) {
        float peak = nothing;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        float weight = 0.0f;
        for (int first = 0; first < a.splits; first += together) {
            float2 known[together];
            float4 part[together];
#pragma unroll
            for (int j = 0; j < together; ++j) {
                const int split = min(first + j, a.splits - 1);
                known[j] = known_of(split);
                part[j] = part_of(split);
                if (first + j >= a.splits) known[j].x = nothing, known[j].y = 0.0f;
            }
            float raised = peak;
#pragma unroll
            for (int j = 0; j < together; ++j) raised = fmaxf(raised, known[j].x);
            const float before = power(peak - raised);
            sum = make_float4(sum.x * before, sum.y * before, sum.z * before, sum.w * before);
            weight *= before;
            peak = raised;
#pragma unroll
            for (int j = 0; j < together; ++j) {
                const float factor = first + j < a.splits ? power(known[j].x - peak) : 0.0f;
                add(sum, factor, part[j]);
                weight += factor * known[j].y;
            }
        }
        write(i, sum, a.value_scale / weight);
    }

    /// 2^exponent to two units in the last place, by one instruction; 0 where that is tiny.
    __device__ static float power(float exponent) {
        float value;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(exponent));
        return value;
    }
    __device__ static void add(float4& sum, float factor, const float4& other) {
        sum.x += factor * other.x;
        sum.y += factor * other.y;
        sum.z += factor * other.z;
        sum.w += factor * other.w;
    }
};

}  // namespace roofline::cuda::kernels
