// Weights in tiles of four rows (products.hpp), for AArch64 with the bf16, i8mm and dot product instructions.
#pragma once

#include <cstdint>

#include "roofline/bench/kernels/products.hpp"

namespace roofline::bench::neon {

void product_bf16(const ProductCall& call, std::int64_t first, std::int64_t last);
void product_int8(const ProductCall& call, std::int64_t first, std::int64_t last);

/// int4 with one row of x.
void vector_int4(const ProductCall& call, std::int64_t first, std::int64_t last);
/// int4 with several.
void rows_int4(const ProductCall& call, std::int64_t first, std::int64_t last);

}  // namespace roofline::bench::neon
