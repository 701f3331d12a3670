// Products with weights in e4m3 (products.hpp), under a scale for each row or for 128 x 128 of them: one function for
// each instruction set that has its own.
#pragma once

#include "roofline/bench/kernels/products.hpp"

namespace roofline::bench {

void portable_fp8(const ProductCall& call, std::int64_t first, std::int64_t last);
#if defined(__aarch64__)
void neon_fp8(const ProductCall& call, std::int64_t first, std::int64_t last);
#elif defined(__x86_64__)
void avx2_fp8(const ProductCall& call, std::int64_t first, std::int64_t last);  // needs F16C too
void avx512_fp8(const ProductCall& call, std::int64_t first, std::int64_t last);
void avx512_fp16_fp8(const ProductCall& call, std::int64_t first, std::int64_t last);  // needs AVX512-FP16 too
#endif

}  // namespace roofline::bench
