// What kernels of states read from a row besides queries, keys and values, and where they find those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_bf16.h>

#include "roofline/bench/cuda/states.cuh"

namespace roofline::cuda::kernels {

constexpr float length_epsilon = 1e-6f;  // of keys and queries that are brought to length 1

__device__ inline float silu(float x) {
    return x / (1.0f + __expf(-x));
}

/// Where a block of `values` values of a head finds its channels, eight at a time: queries, keys, its values.
template <bool Delta, int Keys>
__device__ int channel_of(const StateRows& rows, int head, int first_value, int within) {
    const int group_keys = rows.groups * Keys;
    const int of_keys = head / (rows.heads / rows.groups) * Keys + within % Keys;
    if (within >= 2 * Keys) {
        const int of_values = head * rows.value_dim + first_value + within - 2 * Keys;
        return Delta ? 2 * group_keys + of_values : of_values;
    }
    if constexpr (Delta) return within < Keys ? of_keys : group_keys + of_keys;
    return rows.heads * rows.value_dim + (within < Keys ? group_keys : 0) + of_keys;
}

/// What a token says of a head: how much of its state stays, and how much of what the token brings goes in.
struct OfHead {
    float decay;
    float step;
    float share;
};

/// The numbers that say so, in bf16; in registers of their own, so that nothing waits for them before they are used.
struct RawOfHead {
    std::uint32_t step;
    std::uint32_t share;
};

template <bool Delta>
__device__ RawOfHead raw_of_head(const StateRows& rows, std::size_t row, int head) {
    const auto* at = static_cast<const std::uint16_t*>(rows.rows) + row * rows.width + rows.heads_at + head;
    return {*at, Delta ? at[rows.heads] : std::uint16_t{0}};
}

template <bool Delta>
__device__ OfHead of_head(const RawOfHead& raw, float rate) {
    const float step = __uint_as_float(raw.step << 16);
    OfHead numbers{};
    numbers.step = step > 20.0f ? step : log1pf(__expf(step));
    numbers.decay = __expf(-numbers.step * rate);
    if constexpr (Delta) numbers.share = 1.0f / (1.0f + __expf(-__uint_as_float(raw.share << 16)));
    return numbers;
}

}  // namespace roofline::cuda::kernels
