// Weights of eight and four bits as operands of the tensor cores, and the form in which activations meet them
// (product_digits.cuh).
#pragma once

#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/digits.cuh"
#include "roofline/bench/cuda/fragments.cuh"

namespace roofline::cuda::kernels {

/// sum += a b for a 16 x 32 and b 32 x 8 in int8.
__device__ inline void mma_int8(int (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,
                                std::uint32_t b0, std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// A lane takes 16 consecutive bytes of a chunk, 64 of a row.
struct WholePieces {
#if __CUDA_ARCH__ >= 900
    __device__ static uint4 read(std::uint32_t row, int corner) {
        return shared_read(row + static_cast<std::uint32_t>(corner * 16));
    }
#endif
};

/// Activations as two columns of digits. Sums of whole numbers begin at the bits of 1.5 x 2^23: as a float, that plus
/// the sum, which stays below 2^22 (64 bytes or 128 nibbles, each times a digit: 2^21 at most).
struct DigitColumns : WholePieces {
    static constexpr bool scaled = true;  // they have units, and weights scales
    static constexpr int columns = 2;     // a row of activations
    static constexpr int together = 1;    // pieces of a chunk that have columns of their own
    static constexpr int sums = 2;        // that a lane keeps: of its two rows of weights, for one row of activations
    using Sum = int;
    static constexpr Sum start = 0x4B400000;
    static constexpr int unit_less = IntegerDigits::unit;
    __device__ static int activation(int tile, int corner, int /*sum*/) { return 4 * tile + corner; }
    __device__ static constexpr int below(int sum) { return sum; }  // whether it is of the lower row of weights
    __device__ static float value(Sum sum) { return __int_as_float(sum) - 12582912.0f; }
    __device__ static float of(const Sum (&sum)[4], int index) {
        return value(sum[2 * index]) + IntegerDigits::low_weight * value(sum[2 * index + 1]);
    }
    __device__ static void multiply(Sum (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                    std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
        mma_int8(sum, a0, a1, a2, a3, b0, b1);
    }
    /// The one sum of a lane that keeps that of its upper or its lower row alone.
    __device__ static float one(const Sum (&sum)[4], bool lower) {
        return value(lower ? sum[2] : sum[0]) + IntegerDigits::low_weight * value(lower ? sum[3] : sum[1]);
    }
    /// Puts eight activations of `row`, from the `rest`th on of those that a lane in this corner takes of the chunk.
    template <class Weights>
    __device__ static void put(std::uint8_t* chunk, const uint4& eight, int power, int row, int all_columns, int corner,
                               int rest) {
        const EightDigits cut = cut_eight<Weights>(eight, power);
        std::uint8_t* to = chunk + (rest / 16 * all_columns + 2 * row) * 64 + corner * 16 + rest % 16;
        *reinterpret_cast<uint2*>(to) = cut.high;
        *reinterpret_cast<uint2*>(to + 64) = cut.low;
    }
};

/// Activations as fp16, a column each.
struct HalfColumns : WholePieces {
    static constexpr bool scaled = true;
    static constexpr int columns = 1;
    static constexpr int together = 1;
    static constexpr int sums = 4;
    using Sum = float;
    static constexpr Sum start = 0.0f;
    static constexpr int unit_less = 0;
    __device__ static int activation(int tile, int corner, int sum) { return 8 * tile + 2 * corner + sum % 2; }
    __device__ static constexpr int below(int sum) { return sum / 2; }
    __device__ static float of(const Sum (&sum)[4], int index) { return sum[index]; }
    __device__ static float one(const Sum (&sum)[4], bool lower) { return lower ? sum[2] : sum[0]; }
    __device__ static void multiply(Sum (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                    std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
        mma_fp16(sum, a0, a1, a2, a3, b0, b1);
    }
    template <class Weights>
    __device__ static void put(std::uint8_t* chunk, const uint4& eight, int power, int row, int all_columns, int corner,
                               int rest) {
        *reinterpret_cast<uint4*>(chunk + (rest / 8 * all_columns + row) * 64 + corner * 16) =
            halve_eight(eight, power);
    }
};

/// Where the scales of weights are applied: a float a row to its sum; one for a chunk, of a row or of a block of 128 of
/// them, to the sum of the chunk; those of 16 bytes of a row or of half as many, to their sums (fp4_digits.cuh); or to
/// the operands, where lanes have weights of different groups.
enum class Scaling { rows, groups, blocks, pieces, operands };

/// Bytes are operands as they are.
struct Int8Digits : DigitColumns, InOrder {
    static constexpr int values = 16;  // in 16 bytes
    static constexpr int words = 4;    // of operands in them
    static constexpr Scaling scaling = Scaling::rows;
    static constexpr float factor = 1.0f;  // what an operand must be multiplied by to be the weight
    __device__ static void operands(const uint4& packed, std::uint32_t (&operand)[words]) {
        operand[0] = packed.x, operand[1] = packed.y, operand[2] = packed.z, operand[3] = packed.w;
    }
};

/// (bits & mask) ^ turned, by one instruction: with both constants in registers, which the compiler does not do itself
/// (an instruction has room for one constant, so it takes two).
__device__ inline std::uint32_t masked_turned(std::uint32_t bits, std::uint32_t mask, std::uint32_t turned) {
    std::uint32_t result;
    asm("lop3.b32 %0, %1, %2, %3, 0x6A;" : "=r"(result) : "r"(bits), "r"(mask), "r"(turned));
    return result;
}

/// A constant that the compiler takes for an unknown of each lane, and so keeps in a register: of what it knows, or
/// knows to be the same in all lanes, it makes a new copy for every use. (Lane 31 is not below itself.)
__device__ inline std::uint32_t in_register(std::uint32_t constant) {
    std::uint32_t below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    return constant + (below >> 31);
}

/// A nibble in the upper half of a byte, its upper bit turned, is 16 (nibble - 8) in two's complement. Of each eight
/// nibbles the even ones come first.
struct Int4Digits : DigitColumns {
    static constexpr int values = 32;
    static constexpr int words = 8;
    static constexpr Scaling scaling = Scaling::groups;
    static constexpr int scale_values = 128;  // that share one
    static constexpr int scale_bytes = 2;
    static constexpr float factor = 1.0f / 16.0f;
    std::uint32_t upper_half = in_register(0xF0F0F0F0u);
    std::uint32_t upper_bit = in_register(0x80808080u);
    __device__ void operands(const uint4& packed, std::uint32_t (&operand)[words]) const {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const std::uint32_t eight = word(packed, i);
            operand[2 * i] = masked_turned(eight << 4, upper_half, upper_bit);
            operand[2 * i + 1] = masked_turned(eight, upper_half, upper_bit);
        }
    }
    __device__ static constexpr int value_at(int byte) { return byte % 4 * 2 + byte / 4; }
};

/// Every e4m3 is an fp16. (Hopper multiplies e4m3 by warp groups alone; the compiler makes mma.sync of conversions of
/// both operands.)
struct Fp8Halves : HalfColumns {
    static constexpr int values = 16;
    static constexpr int words = 8;
    static constexpr Scaling scaling = Scaling::rows;
    static constexpr float factor = 1.0f;
    __device__ static void operands(const uint4& packed, std::uint32_t (&operand)[words]) {
#pragma unroll
        for (int i = 0; i < words; ++i) operand[i] = fp16_pair(word(packed, i / 2), i % 2);
    }
};

/// The same under scales of 128 x 128: two chunks of a tile of rows share one.
struct Fp8BlockHalves : Fp8Halves {
    static constexpr Scaling scaling = Scaling::blocks;
};

/// e2m1 with a scale for 32 or 16 values. Its bits moved into place are an e4m3 of 2^-6 times the value, subnormals
/// too, which the hardware makes an fp16; the product by the scale is exact. Of each eight nibbles the even ones come
/// first.
struct Fp4Halves : HalfColumns {
    static constexpr int values = 32;
    static constexpr int words = 16;
    static constexpr Scaling scaling = Scaling::operands;
    static constexpr int scale_bytes = 1;
    std::uint32_t sign = in_register(0x80808080u);
    std::uint32_t rest = in_register(0x1C1C1C1Cu);
    /// Four of the eight nibbles of a word, of which `scale` is the pair that they are multiplied by.
    __device__ void four(std::uint32_t shifted_sign, std::uint32_t shifted_rest, std::uint32_t scale,
                         std::uint32_t& first, std::uint32_t& second) const {
        const std::uint32_t bytes = (shifted_sign & sign) | (shifted_rest & rest);
        first = multiply_fp16(fp16_pair(bytes, 0), scale);
        second = multiply_fp16(fp16_pair(bytes, 1), scale);
    }
    __device__ void eight(std::uint32_t nibbles, std::uint32_t scale, std::uint32_t* operand) const {
        four(nibbles << 4, nibbles << 2, scale, operand[0], operand[1]);
        four(nibbles, nibbles >> 2, scale, operand[2], operand[3]);
    }
    template <class Weights>
    __device__ static void put(std::uint8_t* chunk, const uint4& eight, int power, int row, int all_columns, int corner,
                               int rest_of_lane) {
        const uint4 pairs = halve_eight(eight, power);
        *reinterpret_cast<uint4*>(chunk + (rest_of_lane / 8 * all_columns + row) * 64 + corner * 16) = {
            halves_low(pairs.x, pairs.y), halves_low(pairs.z, pairs.w), halves_high(pairs.x, pairs.y),
            halves_high(pairs.z, pairs.w)};
    }
};

/// Scales are powers of two from 2^-28 to 2, as weights have them: others become the nearest of these or zero. Operands
/// are 2^8 times the weight, so that an fp16 has all of them.
struct Mxfp4Halves : Fp4Halves {
    static constexpr int scale_values = 32;
    static constexpr float factor = 1.0f / 256.0f;
    using Scales = std::uint32_t;  // a pair
    /// Of a lane's 16 bytes, the `place`th of a row.
    __device__ static Scales scales(const std::uint8_t* row, int place) {
        constexpr int less = 127 - 15 - 14;  // 2^-6 to 2^8, and fp16's bias
        return static_cast<std::uint32_t>(max(min(static_cast<int>(row[place]), less + 30) - less, 0)) * 0x04000400u;
    }
    __device__ void operands(const uint4& packed, Scales scales, std::uint32_t (&operand)[words]) const {
#pragma unroll
        for (int i = 0; i < 4; ++i) eight(word(packed, i), scales, operand + 4 * i);
    }
};

/// Scales are e4m3. The one that a whole matrix has is applied to sums.
struct Nvfp4Halves : Fp4Halves {
    static constexpr int scale_values = 16;
    static constexpr float factor = 1.0f;
    struct Scales {
        std::uint32_t of[2];
    };
    __device__ static Scales scales(const std::uint8_t* row, int place) {
        constexpr std::uint32_t power = 0x54005400u;  // 2^6 twice
        const std::uint32_t both = reinterpret_cast<const std::uint16_t*>(row)[place];
        return {multiply_fp16(fp16_pair(__byte_perm(both, 0, 0x4400), 0), power),
                multiply_fp16(fp16_pair(__byte_perm(both, 0, 0x4411), 0), power)};
    }
    __device__ void operands(const uint4& packed, Scales scales, std::uint32_t (&operand)[words]) const {
#pragma unroll
        for (int i = 0; i < 4; ++i) eight(word(packed, i), scales.of[i / 2], operand + 4 * i);
    }
};

/// bf16 on both sides, as it is.
struct Bf16Columns : HalfColumns {
    static constexpr bool scaled = false;
    static constexpr int values = 8;
    static constexpr int words = 4;
    static constexpr Scaling scaling = Scaling::rows;
    static constexpr float factor = 1.0f;
    __device__ static void operands(const uint4& packed, std::uint32_t (&operand)[words]) {
        operand[0] = packed.x, operand[1] = packed.y, operand[2] = packed.z, operand[3] = packed.w;
    }
    __device__ static void multiply(Sum (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                    std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
        mma_bf16(sum, a0, a1, a2, a3, b0, b1);
    }
    template <class Weights>
    __device__ static void put(std::uint8_t* chunk, const uint4& eight, int /*power*/, int row, int /*all_columns*/,
                               int corner, int /*rest*/) {
        *reinterpret_cast<uint4*>(chunk + row * 64 + corner * 16) = eight;
    }
};

/// How the rows of a segment lie in shared memory: those with even numbers, then those with odd ones half a line
/// further on. So two rows that are read together lie in banks of their own, and there is one gap, not one behind every
/// row.
template <int Rows, int Segment>
struct SegmentRows {
    static constexpr int bytes = Rows * Segment + 64;
    __host__ __device__ static constexpr std::uint32_t at(int row) {
        return static_cast<std::uint32_t>(row / 2 * Segment + row % 2 * (Rows / 2 * Segment + 64));
    }
};

/// Whether scales come with the tile of weights that they are of.
template <class Weights>
constexpr bool scales_travel = Weights::scaling != Scaling::rows;

/// Bytes of the scales of a row, where they do; and of some rows that lie together in one block.
template <class Weights>
__host__ __device__ constexpr int scale_row_bytes(int k) {
    if constexpr (Weights::scaling == Scaling::blocks) {
        return blocks_of_row(k) * 4;
    } else if constexpr (scales_travel<Weights>) {
        return k / Weights::scale_values * Weights::scale_bytes;
    } else {
        return 0;
    }
}
template <class Weights>
__host__ __device__ constexpr int scale_rows_bytes(int rows, int k) {
    return (Weights::scaling == Scaling::blocks ? 1 : rows) * scale_row_bytes<Weights>(k);
}
/// Where they begin.
template <class Weights>
__device__ std::size_t scale_place(int first_row, int k) {
    const int row = Weights::scaling == Scaling::blocks ? first_row / 128 : first_row;
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(scale_row_bytes<Weights>(k));
}

/// 16 bytes of weights as operands. `scales` are those of the row, where they are applied to operands.
template <class Weights>
__device__ void unpack_row(const Weights& unpack, const uint4& packed, const std::uint8_t* scales, int place,
                           std::uint32_t (&operand)[Weights::words]) {
    if constexpr (Weights::scaling == Scaling::operands) {
        unpack.operands(packed, Weights::scales(scales, place), operand);
    } else {
        unpack.operands(packed, operand);
    }
}

}  // namespace roofline::cuda::kernels
