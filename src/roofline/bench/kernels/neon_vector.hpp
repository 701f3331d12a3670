// One row of x against rows [first, last) of W, for AArch64 with the bf16, i8mm and dot product instructions.
#pragma once

#include <cstdint>

#include "roofline/bench/kernels/products.hpp"

namespace roofline::bench::neon {

void vector_fp32(const ProductCall& call, std::int64_t column, std::int64_t first, std::int64_t last);
void vector_bf16(const ProductCall& call, std::int64_t first, std::int64_t last);
void vector_int8(const ProductCall& call, std::int64_t first, std::int64_t last);
void vector_int4(const ProductCall& call, std::int64_t first, std::int64_t last);

}  // namespace roofline::bench::neon
