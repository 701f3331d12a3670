// A warp of decode attention over an fp8 cache on Hopper, in fp16: the hardware turns two e4m3 into two fp16 by one
// instruction, and every e4m3 is an fp16. (Its tensor cores take e4m3 too, but mma.sync compiles to the same
// conversions, of both operands.) To bf16 and tf32, as attention_warp.cuh has it, takes about seven instructions for
// two values, more than the memory leaves time for.
//
// Scores are K Q^T (m16n8k16) with 16 keys as rows and the group's heads as columns: no row is empty, as most would be
// with heads as rows. Queries are scaled by a power of two, so that those of a head are fp16 without loss down to 2^-14
// of the largest. The output is V^T P^T with heads as columns: a lane must hold the weights of its quad's head for keys
// 2c and 2c+1 of two times eight keys, so the weights of eight keys and eight heads are turned by one instruction; of
// these four keys it reads 16 bytes of values each, and pairs the bytes of two keys before it converts them.
#pragma once

#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "roofline/bench/cuda/attention_warp.cuh"
#include "roofline/bench/cuda/digits.cuh"

namespace roofline::cuda::kernels {

__device__ inline std::uint32_t fp16_pair(float first, float second) {
    const __half2 pair = __floats2half2_rn(first, second);
    return reinterpret_cast<const std::uint32_t&>(pair);
}

/// An fp8 cache that is multiplied in fp16.
struct Fp8Cache {
    static constexpr int values = 16;  // in 16 bytes
    static constexpr int words = 8;    // pairs of them
    static constexpr int operand_loads = 2;
    static constexpr bool keys_are_rows = true;
    __device__ static constexpr int element(int pair, int half) { return 2 * pair + half; }
};

template <int Dimension, int Heads>
struct DecodeWarp<Fp8Cache, Dimension, Heads> : DecodeState<Fp8Cache, Dimension, Heads> {
    using State = DecodeState<Fp8Cache, Dimension, Heads>;
    using Queries = LaneQueries<Fp8Cache, Dimension, Heads>;
    using State::key_loads;
    using State::value_loads;

    std::uint32_t query[Heads][key_loads][8];
    float unit[Heads][2];  // that the queries were divided by, of heads 2c and 2c+1

    __device__ void begin(const Queries& queries) {
        this->clear();
#pragma unroll
        for (int tile = 0; tile < Heads; ++tile) {
            std::uint32_t largest = 0;
#pragma unroll
            for (int i = 0; i < key_loads; ++i) {
#pragma unroll
                for (int j = 0; j < 2; ++j) largest = max(largest, largest_size(queries.raw[tile][i][j]));
            }
            largest = max(largest, __shfl_xor_sync(~0u, largest, 1));
            largest = max(largest, __shfl_xor_sync(~0u, largest, 2));
            const int power = group_power(largest);
            const float factor = power_of_two(-power);
            const int corner = static_cast<int>(threadIdx.x) % 4;
            unit[tile][0] = power_of_two(__shfl_sync(~0u, power, 8 * corner));
            unit[tile][1] = power_of_two(__shfl_sync(~0u, power, 8 * corner + 4));
#pragma unroll
            for (int i = 0; i < key_loads; ++i) {
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    const std::uint32_t two = word(queries.raw[tile][i][j / 4], j % 4);
                    query[tile][i][j] =
                        fp16_pair(__uint_as_float(two << 16) * factor, __uint_as_float(two & 0xFFFF0000u) * factor);
                }
            }
        }
    }

    /// 8 Steps keys of which `inside` count, from where `source` has them.
    template <int Steps, class Source>
    __device__ void take(const Source& source, int inside, float to_exponent) {
        static_assert(Steps % 2 == 0);
        float weights[Heads][Steps][2];
#pragma unroll
        for (int step = 0; step < Steps; step += 2) {
            float scores[Heads][2][4] = {};  // two chains of sums: one alone would wait for itself
#pragma unroll
            for (int i = 0; i < key_loads; ++i) {
                const uint4 upper = source.key(step, i);
                const uint4 lower = source.key(step + 1, i);
#pragma unroll
                for (int j = 0; j < 8; j += 2) {
                    const std::uint32_t keys[4] = {fp16_pair(word(upper, j / 2), 0), fp16_pair(word(lower, j / 2), 0),
                                                   fp16_pair(word(upper, j / 2), 1), fp16_pair(word(lower, j / 2), 1)};
#pragma unroll
                    for (int tile = 0; tile < Heads; ++tile) {
                        mma_fp16(scores[tile][j / 2 % 2], keys[0], keys[1], keys[2], keys[3], query[tile][i][j],
                                 query[tile][i][j + 1]);
                    }
                }
            }
#pragma unroll
            for (int tile = 0; tile < Heads; ++tile) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    weights[tile][step + j / 2][j % 2] = scores[tile][0][j] + scores[tile][1][j];
                }
            }
        }
        std::uint32_t pairs[Heads][Steps];  // of weights
#pragma unroll
        for (int tile = 0; tile < Heads; ++tile) {
            const float exponents[2] = {to_exponent * unit[tile][0], to_exponent * unit[tile][1]};
            this->weigh(weights[tile], tile, inside, exponents);
#pragma unroll
            for (int step = 0; step < Steps; ++step) {
                // What fp16 rounds off the weights is as often more as less: the totals need not know.
                this->total[tile][0] += weights[tile][step][0];
                this->total[tile][1] += weights[tile][step][1];
                pairs[tile][step] = turned(fp16_pair(weights[tile][step][0], weights[tile][step][1]));
            }
        }
#pragma unroll
        for (int step = 0; step < Steps; step += 2) {
#pragma unroll
            for (int i = 0; i < value_loads; ++i) {
                const uint4 raw[2][2] = {{source.value(step, 0, i), source.value(step, 1, i)},
                                         {source.value(step + 1, 0, i), source.value(step + 1, 1, i)}};
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    // Bytes 2j and 2j+1 of both keys, dimension by dimension.
                    const int bytes = j % 2 == 0 ? 0x5140 : 0x7362;
                    const std::uint32_t first = __byte_perm(word(raw[0][0], j / 2), word(raw[0][1], j / 2), bytes);
                    const std::uint32_t second = __byte_perm(word(raw[1][0], j / 2), word(raw[1][1], j / 2), bytes);
#pragma unroll
                    for (int tile = 0; tile < Heads; ++tile) {
                        mma_fp16(this->output[tile][i * 8 + j], fp16_pair(first, 0), fp16_pair(first, 1),
                                 fp16_pair(second, 0), fp16_pair(second, 1), pairs[tile][step], pairs[tile][step + 1]);
                    }
                }
            }
        }
    }
};

}  // namespace roofline::cuda::kernels
