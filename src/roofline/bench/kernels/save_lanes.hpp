// Where the sums of AVX-512 go: lanes of registers, each of a row of W and one of x, are added up into y.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

#include "roofline/bench/kernels/products.hpp"

namespace roofline::bench {

template <int count, int columns>
__attribute__((target("avx512f"))) inline void save_lanes(const ProductCall& call, const std::int64_t (&rows)[count],
                                                          std::int64_t x_row, const __m512 (&totals)[count][columns]) {
    for (int i = 0; i < count; ++i) {
        for (int column = 0; column < columns; ++column) {
            alignas(64) float lanes[16];
            _mm512_store_ps(lanes, totals[i][column]);
            float sum = 0.0F;
            for (const float lane : lanes) sum += lane;
            call.y[(x_row + column) * call.n + rows[i]] = sum;
        }
    }
}

}  // namespace roofline::bench
#endif
