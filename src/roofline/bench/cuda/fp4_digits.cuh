// Weights in e2m1 under scales of 32 or 16 values, met by activations as digits (digits.hpp) while their scales go to
// the sums. Twice an e2m1 is a whole number, so a byte is an operand; and a byte permutation with the four nibbles of
// half a word as its selectors makes four of them: three bits of a nibble choose one of eight sizes, and where the
// fourth, the sign, is set it gives the sign of that size instead, which is zero. Of a word as it is come so the
// positive values, of the word with its signs turned the sizes of the negative ones, and both have sums of their own.
// These are seven instructions for eight weights, where fp16 of them (Fp4Halves) takes fifteen.
//
// A lane's 16 bytes of a row, a piece, have scales of their own, but a tensor instruction adds up what the four lanes
// of a quad have. Of its eight columns a row of activations takes two. So with one row each piece has two columns, and
// activations stand there beside the lane that has the piece, zeros beside the others: the sums of the four pieces come
// out apart, each in another lane of a quad, which applies its scale. With more rows there are fewer pieces together.
#pragma once

#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/digit_weights.cuh"

namespace roofline::cuda::kernels {

/// Four bytes of `low` and `high` by the lower four nibbles of `selectors`; where a nibble's upper bit is set, the sign
/// of the byte, eight times.
__device__ inline std::uint32_t four_of(std::uint32_t low, std::uint32_t high, std::uint32_t selectors) {
    std::uint32_t four;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(four) : "r"(low), "r"(high), "r"(selectors));
    return four;
}

/// The activations that a chunk meets: where their digits lie, in how many columns, and the unit of each row.
struct ChunkActivations {
    std::uint32_t digits;
    int columns;
    const float* units;
    int rows;
};

/// Scales of a lane's two rows, those of the lower one so many bytes after those of the upper one. Beyond the `last` of
/// a row activations are zero.
struct PieceScales {
    const std::uint8_t* upper;
    int below;
    int last;
};

/// `Scale`: how scales are read, and how many a piece has. `Together`: pieces of a chunk that share a tensor
/// instruction, 4 for one row of activations, 2 for two.
template <class Scale, int Together>
struct Fp4Digits : DigitColumns, InOrder {
    static_assert(Together == 4 || (Together == 2 && Scale::parts == 1));
    static constexpr int together = Together;
    static constexpr int values = 32;
    static constexpr int words = 8;  // of operands in 16 bytes, for values of one sign
    static constexpr Scaling scaling = Scaling::pieces;
    static constexpr int scale_values = 32 / Scale::parts;
    static constexpr int scale_bytes = 1;
    static constexpr float factor = 0.5f;
    static constexpr int tile_rows = 4 / Together;    // of activations in a tile of columns
    static constexpr int steps = 4 / Together;        // that take a chunk, as many pieces together at each
    static constexpr int piece_lanes = 4 / Together;  // of a quad that share a piece
    std::uint32_t low = in_register(0x03020100u);     // twice 0, 0.5, 1, 1.5
    std::uint32_t high = in_register(0x0C080604u);    // twice 2, 3, 4, 6

    __device__ static int activation(int tile, int corner, int /*sum*/) { return tile_rows * tile + corner / Together; }

    /// Puts eight activations, from the `rest`th on of those of a piece, where the lanes that meet them will read them.
    template <class Weights>
    __device__ static void put(std::uint8_t* chunk, const uint4& eight, int power, int row, int all_columns, int piece,
                               int rest) {
        const EightDigits cut = cut_eight<Weights>(eight, power);
        constexpr int lane_values = 8 * Together;
        const int corner = piece % Together * piece_lanes + rest / lane_values;
        const int load = piece / Together + rest % lane_values / 16;
        std::uint8_t* to = chunk + (load * all_columns + 2 * row) * 64 + corner * 16 + rest % 16;
        *reinterpret_cast<uint2*>(to) = cut.high;
        *reinterpret_cast<uint2*>(to + 64) = cut.low;
    }

#if __CUDA_ARCH__ >= 900
    /// The lane's 16 bytes of a chunk: a piece, or halves of two.
    __device__ static uint4 read(std::uint32_t row, int corner) {
        if constexpr (Together == 4) {
            return WholePieces::read(row, corner);
        } else {
            const uint2 first = shared_read_eight(row + static_cast<std::uint32_t>(corner * 8));
            const uint2 second = shared_read_eight(row + static_cast<std::uint32_t>(corner * 8 + 32));
            return {first.x, first.y, second.x, second.y};
        }
    }

    /// Adds a chunk, of this number, to the sums of `Tiles` tiles of columns: `upper` and `lower` are what the lane has
    /// read of its two rows.
    template <int Tiles>
    __device__ void add_chunk(float (&totals)[Tiles][sums], const uint4& upper, const uint4& lower,
                              const PieceScales& scales, const ChunkActivations& x, int chunk) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int pair = lane / 8;  // of columns
        const int corner = lane % 4;
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            std::uint32_t positive[2][2 * Together];
            std::uint32_t negative[2][2 * Together];
#pragma unroll
            for (int row = 0; row < 2; ++row) {
#pragma unroll
                for (int i = 0; i < Together; ++i) {
                    const std::uint32_t eight = word(row == 0 ? upper : lower, step * Together + i);
                    const std::uint32_t turned = eight ^ 0x88888888u;
                    positive[row][2 * i] = four_of(low, high, eight);
                    positive[row][2 * i + 1] = four_of(low, high, eight >> 16);
                    negative[row][2 * i] = four_of(low, high, turned);
                    negative[row][2 * i + 1] = four_of(low, high, turned >> 16);
                }
            }
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile) {
                const int column = 2 * (tile_rows * tile + pair / Together) + lane / 4 % 2;
                const bool counts = corner / piece_lanes == pair % Together && column < x.columns;
                std::uint32_t other[2 * Together];
#pragma unroll
                for (int j = 0; j < Together / 2; ++j) {
                    const int load = step * (Together / 2) + j;
                    const uint4 some = shared_read_if(
                        counts, x.digits + static_cast<std::uint32_t>((load * x.columns + column) * 64 + corner * 16));
#pragma unroll
                    for (int i = 0; i < 4; ++i) other[4 * j + i] = word(some, i);
                }
                const float unit = x.units[min(activation(tile, corner, 0), x.rows - 1)];
                const int piece = chunk * 4 + step * Together + corner % Together;
#pragma unroll
                for (int part = 0; part < Scale::parts; ++part) {
                    constexpr int part_words = 2 * Together / Scale::parts;
                    Sum plus[4] = {start, start, start, start};
                    Sum minus[4] = {0, 0, 0, 0};
#pragma unroll
                    for (int j = part * part_words; j < (part + 1) * part_words; j += 2) {
                        multiply(plus, positive[0][j], positive[1][j], positive[0][j + 1], positive[1][j + 1], other[j],
                                 other[j + 1]);
                        multiply(minus, negative[0][j], negative[1][j], negative[0][j + 1], negative[1][j + 1],
                                 other[j], other[j + 1]);
                    }
                    const int place = min(piece * Scale::parts + part, scales.last);
#pragma unroll
                    for (int row = 0; row < 2; ++row) {
                        const float sum = value(plus[2 * row] - minus[2 * row]) +
                                          IntegerDigits::low_weight * value(plus[2 * row + 1] - minus[2 * row + 1]);
                        totals[tile][row] += unit * Scale::of(scales.upper[row * scales.below + place]) * sum;
                    }
                }
            }
        }
    }

    /// Lanes whose sums are of the same row of activations add them up: each of them has all.
    __device__ static void join(float& sum) {
        sum += __shfl_xor_sync(~0u, sum, 1);
        if constexpr (Together == 4) sum += __shfl_xor_sync(~0u, sum, 2);
    }
#endif
};

/// Powers of two: a float's exponent has the same bias. (2^-127 is read as zero.)
struct Mxfp4Scale {
    static constexpr int parts = 1;
    __device__ static float of(std::uint8_t bits) { return __uint_as_float(static_cast<std::uint32_t>(bits) << 23); }
};

/// e4m3 without a sign: its bits in a float's place are 2^-120 of it, those of subnormals too.
struct Nvfp4Scale {
    static constexpr int parts = 2;
    __device__ static float of(std::uint8_t bits) {
        return __uint_as_float(static_cast<std::uint32_t>(bits) << 20) * 0x1p120f;
    }
};

template <int Together>
using Mxfp4Digits = Fp4Digits<Mxfp4Scale, Together>;
using Nvfp4Digits = Fp4Digits<Nvfp4Scale, 4>;

}  // namespace roofline::cuda::kernels
