// The number formats of weights and caches, and what their bits mean: by definition, for the host. Kernels decode by
// shortcuts of their own (fragments.cuh) and are checked against this.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace roofline::cuda::kernels {

/// int8 has a scale a row, int4 a bf16 scale for each 128 values of a row (low nibble first, value = nibble - 8), fp8
/// is e4m3 with a scale a row.
enum class Format { bf16, fp8, int8, int4 };

/// Bits of one value, without scales.
constexpr int bits(Format format) {
    return format == Format::bf16 ? 16 : format == Format::int4 ? 4 : 8;
}

/// Bytes of a matrix of n rows of k values with its scales: n floats for fp8 and int8, n k/128 bf16 for int4.
constexpr double weight_bytes(Format format, int n, int k) {
    const double values = static_cast<double>(n) * static_cast<double>(k);
    const double scales = format == Format::bf16   ? 0.0
                          : format == Format::int4 ? values / 128.0 * 2.0
                                                   : 4.0 * static_cast<double>(n);
    return values * bits(format) / 8.0 + scales;
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

/// Value `index` of a row of packed values, before its scale.
inline double decode(const std::uint8_t* row, std::size_t index, Format format) {
    switch (format) {
        case Format::bf16: {
            std::uint16_t encoded = 0;
            std::memcpy(&encoded, row + 2 * index, 2);
            return decode_bf16(encoded);
        }
        case Format::fp8:
            return decode_e4m3(row[index]);
        case Format::int8:
            return static_cast<double>(static_cast<std::int8_t>(row[index]));
        case Format::int4:
            return (row[index / 2] >> (4 * (index % 2)) & 15) - 8.0;
    }
    return 0.0;
}

}  // namespace roofline::cuda::kernels
