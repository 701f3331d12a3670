// Where the sums of AVX-512 go: lanes of registers, each of a row of W and one of x, are added up into y.
#pragma once

#if defined(__x86_64__)
#include <cstdint>
#include <immintrin.h>
#include <type_traits>
#include <utility>

#include "roofline/bench/kernels/products.hpp"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")
namespace roofline::bench::sixteen_lanes {

#define ROOFLINE_LANES 16
#include "roofline/bench/kernels/lanes.inc"
#undef ROOFLINE_LANES

}  // namespace roofline::bench::sixteen_lanes

namespace roofline::bench {

template <int count, int columns>
inline __attribute__((always_inline)) void save_lanes(const ProductCall& call, const std::int64_t (&rows)[count],
                                                      std::int64_t x_row, const __m512 (&totals)[count][columns]) {
    sixteen_lanes::Floats vectors[count][columns];
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
#pragma GCC unroll 4
        for (int j = 0; j < columns; ++j) vectors[i][j] = reinterpret_cast<sixteen_lanes::Floats>(totals[i][j]);
    }
    float sums[count][columns];
    sixteen_lanes::add_up(vectors, sums);
    for (int i = 0; i < count; ++i) {
        for (int j = 0; j < columns; ++j) call.y[(x_row + j) * call.n + rows[i]] = sums[i][j];
    }
}

}  // namespace roofline::bench
#pragma GCC pop_options
#endif
