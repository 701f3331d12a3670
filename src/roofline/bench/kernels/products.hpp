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
//   mxfp4       groups of 32 along k, each 16 bytes, in which weights lie as those of int4 do; a byte for each group:
//               w = e2m1 * 2^(byte - 127). x is rounded as beside int4. In plain rows for all kernels
//   nvfp4       the same with a scale in e4m3 for each 16, and one in fp32 for all. x is rounded by 32 values
//   q4_0        values as those of mxfp4; w = (q - 8) * scale, a scale in fp16 for each 32. x is rounded by 32, as it
//               is beside all of GGUF, whose blocks hold the same bits in another order
//   q8_0        rows of int8 with a scale in fp16 for each 32
//   q4_k        values as those of mxfp4; w = q * s * d - o * e. For 256 of a row 16 bytes: d and e in fp16; for each
//               32 a byte with the low halves of s (low) and o; and four bits, the upper two of s (low) and o
//   q5_k        the same with a fifth bit of q: for 256 of a row 128 bytes as those of q4_k, then four times 64 bits,
//               one for a byte: of the low halves of the first 64, of their high halves, of the second 64 likewise
//   q6_k        for 256 of a row 192 bytes: the low halves of q as those of mxfp4, and 64 bytes with the upper two bits
//               of what byte i has in its low half, in its high half, and byte i + 64 likewise; w = (q - 32) * s * d.
//               For each 256 also 18 bytes: d in fp16, a signed s for the first 16 of each 32, and for the second 16
//   fp8         rows of e4m3, one fp32 scale a row; fp8_block: one for 128 x 128, [n / 128][k / 128]. x is fp32. In
//               plain rows for all kernels
// The same bytes in tiles of four rows (the last filled up with zeros), by eights or by fours:
//   fp32, bf16, int8  [n / 4][16 bytes of a row][2 pairs of rows][first or second 8 bytes][2 rows][8 bytes]
//                     [n / 4][4 bytes of a row][4 rows][4 bytes]
//   int4, by either   values  [n / 4][k / 32][4][4 rows][4 of the run's 16]
//                     scales  [n / 4][k / 128][4 rows]
//                     zeros   [n / 4][pair of groups][4 rows], the even group in the low half
//   int4, by fours    sums    [n / 4][k / 128][4 rows], of 17 times the low and 16 times the high halves of a group's
//                             bytes, less than nothing: what x that begins at zero is off by, in units of 128
#pragma once

#include <cstdint>
#include <span>

#include "roofline/bench/numbers.hpp"
#include "roofline/bench/threads.hpp"
#include "roofline/bench/weight_format.hpp"
#include "roofline/core/dtype.hpp"

namespace roofline::bench {

inline constexpr std::int64_t int4_group = 128;
inline constexpr std::int64_t small_group = 32;  // mxfp4, q4_0, q8_0, q4_k, q5_k; and of x beside nvfp4 and q6_k
inline constexpr std::int64_t k_block = 256;     // of q4_k, q5_k and q6_k
inline constexpr std::int64_t nvfp4_group = 16;
inline constexpr std::int64_t fp8_block_side = 128;

inline constexpr bool is_fp8(WeightFormat format) {
    return format == WeightFormat::fp8 || format == WeightFormat::fp8_block;
}
/// Formats that all kernels read in rows, with x in plain rows too.
inline constexpr bool stays_in_rows(WeightFormat format) {
    return is_fp8(format) || in_small_groups(format);
}

/// Values of a row of x that share a scale beside weights of this format.
inline constexpr std::int64_t group_of(WeightFormat format) {
    if (format == WeightFormat::int4) return int4_group;
    return in_small_groups(format) ? small_group : 0;
}
/// What k must be a multiple of.
inline constexpr std::int64_t grain_of(WeightFormat format) {
    if (format == WeightFormat::q4_k || format == WeightFormat::q5_k || format == WeightFormat::q6_k) return k_block;
    return group_of(format) > 0 ? group_of(format) : 16;
}

inline constexpr std::int64_t tile_rows = 4;  // of W
/// Rows of x that are packed together for the kernels that multiply several at once.
inline constexpr std::int64_t panel_rows = 8;

/// Bytes of a row that lie together in a tile.
enum class Tiles : std::uint8_t { none, eights, fours };

struct Weights {
    WeightFormat type = WeightFormat::bf16;
    const void* values = nullptr;
    const float* row_scales = nullptr;           // int8, fp8
    const float* block_scales = nullptr;         // fp8_block
    const Bf16* group_scales = nullptr;          // int4: n x k / 128
    const std::uint8_t* group_zeros = nullptr;   // int4: two to a byte, the low half first
    const std::int16_t* group_sums = nullptr;    // int4 by fours
    const std::uint8_t* group_powers = nullptr;  // mxfp4: n x k / 32
    const std::uint8_t* small_scales = nullptr;  // nvfp4: n x k / 16
    float scale_of_all = 1.0F;                   // nvfp4
    const std::uint16_t* half_scales = nullptr;  // q4_0, q8_0: n x k / 32
    const std::uint8_t* headers = nullptr;       // q4_k, q5_k: n x k / 256 of 16 bytes; q6_k: of 18
    Tiles tiles = Tiles::none;
    // The last rows, where they are in another format; both are in small groups.
    const Weights* others = nullptr;
    std::int64_t other_rows = 0;

    bool in_tiles() const { return tiles != Tiles::none; }
    float group_scale(std::int64_t group) const { return from_bf16(group_scales[group]); }
    /// Of fp8 that of a row, of fp8_block one for every 128 columns.
    const float* fp8_scales(std::int64_t row, std::int64_t k) const {
        if (block_scales == nullptr) return row_scales + row;
        return block_scales + row / fp8_block_side * ((k + fp8_block_side - 1) / fp8_block_side);
    }
    float fp8_scale(std::int64_t row, std::int64_t column, std::int64_t k) const {
        return fp8_scales(row, k)[block_scales == nullptr ? 0 : column / fp8_block_side];
    }
    float group_zero(std::int64_t group) const {
        return static_cast<float>((group_zeros[group / 2] >> (group % 2 * 4)) & 15);
    }
};

/// The byte where byte `at` of a row lies in tiles of whole bytes, in rows of `row_bytes`.
inline std::int64_t tile_place(Tiles tiles, std::int64_t row, std::int64_t at, std::int64_t row_bytes) {
    const std::int64_t tile = row / tile_rows * tile_rows * row_bytes;
    if (tiles == Tiles::fours) return tile + at / 4 * 16 + row % tile_rows * 4 + at % 4;
    return tile + at / 16 * 64 + row % tile_rows / 2 * 32 + at % 16 / 8 * 16 + row % 2 * 8 + at % 8;
}

/// How far tiles of int4 are apart.
struct Int4Tiles {
    std::int64_t
        values;  // bytes, a line of 64 between tiles among them: at powers of two they would share places in L1
    std::int64_t scales;  // and sums
    std::int64_t zeros;   // bytes

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
    const void* x = nullptr;          // rows of k, of the type that the kernels take beside that of the weights
    const void* packed = nullptr;     // the same in panels, where they are read
    const float* x_scales = nullptr;  // int8: one a row; int4 and small groups: one a group
    const float* x_sums = nullptr;    // likewise: sum of the values, in units of the scale
    // int4, where panels ask for it: scales, and sums times them, by groups: [k / 128][m in whole panels]
    const float* turned_scales = nullptr;
    const float* turned_sums = nullptr;
    float* y = nullptr;        // rows of n
    std::int64_t y_pitch = 0;  // numbers from row to row of y, where that is not n

    std::int64_t pitch() const { return y_pitch > 0 ? y_pitch : n; }
};

/// Rows of x laid together for kernels that multiply several at once.
struct Panels {
    std::int64_t rows = panel_rows;
    std::int64_t rows_of_w = 8;  // that meet a panel at once
    /// Of up to `rows` rows of x, of `row_bytes` each; the others are zeros.
    void (*pack)(const void* x, std::int64_t m, std::int64_t row_bytes, WeightFormat weights, void* packed) = nullptr;
    bool (*read)(WeightFormat weights, std::int64_t m, std::int64_t n, std::int64_t k) = nullptr;
    bool turn_factors = false;                          // of x beside int4
    bool (*of_wide_x)(WeightFormat weights) = nullptr;  // whether x is packed as it is in fp32, not as others read it

    std::int64_t bytes(std::int64_t m, std::int64_t row_bytes) const {
        return (m + rows - 1) / rows * rows * row_bytes;
    }
};

/// Whether int4 meets x as narrow_for_whole_bytes leaves it, and as what kind of bytes.
enum class WholeBytes : std::uint8_t { no, of_signed_x, of_unsigned_x };

struct ProductKernels {
    const char* name;
    /// Rows [first, last) of W against all rows of x. `first` is a multiple of 8, where x is one row of `abreast` rows
    /// or tiles.
    using Function = void (*)(const ProductCall& call, std::int64_t first, std::int64_t last);
    Function fp32;
    Function bf16;
    Function int8;
    Function int4;
    Function groups;  // in small ones
    Function fp8;     // and fp8_block
    Panels panels = {};
    Tiles tiles = Tiles::none;  // how weights lie; in fp32 only by fours
    std::int64_t abreast = 0;   // rows, or tiles, that few rows of x read side by side in odd parts; 0: in any parts
    DType x_of_bf16 = DType::bf16;  // the type of x beside weights in bf16
    WholeBytes whole_bytes = WholeBytes::no;

    bool in_tiles(WeightFormat type) const {
        if (stays_in_rows(type)) return false;
        return tiles == Tiles::fours || (tiles == Tiles::eights && type != WeightFormat::fp32);
    }
    /// The type of x beside weights of some type.
    DType type_of_x(WeightFormat weights) const {
        if (weights == WeightFormat::bf16) return x_of_bf16;
        return weights == WeightFormat::fp32 || is_fp8(weights) ? DType::fp32 : DType::int8;
    }

    Function of(WeightFormat type) const {
        if (in_small_groups(type)) return groups;
        if (is_fp8(type)) return fp8;
        switch (type) {
            case WeightFormat::fp32:
                return fp32;
            case WeightFormat::bf16:
                return bf16;
            case WeightFormat::int8:
                return int8;
            case WeightFormat::int4:
                return int4;
            default:
                return nullptr;
        }
    }
};

const ProductKernels& portable_products();
const ProductKernels* neon_products();         // null where the processor (or the build) has no bf16 and i8mm
const ProductKernels* neon_dot_products();     // likewise for dot products of bytes
const ProductKernels* avx2_products();         // likewise for AVX2 with FMA
const ProductKernels* avx512_products();       // likewise for AVX-512
const ProductKernels* avx512_vnni_products();  // likewise for VNNI beside it
const ProductKernels* amx_products();          // likewise for tile registers beside these
const ProductKernels& best_products();

/// All rows of W, shared out over threads.
void multiply(const ProductCall& call, const ProductKernels& kernels, Threads& threads);
/// Those of several products (of experts, of heads) in one go: between small ones threads need not wait for each other.
void multiply(std::span<const ProductCall> calls, const ProductKernels& kernels, Threads& threads);

}  // namespace roofline::bench
