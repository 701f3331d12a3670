#include "roofline/bench/stored_as.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "roofline/model/gguf_mix.hpp"

namespace roofline::bench {

using model::Operator;

double bytes_of_one(const Operator& op) {
    double bytes = op.weight_bytes.constant;
    for (int i = 0; i < op.weight_bytes.size; ++i) {
        const auto& term = op.weight_bytes.terms[static_cast<std::size_t>(i)];
        if (term.feature == op.extent.experts) bytes += term.factor;
    }
    return bytes;
}

std::string unread_by(std::string_view backend, WeightFormat format) {
    return fmt::format("no {} kernel reads {} weights; --dtype {} asks for the nearest that one does", backend,
                       name(format),
                       bits(format) <= 4   ? "int4"
                       : bits(format) <= 8 ? "int8"
                                           : "bf16");
}

namespace {

/// Kinds of files that are mixes of formats, and what they hold.
constexpr auto mixes = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"q4_k", "q4_k + q6_k"}, {"q4_k_m", "q4_k + q6_k"}, {"q5_k", "q5_k + q6_k"}, {"q5_k_m", "q5_k + q6_k"}});

}  // namespace

std::optional<WeightFormat> weight_format(const Format& format) {
    if (format.name == "awq" || format.name == "gptq") return WeightFormat::int4;
    for (const auto& [mix, what] : mixes) {  // the type that most of it is in
        if (format.name == mix) return weight_format_named(what.substr(0, what.find(' ')));
    }
    if (format.name == "int4_g32") return WeightFormat::q4_0;  // 4 bits, and a scale of 16 for 32 of them
    if (format.name == "fp8_e4m3" || format.name == "fp8_e5m2") return WeightFormat::fp8;
    return weight_format_named(format.name);
}

namespace {

/// Of "q4_k + q6_k + f32" those that are known.
void each_type(std::string_view types, const std::function<void(const Format&)>& visit) {
    while (!types.empty()) {
        const std::size_t end = std::min(types.find(" + "), types.size());
        if (const Format* format = find_format(types.substr(0, end))) visit(*format);
        types.remove_prefix(std::min(end + 3, types.size()));
    }
}

/// The formats of GGUF that weights of these types may be in, those of fewer bits first.
struct GgufTypes {
    std::vector<WeightFormat> read;
    bool all_are_read = true;
};
GgufTypes gguf_types(std::string_view types) {
    for (const auto& [mix, what] : mixes) {
        if (types == mix) types = what;
    }
    GgufTypes found;
    each_type(types, [&](const Format& format) {
        if (!model::is_gguf(format)) return;
        if (const auto known = weight_format_named(format.name))
            found.read.push_back(*known);
        else
            found.all_are_read = false;
    });
    std::ranges::stable_sort(found.read, {}, [](WeightFormat one) { return bits(one); });
    return found;
}

double bits_with_scales(WeightFormat format) {
    return bits_per_element(*find_format(name(format)));
}

/// What a matrix of so many bits a weight is in, if that is of GGUF: one of the formats of its file, or of the kind of
/// file that it is named after; where it is between two, its last rows are in the wider one, as many as its bytes say.
/// (What takes turns from layer to layer, or is several matrices in one, is such.)
std::optional<StoredAs> stored_as_gguf(double stored_bits, const Format* own, std::string_view types, double rows) {
    constexpr double near = 0.01;
    const bool of_gguf = own != nullptr && model::is_gguf(*own);
    if (of_gguf && std::abs(bits_per_element(*own) - stored_bits) < near) {
        const auto known = weight_format_named(own->name);
        return known ? std::optional(StoredAs{*known}) : std::nullopt;
    }
    const auto [all, complete] = gguf_types(types);
    for (const WeightFormat one : all) {
        if (std::abs(bits_with_scales(one) - stored_bits) < near) return StoredAs{one};
    }
    if (all.size() == 2 && complete) {
        const double narrow = bits_with_scales(all[0]);
        const double share = (stored_bits - narrow) / (bits_with_scales(all[1]) - narrow);
        if (share > 0.0 && share < 1.0) return StoredAs{all[0], {all[1], std::llround(share * rows)}};
    }
    // A table beside weights of a type without a file: llama.cpp keeps it in more bits.
    for (const WeightFormatFacts& one : weight_formats) {
        if (of_gguf && is_of_gguf(one.format) && std::abs(bits_with_scales(one.format) - stored_bits) < near)
            return StoredAs{one.format};
    }
    return std::nullopt;
}

}  // namespace

bool rounds_activations(std::string_view types) {
    bool found = false;
    each_type(types, [&](const Format& format) {
        const auto known = weight_format_named(format.name);
        found = found || format.weight_only || (known && in_small_groups(*known));
    });
    return found;
}

// The bytes tell where they are other than the format of the model's products says: a head that shares the embedding
// table is as wide as the table, and a file may hold less.
Result<StoredAs> weight_format(const Operator& op, std::string_view types) {
    const std::string label =
        op.extent.weights.substr(0, op.extent.weights.find('/'));  // "int4/bf16": multiplied in bf16
    const Format* stored = find_format(label);
    const double stored_bits = 8.0 * bytes_of_one(op) / (op.extent.inner * op.extent.cols);
    if (const auto found = stored_as_gguf(stored_bits, stored, types, op.extent.cols)) return *found;
    const auto format = stored != nullptr ? weight_format(*stored) : std::nullopt;
    if (format && is_of_gguf(*format) && model::is_gguf(*stored))
        return fail(fmt::format("no kernel reads {} of {:.3g} bits", label, stored_bits));
    if (!format) {
        std::string instead;
        if (stored != nullptr && model::is_gguf(*stored)) {
            instead = "; of GGUF those in " + names_of_gguf() + " are read";
        } else if (const int wide = stored != nullptr ? bits(stored->value) : 0; wide == 8 || wide == 4) {
            instead =
                fmt::format("; --dtype {} asks for the nearest that one does", wide == 8 ? "fp8 or int8" : "int4");
        }
        return fail(fmt::format("no kernel reads {} weights{}", label, instead));
    }
    if (stored_bits > 31.9) return StoredAs{WeightFormat::fp32};
    if (stored_bits > 15.9) return StoredAs{bits(*format) < 16 ? WeightFormat::bf16 : *format};
    if (stored_bits < 0.95 * bits(*format)) {
        return fail(fmt::format("no kernel reads weights of {:.3g} bits; --dtype {} asks for the nearest that one does",
                                stored_bits, stored_bits < 6.0 ? "int4" : "int8"));
    }
    // 4.156 with a scale and a zero point for 128 values; 4.5 with a scale for 32.
    if (*format == WeightFormat::int4 && std::abs(stored_bits - bits_with_scales(WeightFormat::q4_0)) < 0.01)
        return StoredAs{WeightFormat::q4_0};
    if (*format == WeightFormat::int4 && stored_bits > 4.3)
        return fail(
            fmt::format("no kernel reads int4 of {:.3g} bits, scales included; --dtype int4 asks for groups of "
                        "128",
                        stored_bits));
    return StoredAs{*format};
}

}  // namespace roofline::bench
