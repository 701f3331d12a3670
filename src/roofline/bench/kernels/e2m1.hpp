// Products with weights in mxfp4 or nvfp4 (products.hpp), one function for each instruction set that has its own.
#pragma once

#include "roofline/bench/kernels/products.hpp"

namespace roofline::bench {

void portable_e2m1(const ProductCall& call, std::int64_t first, std::int64_t last);
#if defined(__aarch64__)
void neon_e2m1(const ProductCall& call, std::int64_t first, std::int64_t last);  // needs dot products of bytes
#elif defined(__x86_64__)
void avx2_e2m1(const ProductCall& call, std::int64_t first, std::int64_t last);    // needs FMA too
void avx512_e2m1(const ProductCall& call, std::int64_t first, std::int64_t last);  // needs VNNI
#endif

}  // namespace roofline::bench
