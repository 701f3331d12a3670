#include "roofline/render/chart/scale.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace roofline::render::chart {

double log10_of(double value) {
    int exponent = 0;
    double mantissa = std::frexp(value, &exponent);  // exact: 0.5 <= mantissa < 1
    constexpr double half_of_root = 0.70710678118654752440;
    if (mantissa < half_of_root) {
        mantissa *= 2.0;
        --exponent;
    }
    // ln m = 2 artanh z, z = (m - 1) / (m + 1), |z| < 0.172: thirteen terms leave less than 1e-19.
    const double z = (mantissa - 1.0) / (mantissa + 1.0);
    const double square = z * z;
    double sum = 0.0;
    for (int k = 12; k >= 0; --k) sum = sum * square + 1.0 / (2.0 * k + 1.0);
    constexpr double log10_e = 0.43429448190325182765;
    constexpr double log10_2 = 0.30102999566398119521;
    return exponent * log10_2 + 2.0 * z * sum * log10_e;
}

double power_of_ten(int exponent) {
    double power = 1.0;
    for (int i = 0; i < std::abs(exponent); ++i) power *= 10.0;
    return exponent < 0 ? 1.0 / power : power;
}

int decade_of(double value) {
    int decade = static_cast<int>(std::floor(log10_of(value)));
    if (power_of_ten(decade) > value) --decade;  // the logarithm may be off by its last digit
    if (power_of_ten(decade + 1) <= value) ++decade;
    return decade;
}

double Scale::at(double value) const {
    const double part = logarithmic ? (log10_of(value) - log10_of(low)) / (log10_of(high) - log10_of(low))
                                    : (value - low) / (high - low);
    return from + part * (to - from);
}

std::string engineering(double value) {
    if (value == 0.0) return "0";
    static constexpr std::array<const char*, 7> letters = {"", "k", "M", "G", "T", "P", "E"};
    std::size_t letter = 0;
    double size = std::fabs(value);
    while (size >= 999.9999 && letter + 1 < letters.size()) {
        size /= 1000.0;
        ++letter;
    }
    const std::string digits = size < 1e-4 ? fmt::format("{:.0e}", size) : fmt::format("{:.6g}", size);
    return (value < 0.0 ? "-" : "") + digits + letters[letter];
}

std::vector<Tick> log_ticks(double low, double high) {
    std::vector<Tick> ticks;
    const int first = decade_of(low);
    const int last = decade_of(high * 1.0000001);
    const int decades = last - first;
    const int every = decades > 16 ? 3 : decades > 9 ? 2 : 1;
    for (int decade = first; decade <= last; ++decade) {
        for (int digit = 1; digit <= 9; ++digit) {
            const double value = digit * power_of_ten(decade);
            if (value < low * 0.9999999 || value > high * 1.0000001) continue;
            const bool named = (digit == 1 && (decade - first) % every == 0) ||
                               (decades <= 2 && (digit == 2 || digit == 5)) || decades == 0;
            ticks.push_back({value, named ? engineering(value) : ""});
        }
    }
    return ticks;
}

std::vector<Tick> linear_ticks(double low, double high, int wanted) {
    const double rough = (high - low) / wanted;
    const double power = power_of_ten(decade_of(rough));
    const double step = rough > 5.0 * power   ? 10.0 * power
                        : rough > 2.0 * power ? 5.0 * power
                        : rough > power       ? 2.0 * power
                                              : power;
    std::vector<Tick> ticks;
    for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1.0)
        ticks.push_back({i * step, engineering(i * step)});
    return ticks;
}

std::string engineering(double value, std::string_view unit) {
    static constexpr std::array<const char*, 4> small = {"n", "u", "m", ""};
    std::size_t letter = 3;
    while (std::fabs(value) < 0.9999999 && letter > 0 && value != 0.0) {
        value *= 1000.0;
        --letter;
    }
    const std::string digits = engineering(value);
    const bool large = !digits.empty() && digits.back() > '9';  // it ends in a letter already
    return large ? fmt::format("{} {}{}", digits.substr(0, digits.size() - 1), digits.back(), unit)
                 : fmt::format("{} {}{}", digits, small[letter], unit);
}

std::vector<Tick> ticks_of(const Scale& scale) {
    std::vector<Tick> ticks =
        scale.logarithmic ? log_ticks(scale.low, scale.high) : linear_ticks(scale.low, scale.high);
    for (Tick& tick : ticks) {
        if (!scale.unit.empty() && !tick.label.empty()) tick.label = engineering(tick.value, scale.unit);
    }
    return ticks;
}

Scale log_scale(double low, double high, double from, double to, int least) {
    int first = decade_of(low);
    int last = decade_of(high);
    if (power_of_ten(last) < high) ++last;
    while (last - first < least) {
        ++last;
        if (last - first < least) --first;
    }
    return {power_of_ten(first), power_of_ten(last), from, to, true};
}

Scale linear_scale(double low, double high, double from, double to) {
    low = std::min(low, 0.0);
    if (!(high > low)) high = low + 1.0;
    const auto ticks = linear_ticks(low, high);
    const double step = ticks.size() > 1 ? ticks[1].value - ticks[0].value : high - low;
    const double top = std::ceil(high / step - 1e-9) * step;
    const double bottom = std::floor(low / step + 1e-9) * step;
    return {bottom, top, from, to, false};
}

}  // namespace roofline::render::chart
