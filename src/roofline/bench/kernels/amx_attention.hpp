// Attention with tile registers over a cache in rows, which amx_attention() takes beside its own.
#pragma once

#include "roofline/bench/kernels/attention.hpp"

#if defined(__x86_64__) && defined(__linux__)
namespace roofline::bench::tile_rows_attention {

void piece(const float* q, std::int64_t rows, const Bf16* keys, const Bf16* values, std::int64_t first,
           std::int64_t count, const HeadWidths& widths, const AttentionState& state);

}  // namespace roofline::bench::tile_rows_attention
#endif
