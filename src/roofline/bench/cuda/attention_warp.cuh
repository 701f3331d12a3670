// A warp of decode attention in bf16, wherever its keys and values come from (attention_decode.cu: straight into
// registers, or by way of a ring in shared memory).
//
// Scores are Q K^T with the group's heads as rows (bf16, m16n8k16): a lane gets the scores of its head with keys 2c and
// 2c+1 of eight. The output is V^T P^T (tf32, m16n8k8) with the group's heads as columns: there a lane must hold, for
// its head, the probabilities of inner indices c and c+4; calling keys 2c and 2c+1 by these names, it has them already,
// and needs the values of just these two keys, 16 bytes of each at a time.
#pragma once

#include <cuda_bf16.h>

#include "roofline/bench/cuda/attention_state.cuh"
#include "roofline/bench/cuda/fragments.cuh"

namespace roofline::cuda::kernels {

__device__ inline float tf32(float value) {
    std::uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return __uint_as_float(bits);
}

/// A lane's queries: of the head of its quad in a tile of 8, what its corner takes of each load; zero beyond the group.
template <class Cache, int Dimension>
__device__ inline uint4 query_of(const Attention& a, int tile, int load, int part) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int group = a.query_heads / a.kv_heads;
    const int sequence = static_cast<int>(blockIdx.z) / a.kv_heads;
    const int kv_head = static_cast<int>(blockIdx.z) % a.kv_heads;
    const int head = 8 * tile + lane / 4;
    if (head >= group) return {0, 0, 0, 0};
    const auto* source = reinterpret_cast<const uint4*>(
        static_cast<const __nv_bfloat16*>(a.queries) + static_cast<std::size_t>(sequence) * a.query_stride +
        (kv_head * group + head) * Dimension + lane % 4 * Cache::values);
    return source[load * 4 * Cache::operand_loads + part];
}

/// A lane's queries on their way.
template <class Cache, int Dimension, int Heads>
struct LaneQueries {
    uint4 raw[Heads][DecodeState<Cache, Dimension, Heads>::key_loads][Cache::operand_loads];

    __device__ explicit LaneQueries(const Attention& a) {
#pragma unroll
        for (int tile = 0; tile < Heads; ++tile) {
#pragma unroll
            for (int i = 0; i < DecodeState<Cache, Dimension, Heads>::key_loads; ++i) {
#pragma unroll
                for (int j = 0; j < Cache::operand_loads; ++j) {
                    raw[tile][i][j] = query_of<Cache, Dimension>(a, tile, i, j);
                }
            }
        }
    }
};

template <class Cache, int Dimension, int Heads>
struct DecodeWarp : DecodeState<Cache, Dimension, Heads> {
    using State = DecodeState<Cache, Dimension, Heads>;
    using Queries = LaneQueries<Cache, Dimension, Heads>;
    using State::key_loads;
    using State::value_loads;

    std::uint32_t query[Heads][key_loads][Cache::words];

    /// The queries as first operand: rows quad and quad + 8 are heads of the group, the rest are zero.
    __device__ void begin(const Queries& queries) {
        this->clear();
#pragma unroll
        for (int tile = 0; tile < Heads; ++tile) {
#pragma unroll
            for (int i = 0; i < key_loads; ++i) Cache::arrange(queries.raw[tile][i], query[tile][i]);
        }
    }

    /// 8 Steps keys of which `inside` count. `source.key(step, load)` and `source.value(step, which, load)` give a lane
    /// its 16 bytes.
    template <int Steps, class Source>
    __device__ void take(const Source& source, int inside, float to_exponent) {
        const float exponents[1] = {to_exponent};
        float weights[Heads][Steps][2];
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
            float scores[4] = {};
            float others[4] = {};  // a second chain of sums: one alone would wait for itself
#pragma unroll
            for (int i = 0; i < key_loads; ++i) {
                std::uint32_t pairs[Cache::words];
                Cache::unpack(source.key(step, i), pairs);
#pragma unroll
                for (int j = 0; j < Cache::words; j += 2) {
                    mma_bf16(j % 4 == 0 ? scores : others, query[0][i][j], Heads > 1 ? query[Heads - 1][i][j] : 0u,
                             query[0][i][j + 1], Heads > 1 ? query[Heads - 1][i][j + 1] : 0u, pairs[j], pairs[j + 1]);
                }
            }
#pragma unroll
            for (int tile = 0; tile < Heads; ++tile) {
                weights[tile][step][0] = scores[2 * tile] + others[2 * tile];
                weights[tile][step][1] = scores[2 * tile + 1] + others[2 * tile + 1];
            }
        }
#pragma unroll
        for (int tile = 0; tile < Heads; ++tile) {
            this->weigh(weights[tile], tile, inside, exponents);
#pragma unroll
            for (int step = 0; step < Steps; ++step) {
#pragma unroll
                for (int which = 0; which < 2; ++which) {
                    weights[tile][step][which] = tf32(weights[tile][step][which]);
                    this->total[tile][0] += weights[tile][step][which];
                }
            }
        }
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
#pragma unroll
            for (int i = 0; i < value_loads; ++i) {
                std::uint32_t even[Cache::words];
                std::uint32_t odd[Cache::words];
                Cache::unpack(source.value(step, 0, i), even);
                Cache::unpack(source.value(step, 1, i), odd);
#pragma unroll
                for (int j = 0; j < Cache::words; ++j) {
#pragma unroll
                    for (int tile = 0; tile < Heads; ++tile) {
                        mma_tf32(this->output[tile][i * Cache::words + j], even[j] << 16, even[j] & 0xFFFF0000u,
                                 odd[j] << 16, odd[j] & 0xFFFF0000u, __float_as_uint(weights[tile][step][0]),
                                 __float_as_uint(weights[tile][step][1]));
                    }
                }
            }
        }
    }
};

}  // namespace roofline::cuda::kernels
