// What a warp of decode attention keeps from key to key: for each query head of its group the highest score, the sum of
// the weights, and their sum of values; how scores become weights; and how the results of warps are put together.
#pragma once

#include "roofline/bench/cuda/attention.cuh"
#include "roofline/bench/cuda/attention_meeting.cuh"
#include "roofline/bench/cuda/tiles.cuh"

namespace roofline::cuda::kernels {

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
    /// And what it needs beside that.
    template <int Warps, bool Cluster>
    static constexpr int meeting_bytes = Meeting<Warps * 32, Dimension, Cluster>::bytes_for(8 * Heads);

    /// Puts the warps' results together, and at last those of the splits. `shared` is free for use by all warps. Four
    /// dimensions at a time: what is waited for here, nothing else hides.
    template <int Warps, bool Cluster>
    __device__ void end(const Attention& a, float* shared, void* for_meeting) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int warp = static_cast<int>(threadIdx.x) / 32;
        const int quad = lane / 4;
        const int corner = lane % 4;
        const int group = a.query_heads / a.kv_heads;
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
        const Meeting<Warps * 32, Dimension, Cluster> meeting(a, for_meeting);
        for (int i = static_cast<int>(threadIdx.x); i < group * Dimension / 4; i += Warps * 32) {
            const int head = i / (Dimension / 4);
            const int four = i % (Dimension / 4);
            const auto known = [&](int one) {
                return make_float2(peaks[one * 8 * Heads + head], totals[one * 8 * Heads + head]);
            };
            const auto part = [&](int one) {
                return *reinterpret_cast<const float4*>(sums + (one * 8 * Heads + head) * pitch + 4 * place_of(four));
            };
            meeting.bring(i, joined<Warps>(Warps, known, part));
        }
        meeting.end();
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
};

}  // namespace roofline::cuda::kernels
