// Products with weights in mxfp4 or nvfp4 (products.hpp), one function for each instruction set that has its
// own; those of AVX-512 are in avx512_bytes.inc.
#pragma once

#include "roofline/bench/kernels/products.hpp"

namespace roofline::bench {

/// Twice the values of e2m1, in which weights are looked up.
inline constexpr std::int8_t twice_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

void portable_e2m1(const ProductCall& call, std::int64_t first, std::int64_t last);
#if defined(__aarch64__)
void neon_e2m1(const ProductCall& call, std::int64_t first, std::int64_t last);  // needs dot products of bytes
#elif defined(__x86_64__)
void avx2_e2m1(const ProductCall& call, std::int64_t first, std::int64_t last);  // needs FMA too
#endif

}  // namespace roofline::bench
