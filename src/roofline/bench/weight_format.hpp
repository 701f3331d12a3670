// How weights lie in memory for the kernels of `bench`: of the formats that core/dtype.hpp knows by name those that
// some kernel reads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace roofline::bench {

/// int8, fp8: a scale a row; fp8_block: one for 128 x 128; int4: one of 16 bits and a zero point of 4 for 128 of a row;
/// mxfp4 and nvfp4: one of 8 bits, a power of two or e4m3, for 32 or 16 (nvfp4: and one for all). Of GGUF: q4_0 and
/// q8_0: one of 16 bits for 32; q4_k, q5_k: one of 6 bits for 32, and what is taken off, likewise; q6_k: one of 8 bits
/// for 16.
enum class WeightFormat { fp32, bf16, fp16, int8, fp8, fp8_block, int4, mxfp4, nvfp4, q4_0, q8_0, q4_k, q5_k, q6_k };

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
    {WeightFormat::q4_0, "q4_0", 4},
    {WeightFormat::q8_0, "q8_0", 8},
    {WeightFormat::q4_k, "q4_k", 4},
    {WeightFormat::q5_k, "q5_k", 5},
    {WeightFormat::q6_k, "q6_k", 6},
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
/// A scale for 16 or 32 weights: one set of functions reads all of these on a processor, beside x in
/// int8.
constexpr bool in_small_groups(WeightFormat format) {
    switch (format) {
        case WeightFormat::mxfp4:
        case WeightFormat::nvfp4:
        case WeightFormat::q4_0:
        case WeightFormat::q8_0:
        case WeightFormat::q4_k:
        case WeightFormat::q5_k:
        case WeightFormat::q6_k:
            return true;
        default:
            return false;
    }
}
/// As llama.cpp's files have them, which no CUDA kernel reads.
constexpr bool is_of_gguf(WeightFormat format) {
    return in_small_groups(format) && format != WeightFormat::mxfp4 && format != WeightFormat::nvfp4;
}
/// Their names: "q4_0, q8_0 and q6_k".
inline std::string names_of_gguf() {
    std::string names;
    std::string_view last;
    for (const WeightFormatFacts& one : weight_formats) {
        if (!is_of_gguf(one.format)) continue;
        if (!last.empty()) names += (names.empty() ? "" : ", ") + std::string(last);
        last = one.name;
    }
    return names + " and " + std::string(last);
}
constexpr std::optional<WeightFormat> weight_format_named(std::string_view name) {
    for (const WeightFormatFacts& one : weight_formats) {
        if (one.name == name) return one.format;
    }
    return std::nullopt;
}

/// The last rows of a matrix that are in another format than those before them: a GGUF may have values in more bits
/// than queries and keys.
struct OtherRows {
    WeightFormat format = WeightFormat::bf16;
    std::int64_t count = 0;

    bool operator==(const OtherRows&) const = default;
};
/// What a matrix is in.
struct StoredAs {
    WeightFormat format = WeightFormat::bf16;
    OtherRows others = {};
};

}  // namespace roofline::bench
