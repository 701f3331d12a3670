// What the products with tile registers share: where their results go.
#pragma once

#include "roofline/bench/kernels/products.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <algorithm>
#include <immintrin.h>

#include "roofline/bench/kernels/turn.hpp"

namespace roofline::bench::amx {

inline constexpr std::int64_t tile_side = 16;  // rows of a tile, and results beside each other in its lines
inline constexpr std::int64_t line = 64;
inline constexpr std::int64_t tile_bytes = tile_side * line;
inline constexpr std::int64_t rows_at_once = 2 * tile_side;  // of W

/// What comes 1 KiB on in a row, to be asked for; behind the end of the row what its place has in the next 32 rows.
inline __attribute__((always_inline)) std::int64_t ahead_of(std::int64_t at, std::int64_t row_bytes) {
    return at + 1024 + (at + 1024 < row_bytes ? 0 : (rows_at_once - 1) * row_bytes);
}

using Row = SixteenFloats;  // what is as wide as a tile register's row: 16 numbers of a row of results

/// 32 rows of W from `from` on, of which [first, last) are ours to write, with a panel or two.
struct Place {
    std::int64_t from;
    std::int64_t first;
    std::int64_t last;
    std::int64_t panel;
};

/// row_of(tile, i): results of row i of a tile, [row of W][row of x]. They are added to what earlier stretches of k
/// gave, where there were any.
template <bool scaled, class RowOf>
__attribute__((target("avx512f"))) inline void save(const ProductCall& call, const Place& place, bool added,
                                                    const RowOf& row_of) {
    for (int tile = 0; tile < 4; ++tile) {
        const std::int64_t row = place.from + tile / 2 * tile_side;
        const std::int64_t column = place.panel + tile % 2 * tile_side;
        const std::int64_t before = std::clamp<std::int64_t>(place.first - row, 0, tile_side);
        const std::int64_t until = std::clamp<std::int64_t>(place.last - row, 0, tile_side);
        if (before >= until || column >= call.m) continue;
        const auto ours =
            static_cast<__mmask16>((1U << static_cast<unsigned>(until)) - (1U << static_cast<unsigned>(before)));
        Row results[tile_side];
#pragma GCC unroll 16
        for (int i = 0; i < tile_side; ++i) results[i] = row_of(tile, i);
        turn(results);
        Row scales = {};
        if constexpr (scaled) scales = _mm512_maskz_loadu_ps(ours, call.weights.row_scales + row);
#pragma GCC unroll 16
        for (int i = 0; i < tile_side; ++i) {
            if (column + i >= call.m) continue;
            float* const to = call.y + (column + i) * call.pitch() + row;
            if constexpr (scaled) results[i] *= scales * call.x_scales[column + i];
            if (added) results[i] += _mm512_maskz_loadu_ps(ours, to);
            _mm512_mask_storeu_ps(to, ours, results[i]);
        }
    }
}

/// Weights that tiles do not take as they are, in bf16: fp8, fp8_block, mxfp4, nvfp4.
bool widens(WeightFormat weights);
void widened_product(const ProductCall& call, std::int64_t first, std::int64_t last);
/// Up to 16 rows of x in fp32 as what tiles take beside them.
void pack_widened(const float* x, std::int64_t m, std::int64_t k, void* packed);

}  // namespace roofline::bench::amx
#endif
