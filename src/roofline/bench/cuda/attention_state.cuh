// What a warp of decode attention keeps from key to key: for each query head of its group the highest score, the sum of
// the weights, and their sum of values; how scores become weights; and how the results of warps and splits are put
// together.
#pragma once

#include <algorithm>
#include <cuda_bf16.h>

#include "roofline/bench/cuda/attention.cuh"

namespace roofline::cuda::kernels {

constexpr int most_splits = 96;

constexpr float log2_e = 1.4426950408889634f;
constexpr float nothing = -1e30f;  // a score that is no key's: finite, so that differences of two are numbers

/// Heads: tiles of 8 query heads. Dimension: of a head. Cache: says how many values a lane takes of 16 bytes, and which of
/// them an output belongs to.
template <class Cache, int Dimension, int Heads>
struct DecodeState {
    static constexpr int row_bytes = Dimension * 16 / Cache::values;
    static constexpr int key_loads = Dimension / (4 * Cache::values);    // of a key, by a lane of its quad
    static constexpr int value_loads = Dimension / (8 * Cache::values);  // of a value, by each of 8 lanes
    static_assert(value_loads > 0);

    float highest[Heads];
    float total[Heads];
    float output[Heads][value_loads * Cache::words][4];

    __device__ void clear() {
#pragma unroll
        for (int tile = 0; tile < Heads; ++tile) {
            highest[tile] = nothing;
            total[tile] = 0.0f;
#pragma unroll
            for (int i = 0; i < value_loads * Cache::words; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) output[tile][i][j] = 0.0f;
            }
        }
    }

    /// Scores of 8 Steps keys, of which `inside` count, become weights relative to the highest score so far. A lane has the
    /// scores of its head with keys 2c and 2c+1 of each eight.
    template <int Steps>
    __device__ void weigh(float (&scores)[Steps][2], int tile, int inside, float to_exponent) {
        const int corner = static_cast<int>(threadIdx.x) % 4;
        float best = nothing;
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
#pragma unroll
            for (int which = 0; which < 2; ++which) {
                const bool counts = 8 * step + 2 * corner + which < inside;
                scores[step][which] = counts ? scores[step][which] * to_exponent : nothing;
                best = fmaxf(best, scores[step][which]);
            }
        }
        best = fmaxf(best, __shfl_xor_sync(~0u, best, 1));
        best = fmaxf(best, __shfl_xor_sync(~0u, best, 2));
        // Sums are kept relative to the highest score so far; it rarely rises after the first keys.
        if (__any_sync(~0u, best > highest[tile])) {
            const float raised = fmaxf(best, highest[tile]);
            const float factor = exp2f(highest[tile] - raised);
            highest[tile] = raised;
            total[tile] *= factor;
            const float even = __shfl_sync(~0u, factor, 8 * corner);
            const float odd = __shfl_sync(~0u, factor, 8 * corner + 4);
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
                const bool counts = 8 * step + 2 * corner + which < inside;
                scores[step][which] = counts ? exp2f(scores[step][which] - highest[tile]) : 0.0f;
            }
        }
    }

    /// Shared memory that `end` needs.
    static constexpr int shared_bytes(int warps) {
        return std::max(warps * 8 * Heads * (Dimension + 3), 2 * 8 * Heads * most_splits) *
               static_cast<int>(sizeof(float));
    }

    /// Puts the warps' results together, and at last those of the splits. `shared` is free for use by all warps.
    template <int Warps>
    __device__ void end(const Attention& a, float* shared) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int warp = static_cast<int>(threadIdx.x) / 32;
        const int quad = lane / 4;
        const int corner = lane % 4;
        const int group = a.query_heads / a.kv_heads;
        const int sequence = static_cast<int>(blockIdx.y) / a.kv_heads;
        const int kv_head = static_cast<int>(blockIdx.y) % a.kv_heads;
        // Warps' results side by side in shared memory, [warp][head][dimension], then merged.
        float* sums = shared;                                         // [Warps][8 Heads][Dimension + 1]
        float* peaks = shared + Warps * 8 * Heads * (Dimension + 1);  // [Warps][8 Heads]
        float* totals = peaks + Warps * 8 * Heads;
#pragma unroll
        for (int tile = 0; tile < Heads; ++tile) {
            float sum = total[tile];
            sum += __shfl_xor_sync(~0u, sum, 1);
            sum += __shfl_xor_sync(~0u, sum, 2);
            if (corner == 0) {
                peaks[warp * 8 * Heads + 8 * tile + quad] = highest[tile];
                totals[warp * 8 * Heads + 8 * tile + quad] = sum;
            }
#pragma unroll
            for (int i = 0; i < value_loads * Cache::words; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int head = 8 * tile + 2 * corner + j % 2;
                    const int dimension = (i / Cache::words) * 8 * Cache::values + quad * Cache::values +
                                          Cache::element(i % Cache::words, j / 2);
                    sums[(warp * 8 * Heads + head) * (Dimension + 1) + dimension] = output[tile][i][j];
                }
            }
        }
        __syncthreads();
        auto* result = static_cast<__nv_bfloat16*>(a.output) +
                       (static_cast<std::size_t>(sequence) * a.query_heads + kv_head * group) * Dimension;
        const std::size_t part_stride = Dimension + 2;
        float* parts = a.parts + static_cast<std::size_t>(blockIdx.y) * group * a.splits * part_stride;
        for (int i = static_cast<int>(threadIdx.x); i < group * Dimension; i += Warps * 32) {
            const int head = i / Dimension;
            const int dimension = i % Dimension;
            float peak = nothing;
#pragma unroll
            for (int j = 0; j < Warps; ++j) peak = fmaxf(peak, peaks[j * 8 * Heads + head]);
            float sum = 0.0f;
            float weight = 0.0f;
#pragma unroll
            for (int j = 0; j < Warps; ++j) {
                const float factor = exp2f(peaks[j * 8 * Heads + head] - peak);
                sum += factor * sums[(j * 8 * Heads + head) * (Dimension + 1) + dimension];
                weight += factor * totals[j * 8 * Heads + head];
            }
            if (a.splits == 1) {
                result[i] = __float2bfloat16_rn(a.value_scale * sum / weight);
            } else {
                float* part = parts + (static_cast<std::size_t>(head) * a.splits + blockIdx.x) * part_stride;
                part[dimension] = sum;
                if (dimension == 0) part[Dimension] = peak, part[Dimension + 1] = weight;
            }
        }
        if (a.splits == 1) return;

        // The last block of a head's splits to arrive puts the parts together.
        __shared__ bool last;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) {
            last = atomicAdd(&a.tickets[blockIdx.y], 1u) + 1 == static_cast<unsigned>(a.splits);
            if (last) a.tickets[blockIdx.y] = 0;
        }
        __syncthreads();
        if (!last) return;
        __threadfence();
        for (int i = static_cast<int>(threadIdx.x); i < group * a.splits; i += Warps * 32) {
            // Peaks and totals of all parts, as far as shared memory has room for them (see launch).
            const float* part = parts + static_cast<std::size_t>(i) * part_stride + Dimension;
            shared[2 * i] = __ldcg(part);
            shared[2 * i + 1] = __ldcg(part + 1);
        }
        __syncthreads();
        for (int i = static_cast<int>(threadIdx.x); i < group * Dimension; i += Warps * 32) {
            const int head = i / Dimension;
            const int dimension = i % Dimension;
            const float* statistics = shared + 2 * head * a.splits;
            float peak = nothing;
            for (int j = 0; j < a.splits; ++j) peak = fmaxf(peak, statistics[2 * j]);
            const float* column = parts + static_cast<std::size_t>(head) * a.splits * part_stride + dimension;
            float sum = 0.0f;
            float weight = 0.0f;
#pragma unroll 8
            for (int j = 0; j < a.splits; ++j) {
                const float factor = exp2f(statistics[2 * j] - peak);
                sum += factor * __ldcg(column + static_cast<std::size_t>(j) * part_stride);
                weight += factor * statistics[2 * j + 1];
            }
            result[i] = __float2bfloat16_rn(a.value_scale * sum / weight);
        }
    }
};

}  // namespace roofline::cuda::kernels
