// Number types. Two ideas that are easy to mix up and are kept apart here:
//   DType   what an engine multiplies in, e.g. bf16, fp8: a device has a rate for it;
//   Format  how numbers lie in memory, e.g. nvfp4 with its scales, Q4_K: it has a size.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "roofline/core/quantity.hpp"

namespace roofline {

enum class DType { fp64, fp32, tf32, bf16, fp16, fp8, fp4, int8, int4 };
inline constexpr std::size_t dtype_count = 9;
inline constexpr std::array<DType, dtype_count> all_dtypes = {
    DType::fp64, DType::fp32, DType::tf32, DType::bf16, DType::fp16, DType::fp8, DType::fp4, DType::int8, DType::int4};

constexpr std::size_t index(DType type) {
    return static_cast<std::size_t>(type);
}
std::string_view name(DType type);
std::optional<DType> parse_dtype(std::string_view text);

/// Bits of one number of this type, as it lies in memory without scales (tf32 is stored as fp32).
int bits(DType type);

/// Multiplying a weight of one type by an activation of another happens in the wider of the two: int4 weights with
/// bf16 activations compute in bf16, they do not compute four times as fast.
DType wider(DType a, DType b);

/// How the scales of a quantised format are shared.
enum class Scaling {
    none,     // plain numbers, or one scale per tensor: too few bytes to count
    channel,  // one per output channel (a column of the product)
    group,    // one per `group` consecutive weights along the inner dimension
    block,    // one per `group` x `group` block
};

/// How numbers lie in memory.
struct Format {
    std::string_view name;
    DType value = DType::bf16;   // what an unpacked number is multiplied as, when activations are as narrow
    double element_bits = 16.0;  // of the payload alone
    Scaling scaling = Scaling::none;
    int group = 0;
    double scale_bits = 0.0;   // scale and zero point of one group
    bool weight_only = false;  // engines unpack it and compute in the activation type, whatever that is
    std::string_view note = {};
};

/// F4: bytes of a matrix of `inner` x `cols` numbers in a format, scales included.
Bytes matrix_bytes(const Format& format, double inner, double cols);

/// Average bits of one number of a long row, scales included (channel scales vanish).
double bits_per_element(const Format& format);

/// Every format known by name: plain types, quantised formats, GGUF's types and its file mixes.
std::span<const Format> all_formats();
const Format* find_format(std::string_view name);
const Format& plain_format(DType type);

}  // namespace roofline
