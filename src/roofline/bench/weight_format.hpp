// How weights lie in memory for the kernels of `bench`: of the formats that core/dtype.hpp knows by name those that
// some kernel reads.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace roofline::bench {

/// int8, fp8: a scale a row; fp8_block: one for 128 x 128; int4: one of 16 bits and a zero point of 4 for 128 of a row;
/// mxfp4 and nvfp4: one of 8 bits, a power of two or e4m3, for 32 or 16 (nvfp4: and one for all).
enum class WeightFormat { fp32, bf16, fp16, int8, fp8, fp8_block, int4, mxfp4, nvfp4 };

/// Names and bits of a value, without scales.
struct WeightFormatFacts {
    WeightFormat format;
    std::string_view name;
    int bits;
};
inline constexpr auto weight_formats = std::to_array<WeightFormatFacts>({
    {WeightFormat::fp32, "fp32", 32},
    {WeightFormat::bf16, "bf16", 16},
    {WeightFormat::fp16, "fp16", 16},
    {WeightFormat::int8, "int8", 8},
    {WeightFormat::fp8, "fp8", 8},
    {WeightFormat::fp8_block, "fp8_block", 8},
    {WeightFormat::int4, "int4", 4},
    {WeightFormat::mxfp4, "mxfp4", 4},
    {WeightFormat::nvfp4, "nvfp4", 4},
});

constexpr const WeightFormatFacts& facts(WeightFormat format) {
    return weight_formats[static_cast<std::size_t>(format)];
}
constexpr std::string_view name(WeightFormat format) {
    return facts(format).name;
}
constexpr int bits(WeightFormat format) {
    return facts(format).bits;
}
constexpr std::optional<WeightFormat> weight_format_named(std::string_view name) {
    for (const WeightFormatFacts& one : weight_formats) {
        if (one.name == name) return one.format;
    }
    return std::nullopt;
}

}  // namespace roofline::bench
