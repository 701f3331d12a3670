// The convolution over tokens of eight neighbouring channels (states.cuh).
#pragma once

#include <cstddef>

#include "roofline/bench/cuda/eights.cuh"
#include "roofline/bench/cuda/state_numbers.cuh"
#include "roofline/bench/cuda/states.cuh"

namespace roofline::cuda::kernels {

/// Eight channels of a sequence: weights and past, which no kernel before writes, then token by token.
class Channels {
  public:
    /// `channel`: the first of the eight.
    __device__ void begin(const Convolution& by, std::size_t sequence, int channel) {
        taps_ = by.taps;
        row_ = by.channels / 8;
        past_ = static_cast<uint4*>(by.past) + sequence * taps_ * row_ + channel / 8;
        bias_ = static_cast<const uint4*>(by.bias)[channel / 8];
#pragma unroll
        for (int tap = 0; tap < most_taps; ++tap) {
            // Weights and inputs are counted from the newest, so that fewer taps are zeros at the far end.
            const int oldness = most_taps - 1 - tap;
            weights_[tap] = oldness < by.taps
                                ? static_cast<const uint4*>(by.weights)[(by.taps - 1 - oldness) * row_ + channel / 8]
                                : uint4{};
            const int position = by.position - oldness;
            if (oldness > 0) inputs_[tap] = oldness < by.taps && position >= 0 ? *place(position) : uint4{};
        }
    }

    __device__ Eight take(const uint4& newest) {
        inputs_[most_taps - 1] = newest;
        Eight sum = read(&bias_, 0);
#pragma unroll
        for (int tap = 0; tap < most_taps; ++tap) {
            const Eight weight = read(&weights_[tap], 0);
            const Eight input = read(&inputs_[tap], 0);
#pragma unroll
            for (int i = 0; i < 8; ++i) sum.v[i] += weight.v[i] * input.v[i];
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) sum.v[i] = silu(sum.v[i]);
#pragma unroll
        for (int tap = 0; tap + 1 < most_taps; ++tap) inputs_[tap] = inputs_[tap + 1];
        return sum;
    }

    __device__ void keep(int position, const uint4& newest) { *place(position) = newest; }

  private:
    __device__ uint4* place(int position) { return past_ + position % taps_ * row_; }

    uint4* past_ = nullptr;
    int taps_ = 0;
    int row_ = 0;
    uint4 bias_{};
    uint4 weights_[most_taps] = {};
    uint4 inputs_[most_taps] = {};
};

}  // namespace roofline::cuda::kernels
