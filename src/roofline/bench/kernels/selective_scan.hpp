// Mamba-1: every channel has a state of its own, which a token changes by a step of that channel's own.
#pragma once

#include <cstdint>

#include "roofline/bench/threads.hpp"

namespace roofline::bench {

struct SelectiveShape {
    std::int64_t batch = 0;
    std::int64_t channels = 0;  // a multiple of `abreast`
    std::int64_t key_dim = 0;   // numbers of a state
    std::int64_t tokens = 1;    // of each sequence

    /// Numbers of a row that goes in.
    std::int64_t width() const { return 3 * channels + 2 * key_dim; }

    /// States, and the rates they decay at, lie in groups of so many channels: a vector has one number of each.
    static constexpr std::int64_t abreast = 16;
    std::int64_t place(std::int64_t channel, std::int64_t key) const {
        return (channel / abreast * key_dim + key) * abreast + channel % abreast;
    }
};

/// A row of x is [values][steps][gates][keys][queries]. With s = ln(1 + e^step), a channel's state h becomes
/// e^(-s rate) h + s value key, number by number, and y is (h query + skip value) silu(gate). Tokens go in one after
/// the other; rows are [sequence][token].
void selective_scan(const float* x, const float* rates, const float* skips, float* states, float* y,
                    const SelectiveShape& shape, Threads& threads);

}  // namespace roofline::bench
