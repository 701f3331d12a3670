// Products with weights in mxfp4 (products.hpp), one function for each instruction set that has its own.
#pragma once

#include "roofline/bench/kernels/products.hpp"

namespace roofline::bench {

void portable_mxfp4(const ProductCall& call, std::int64_t first, std::int64_t last);
#if defined(__aarch64__)
void neon_mxfp4(const ProductCall& call, std::int64_t first, std::int64_t last);  // needs dot products of bytes
#elif defined(__x86_64__)
void avx2_mxfp4(const ProductCall& call, std::int64_t first, std::int64_t last);    // needs FMA too
void avx512_mxfp4(const ProductCall& call, std::int64_t first, std::int64_t last);  // needs VNNI
#endif

}  // namespace roofline::bench
