#include "roofline/render/numbers.hpp"

#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace roofline::render {
namespace {

/// Four significant digits of a number from 1 to 1000.
std::string four_digits(double value) {
    if (value >= 999.95) return fmt::format("{:.0f}", value);
    if (value >= 99.995) return fmt::format("{:.1f}", value);
    if (value >= 9.9995) return fmt::format("{:.2f}", value);
    return fmt::format("{:.3f}", value);
}

}  // namespace

std::string with_unit(double value, std::string_view unit) {
    static constexpr std::array<std::string_view, 11> prefixes = {"p", "n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    if (value == 0.0) return fmt::format("0 {}", unit);
    if (!std::isfinite(value)) return fmt::format("{} {}", value > 0 ? "inf" : "-inf", unit);
    std::size_t prefix = 4;
    double scaled = std::fabs(value);
    while (scaled >= 999.95 && prefix + 1 < prefixes.size()) {
        scaled /= 1000.0;
        ++prefix;
    }
    while (scaled < 0.99995 && prefix > 0) {
        scaled *= 1000.0;
        --prefix;
    }
    return fmt::format("{}{} {}{}", value < 0.0 ? "-" : "", four_digits(scaled), prefixes[prefix], unit);
}

std::string time(Seconds seconds) {
    return with_unit(seconds.value, "s");
}

std::string bytes(Bytes bytes) {
    return bytes.value >= 1.0 && bytes.value < 1000.0 ? fmt::format("{:.0f} B", bytes.value)
                                                      : with_unit(bytes.value, "B");
}

std::string flops(Flops flops) {
    return flops.value >= 1.0 && flops.value < 1000.0 ? fmt::format("{:.0f} FLOP", flops.value)
                                                      : with_unit(flops.value, "FLOP");
}

std::string_view peak_unit(DType type) {
    return type == DType::int8 || type == DType::int4 ? "OP/s" : "FLOP/s";
}

std::string_view peak_unit(std::string_view figure) {
    const std::string_view type = figure.substr(figure.find('.') + 1);  // all of it where there is no dot
    const auto known = parse_dtype(type.substr(0, type.find_first_of(" .")));
    return known ? peak_unit(*known) : "FLOP/s";
}

std::string intensity(FlopsPerByte value) {
    if (!std::isfinite(value.value)) return "inf";
    if (value.value == 0.0) return "0";
    if (value.value < 0.001) return "<0.001";
    return plain(value.value);
}

std::string percent(double fraction) {
    return fmt::format("{:.1f}%", 100.0 * fraction);
}

std::string plain(double value) {
    if (!std::isfinite(value)) return "inf";
    if (std::fabs(value) >= 9999.5) return grouped(std::round(value));
    if (value == 0.0) return "0";
    const double size = std::fabs(value);
    return (value < 0.0 ? "-" : "") + (size < 0.99995 ? fmt::format("{:.4f}", size) : four_digits(size));
}

std::string grouped(double value) {
    const std::string digits = fmt::format("{:.0f}", std::fabs(value));
    std::string text = value < 0.0 ? "-" : "";
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
        text += digits[i];
    }
    return text;
}

}  // namespace roofline::render
