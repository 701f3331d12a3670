// Our own matrix products on a CPU: y[m, n] = x[m, k] W[n, k]^T with W row by row as it lies in a checkpoint, or in
// tiles where a set of kernels asks for them. One set of functions for each instruction set; the best that this
// processor has is chosen when the program runs.
//
// How weights lie in memory:
//   fp32, bf16  plain rows
//   int8        rows of int8, one fp32 scale a row; x is int8 with one scale a row too
//   int4        groups of 128 along k, each 64 bytes: byte i of a run of 16 holds weight i in its low and weight i + 16
//               in its high half; w = (q - zero) * scale, with a bf16 scale and a 4-bit zero point for each group.
//               x is rounded to int8 with a scale for each group too, as llama.cpp does it
// The same bytes in tiles of four rows (the last filled up with zeros):
//   bf16, int8  [n / 4][16 bytes of a row][2 pairs of rows][first or second 8 bytes][2 rows][8 bytes]
//   int4          values  [n / 4][k / 32][4][4 rows][4 of the run's 16]
//                 scales  [n / 4][k / 128][4 rows]
//                 zeros   [n / 4][pair of groups][4 rows], the even group in the low half
#pragma once

#include <cstdint>

#include "roofline/bench/numbers.hpp"
#include "roofline/bench/threads.hpp"
#include "roofline/core/dtype.hpp"

namespace roofline::bench {

inline constexpr std::int64_t int4_group = 128;
inline constexpr std::int64_t tile_rows = 4;  // of W
/// Rows of x that are packed together for the kernels that multiply several at once.
inline constexpr std::int64_t panel_rows = 8;

struct Weights {
    DType type = DType::bf16;
    const void* values = nullptr;
    const float* row_scales = nullptr;          // int8
    const Bf16* group_scales = nullptr;         // int4: n x k / 128
    const std::uint8_t* group_zeros = nullptr;  // int4: two to a byte, the low half first
    bool tiles = false;

    float group_scale(std::int64_t group) const { return from_bf16(group_scales[group]); }
    float group_zero(std::int64_t group) const {
        return static_cast<float>((group_zeros[group / 2] >> (group % 2 * 4)) & 15);
    }
};

/// The byte of a tile of bf16 or int8 where byte `at` of a row lies, in rows of `row_bytes`.
inline std::int64_t tile_place(std::int64_t row, std::int64_t at, std::int64_t row_bytes) {
    return row / tile_rows * tile_rows * row_bytes + at / 16 * 64 + row % tile_rows / 2 * 32 + at % 16 / 8 * 16 +
           row % 2 * 8 + at % 8;
}

/// How far tiles of int4 are apart.
struct Int4Tiles {
    std::int64_t
        values;  // bytes, a line of 64 between tiles among them: at powers of two they would share places in L1
    std::int64_t scales;
    std::int64_t zeros;  // bytes

    explicit Int4Tiles(std::int64_t k)
        : values(tile_rows * k / 2 + 64),
          scales(tile_rows * (k / int4_group)),
          zeros(tile_rows * ((k / int4_group + 1) / 2)) {}

    /// The byte with columns c and c + 16 (c % 32 < 16) of a row.
    std::int64_t value_place(std::int64_t row, std::int64_t column) const {
        const std::int64_t inside = column % 16;
        return row / tile_rows * values + column / 32 * 64 + inside / 4 * 16 + row % tile_rows * 4 + inside % 4;
    }
    std::int64_t scale_place(std::int64_t row, std::int64_t group) const {
        return row / tile_rows * scales + group * tile_rows + row % tile_rows;
    }
    /// The byte with the zero points of a group and its neighbour.
    std::int64_t zero_place(std::int64_t row, std::int64_t group) const {
        return row / tile_rows * zeros + group / 2 * tile_rows + row % tile_rows;
    }
};

struct ProductCall {
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    Weights weights;
    const void* x = nullptr;          // fp32, bf16 or int8, rows of k; int8 beside int4
    const void* packed = nullptr;     // the same in panels, where they are read
    const float* x_scales = nullptr;  // int8: one a row; int4: one a group
    const float* x_sums = nullptr;    // int4: sum of the values of each group, in units of its scale
    float* y = nullptr;               // rows of n
};

/// The type of x beside weights of some type.
constexpr DType type_of_x(DType weights) {
    return weights == DType::fp32 || weights == DType::bf16 ? weights : DType::int8;
}

/// Rows of x laid together for kernels that multiply several at once.
struct Panels {
    std::int64_t rows = panel_rows;
    std::int64_t rows_of_w = 8;  // that meet a panel at once
    /// Of up to `rows` rows of x; the others are zeros.
    void (*pack)(const void* x, std::int64_t m, std::int64_t k, DType weights, void* packed) = nullptr;
    bool (*read)(DType weights, std::int64_t m, std::int64_t n, std::int64_t k) = nullptr;

    std::int64_t bytes(std::int64_t m, std::int64_t k, DType weights) const {
        return (m + rows - 1) / rows * rows * k * bits(type_of_x(weights)) / 8;
    }
};

struct ProductKernels {
    const char* name;
    /// Rows [first, last) of W against all rows of x. `first` is a multiple of 8, where x is one row of `abreast` rows
    /// or tiles.
    using Function = void (*)(const ProductCall& call, std::int64_t first, std::int64_t last);
    Function fp32;
    Function bf16;
    Function int8;
    Function int4;
    Panels panels = {};
    bool tiles = false;        // all but fp32 lies in tiles
    std::int64_t abreast = 0;  // rows, or tiles, that few rows of x read side by side in odd parts; 0: in any parts

    bool in_tiles(DType type) const { return tiles && type != DType::fp32; }
    /// int4 in tiles meets x as narrow_for_whole_bytes leaves it.
    bool reads_whole_bytes(DType type) const { return tiles && type == DType::int4; }

    Function of(DType type) const {
        switch (type) {
            case DType::fp32:
                return fp32;
            case DType::bf16:
                return bf16;
            case DType::int8:
                return int8;
            case DType::int4:
                return int4;
            default:
                return nullptr;
        }
    }
};

const ProductKernels& portable_products();
const ProductKernels* neon_products();    // null where the processor (or the build) has no bf16 and i8mm
const ProductKernels* avx2_products();    // likewise for AVX2 with FMA
const ProductKernels* avx512_products();  // likewise for AVX-512 with VNNI and BF16
const ProductKernels* amx_products();     // likewise for tile registers beside AVX-512
const ProductKernels& best_products();

/// All rows of W, shared out over threads.
void multiply(const ProductCall& call, const ProductKernels& kernels, Threads& threads);

}  // namespace roofline::bench
