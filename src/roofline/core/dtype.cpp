#include "roofline/core/dtype.hpp"

#include <cmath>

namespace roofline {
namespace {

constexpr std::array<std::string_view, dtype_count> dtype_names = {"fp64", "fp32", "tf32", "bf16", "fp16",
                                                                   "fp8",  "fp4",  "int8", "int4"};

bool same_letters(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const auto plain = [](char c) {
            if (c == '-') return '_';
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        };
        if (plain(a[i]) != plain(b[i])) return false;
    }
    return true;
}

struct Spelling {
    std::string_view text;
    std::string_view meaning;
};

// What people type elsewhere (PyTorch, vLLM, llama.cpp), and the name it has here.
constexpr auto spellings = std::to_array<Spelling>({
    {"half", "fp16"},
    {"float16", "fp16"},
    {"f16", "fp16"},
    {"bfloat16", "bf16"},
    {"float", "fp32"},
    {"float32", "fp32"},
    {"f32", "fp32"},
    {"float64", "fp64"},
    {"double", "fp64"},
    {"e4m3", "fp8_e4m3"},
    {"e5m2", "fp8_e5m2"},
    {"float8_e4m3fn", "fp8_e4m3"},
    {"float8_e5m2", "fp8_e5m2"},
    {"fp8_e4m3fn", "fp8_e4m3"},
    {"f8_e4m3", "fp8_e4m3"},
    {"f8_e5m2", "fp8_e5m2"},
    {"i8", "int8"},
    {"w8a8", "int8"},
    {"int4_awq", "awq"},
    {"w4a16", "int4"},
    {"fp4", "nvfp4"},
});

/// Unpacked by the same kernels as int4, whatever their width.
constexpr Format odd_integer(std::string_view name, double bits) {
    return {.name = name,
            .value = DType::int4,
            .element_bits = bits,
            .scaling = Scaling::group,
            .group = 128,
            .scale_bits = 16 + bits,
            .weight_only = true};
}

constexpr int k_block = 256;  // GGUF's K- and I-quants pack 256 numbers

constexpr Format gguf(std::string_view name, double bits) {
    return {.name = name, .value = DType::int8, .element_bits = bits, .weight_only = true};
}
constexpr std::string_view mix_note =
    "each tensor in the type that llama.cpp gives it in such a file; give the .gguf itself for exact bytes";
constexpr Format gguf_mix(std::string_view name, double bits) {
    return {.name = name, .value = DType::int8, .element_bits = bits, .weight_only = true, .note = mix_note};
}

// Payload bits and scales of each format, from its definition; docs/method.md, table T1.
constexpr auto formats = std::to_array<Format>({
    {.name = "fp64", .value = DType::fp64, .element_bits = 64},
    {.name = "fp32", .value = DType::fp32, .element_bits = 32},
    {.name = "tf32", .value = DType::tf32, .element_bits = 32},
    {.name = "bf16", .value = DType::bf16, .element_bits = 16},
    {.name = "fp16", .value = DType::fp16, .element_bits = 16},
    {.name = "fp8", .value = DType::fp8, .element_bits = 8},
    {.name = "fp8_e4m3", .value = DType::fp8, .element_bits = 8},
    {.name = "fp8_e5m2", .value = DType::fp8, .element_bits = 8},
    {.name = "fp8_block",
     .value = DType::fp8,
     .element_bits = 8,
     .scaling = Scaling::block,
     .group = 128,
     .scale_bits = 32},
    {.name = "mxfp8", .value = DType::fp8, .element_bits = 8, .scaling = Scaling::group, .group = 32, .scale_bits = 8},
    {.name = "int8", .value = DType::int8, .element_bits = 8, .scaling = Scaling::channel, .scale_bits = 32},
    // AWQ and GPTQ: a 16-bit scale and a 4-bit zero point for 128 weights
    {.name = "int4",
     .value = DType::int4,
     .element_bits = 4,
     .scaling = Scaling::group,
     .group = 128,
     .scale_bits = 20,
     .weight_only = true},
    {.name = "awq",
     .value = DType::int4,
     .element_bits = 4,
     .scaling = Scaling::group,
     .group = 128,
     .scale_bits = 20,
     .weight_only = true},
    {.name = "gptq",
     .value = DType::int4,
     .element_bits = 4,
     .scaling = Scaling::group,
     .group = 128,
     .scale_bits = 20,
     .weight_only = true},
    {.name = "int4_g32",
     .value = DType::int4,
     .element_bits = 4,
     .scaling = Scaling::group,
     .group = 32,
     .scale_bits = 16,
     .weight_only = true},
    // The same with other widths: GPTQ, MLX and their kin.
    odd_integer("int2", 2),
    odd_integer("int3", 3),
    odd_integer("int5", 5),
    odd_integer("int6", 6),
    {.name = "mxfp4", .value = DType::fp4, .element_bits = 4, .scaling = Scaling::group, .group = 32, .scale_bits = 8},
    {.name = "nvfp4", .value = DType::fp4, .element_bits = 4, .scaling = Scaling::group, .group = 16, .scale_bits = 8},
    // GGUF: bytes of a block over the numbers in it
    gguf("q4_0", 18 * 8 / 32.0),
    gguf("q4_1", 20 * 8 / 32.0),
    gguf("q5_0", 22 * 8 / 32.0),
    gguf("q5_1", 24 * 8 / 32.0),
    gguf("q8_0", 34 * 8 / 32.0),
    gguf("q8_1", 36 * 8 / 32.0),
    gguf("q2_k", 84 * 8.0 / k_block),
    gguf("q3_k", 110 * 8.0 / k_block),
    gguf("q4_k", 144 * 8.0 / k_block),
    gguf("q5_k", 176 * 8.0 / k_block),
    gguf("q6_k", 210 * 8.0 / k_block),
    gguf("q8_k", 292 * 8.0 / k_block),
    gguf("iq1_s", 50 * 8.0 / k_block),
    gguf("iq1_m", 56 * 8.0 / k_block),
    gguf("iq2_xxs", 66 * 8.0 / k_block),
    gguf("iq2_xs", 74 * 8.0 / k_block),
    gguf("iq2_s", 82 * 8.0 / k_block),
    gguf("iq3_xxs", 98 * 8.0 / k_block),
    gguf("iq3_s", 110 * 8.0 / k_block),
    gguf("iq4_nl", 18 * 8 / 32.0),
    gguf("iq4_xs", 136 * 8.0 / k_block),
    gguf("tq1_0", 54 * 8.0 / k_block),
    gguf("tq2_0", 66 * 8.0 / k_block),
    gguf_mix("q3_k_s", 3.6429),
    gguf_mix("q3_k_m", 3.9960),
    gguf_mix("q3_k_l", 4.2979),
    gguf_mix("q4_k_s", 4.6672),
    gguf_mix("q4_k_m", 4.8944),
    gguf_mix("q5_k_s", 5.5704),
    gguf_mix("q5_k_m", 5.7036),
});

}  // namespace

std::string_view name(DType type) {
    return dtype_names[index(type)];
}

std::optional<DType> parse_dtype(std::string_view text) {
    const Format* format = find_format(text);
    if (format == nullptr) return std::nullopt;
    return format->value;
}

int bits(DType type) {
    switch (type) {
        case DType::fp64:
            return 64;
        case DType::fp32:
        case DType::tf32:
            return 32;
        case DType::bf16:
        case DType::fp16:
            return 16;
        case DType::fp8:
        case DType::int8:
            return 8;
        case DType::fp4:
        case DType::int4:
            return 4;
    }
    return 16;
}

DType wider(DType a, DType b) {
    return bits(a) >= bits(b) ? a : b;
}

Bytes matrix_bytes(const Format& format, double inner, double cols) {
    const double payload = inner * cols * format.element_bits;
    double scales = 0.0;
    switch (format.scaling) {
        case Scaling::none:
            break;
        case Scaling::channel:
            scales = cols;
            break;
        case Scaling::group:
            scales = std::ceil(inner / format.group) * cols;
            break;
        case Scaling::block:
            scales = std::ceil(inner / format.group) * std::ceil(cols / format.group);
            break;
    }
    return Bytes((payload + scales * format.scale_bits) / 8.0);
}

double bits_per_element(const Format& format) {
    switch (format.scaling) {
        case Scaling::none:
        case Scaling::channel:
            break;
        case Scaling::group:
            return format.element_bits + format.scale_bits / format.group;
        case Scaling::block:
            return format.element_bits + format.scale_bits / (static_cast<double>(format.group) * format.group);
    }
    return format.element_bits;
}

std::span<const Format> all_formats() {
    return formats;
}

const Format* find_format(std::string_view text) {
    for (const Spelling& spelling : spellings) {
        if (same_letters(text, spelling.text)) {
            text = spelling.meaning;
            break;
        }
    }
    for (const Format& format : formats) {
        if (same_letters(text, format.name)) return &format;
    }
    return nullptr;
}

const Format& plain_format(DType type) {
    // A bare engine type as a storage type: its usual container.
    switch (type) {
        case DType::fp4:
            return *find_format("nvfp4");
        case DType::int4:
            return *find_format("int4");
        default:
            return *find_format(name(type));
    }
}

}  // namespace roofline
