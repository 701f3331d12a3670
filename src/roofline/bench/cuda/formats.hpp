// The number formats of weights and caches, and what their bits mean: by definition, for the host. Kernels decode by
// shortcuts of their own (fragments.cuh, digit_weights.cuh, panel_weights.cuh) and are checked against this.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "roofline/bench/cuda/both.hpp"
#include "roofline/bench/weight_format.hpp"

namespace roofline::cuda::kernels {

/// Of them kernels here know bf16, int8, fp8 (e4m3), fp8_block, int4 (low nibble first, value = nibble - 8, a bf16
/// scale and no zero point), mxfp4 and nvfp4 (e2m1, low nibble first); of caches bf16 and fp8.
using Format = bench::WeightFormat;
using bench::bits;

/// What a scale is of: so many rows of a matrix, and of each of them so many values (0: all of them).
struct ScaleShape {
    int rows = 1;
    int values = 0;
    int bytes = 0;  // of a scale; 0: there are none
};
constexpr ScaleShape scale_shape(Format format) {
    switch (format) {
        case Format::int8:
        case Format::fp8:
            return {1, 0, 4};
        case Format::fp8_block:
            return {128, 128, 4};
        case Format::int4:
            return {1, 128, 2};
        case Format::mxfp4:
            return {1, 32, 1};
        case Format::nvfp4:
            return {1, 16, 1};
        default:
            return {};
    }
}

/// Scales of a row of k values, and rows of scales of a matrix of n rows. Of blocks there are multiples of four in a
/// row: so each begins where copies of 16 bytes can.
ROOFLINE_BOTH constexpr int blocks_of_row(int k) {
    return (k + 511) / 512 * 4;
}
constexpr std::size_t scales_of_row(Format format, std::size_t k) {
    if (format == Format::fp8_block) return static_cast<std::size_t>(blocks_of_row(static_cast<int>(k)));
    const auto values = static_cast<std::size_t>(scale_shape(format).values);
    return values == 0 ? 1 : (k + values - 1) / values;
}
constexpr std::size_t rows_of_scales(Format format, std::size_t n) {
    const auto rows = static_cast<std::size_t>(scale_shape(format).rows);
    return (n + rows - 1) / rows;
}
/// Bytes of the scales of a matrix of n rows of k values (of nvfp4 without the one that the whole matrix has).
constexpr std::size_t scale_bytes(Format format, std::size_t n, std::size_t k) {
    return rows_of_scales(format, n) * scales_of_row(format, k) * static_cast<std::size_t>(scale_shape(format).bytes);
}

/// Bytes of a matrix with its scales: those that it has, whatever lies between them.
constexpr double weight_bytes(Format format, int n, int k) {
    const ScaleShape scale = scale_shape(format);
    const double values = static_cast<double>(n) * k;
    if (scale.bytes == 0 || values == 0.0) return values * bits(format) / 8.0;
    const double of_a_scale = static_cast<double>(scale.rows) * (scale.values == 0 ? k : scale.values);
    return values * bits(format) / 8.0 + values / of_a_scale * scale.bytes;
}

inline double decode_bf16(std::uint16_t encoded) {
    const std::uint32_t wide = static_cast<std::uint32_t>(encoded) << 16;
    float value = 0.0f;
    std::memcpy(&value, &wide, sizeof value);
    return static_cast<double>(value);
}

/// Sign, four bits of exponent (bias 7), three of mantissa; no infinities, all ones is not a number.
inline double decode_e4m3(std::uint8_t encoded) {
    const int exponent = encoded >> 3 & 15;
    const int mantissa = encoded & 7;
    if (exponent == 15 && mantissa == 7) return std::numeric_limits<double>::quiet_NaN();
    const double size = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    return (encoded & 0x80) != 0 ? -size : size;
}

constexpr float e4m3_largest = 448.0f;

/// The number of e4m3 that is nearest, of two the one with an even mantissa; what is larger than all, the largest.
inline double nearest_e4m3(double value) {
    const double size = std::abs(value);
    if (size >= static_cast<double>(e4m3_largest)) return std::copysign(static_cast<double>(e4m3_largest), value);
    const double step = std::ldexp(1.0, std::max(std::ilogb(std::max(size, 1e-30)), -6) - 3);
    return std::copysign(std::nearbyint(size / step) * step, value);
}

/// Sign, two bits of exponent (bias 1), one of mantissa; all are numbers.
inline double decode_e2m1(int encoded) {
    constexpr double sizes[8] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
    return (encoded & 8) != 0 ? -sizes[encoded & 7] : sizes[encoded & 7];
}

/// Value `index` of a row of packed values, before its scale.
inline double decode(const std::uint8_t* row, std::size_t index, Format format) {
    const auto nibble = [&] { return row[index / 2] >> (4 * (index % 2)) & 15; };
    switch (format) {
        case Format::bf16: {
            std::uint16_t encoded = 0;
            std::memcpy(&encoded, row + 2 * index, 2);
            return decode_bf16(encoded);
        }
        case Format::fp8:
        case Format::fp8_block:
            return decode_e4m3(row[index]);
        case Format::int8:
            return static_cast<double>(static_cast<std::int8_t>(row[index]));
        case Format::int4:
            return nibble() - 8.0;
        case Format::mxfp4:
        case Format::nvfp4:
            return decode_e2m1(nibble());
        default:
            return 0.0;
    }
}

/// The scale of value `index` of a row, from the row's scales.
inline double decode_scale(const std::uint8_t* scales, std::size_t index, Format format) {
    const ScaleShape shape = scale_shape(format);
    if (shape.bytes == 0) return 1.0;
    const std::size_t place = shape.values == 0 ? 0 : index / static_cast<std::size_t>(shape.values);
    const std::uint8_t* at = scales + place * static_cast<std::size_t>(shape.bytes);
    if (format == Format::mxfp4) return std::ldexp(1.0, *at - 127);  // a power of two
    if (format == Format::nvfp4) return decode_e4m3(*at);
    if (format == Format::int4) {
        std::uint16_t encoded = 0;
        std::memcpy(&encoded, at, sizeof encoded);
        return decode_bf16(encoded);
    }
    float scale = 0.0f;
    std::memcpy(&scale, at, sizeof scale);
    return static_cast<double>(scale);
}

}  // namespace roofline::cuda::kernels
