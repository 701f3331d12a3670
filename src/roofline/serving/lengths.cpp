#include "roofline/serving/lengths.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "roofline/core/sort.hpp"
#include "roofline/serving/elementary.hpp"

namespace roofline::serving {
namespace {

constexpr double longest = 1e8;  // tokens; beyond any model, and far from where arithmetic would suffer

/// Digits with at most one point, as people write lengths. (libc++ has no from_chars for floating point.)
std::optional<double> number_in(std::string_view text) {
    if (text.empty()) return std::nullopt;
    double value = 0.0;
    double place = 0.0;  // 0: before the point
    bool digits = false;
    for (const char c : text) {
        if (c == '.' && place == 0.0) {
            place = 1.0;
        } else if (c >= '0' && c <= '9') {
            digits = true;
            value = value * 10.0 + (c - '0');
            place *= 10.0;
        } else {
            return std::nullopt;
        }
        if (value > 1e15) return std::nullopt;
    }
    if (!digits) return std::nullopt;
    return place > 0.0 ? value / place : value;
}

std::optional<double> tokens_in(std::string_view text) {
    const auto value = number_in(text);
    if (!value || *value < 1.0 || *value > longest || *value != std::floor(*value)) return std::nullopt;
    return value;
}

std::unexpected<Problem> not_understood(std::string_view name, std::string_view text, std::string_view place) {
    std::string message(name);
    message.append(": found \"").append(text).append("\"");
    if (place != text) message.append(", not understood at \"").append(place).append("\"");
    return fail(message +
                ", expected tokens (512), a range (100-2000), normal:MEAN,CV, lognormal:MEAN,CV or "
                "TOKENS*WEIGHT,TOKENS*WEIGHT with whole tokens from 1 to 100000000");
}

}  // namespace

double Lengths::quantile(double probability) const {
    double value = mean;
    switch (shape) {
        case Shape::fixed:
            break;
        case Shape::uniform:
            return std::min(low + std::floor(probability * (high - low + 1.0)), high);
        case Shape::normal:
            value = mean * (1.0 + variation * normal_quantile(probability));
            break;
        case Shape::lognormal: {
            const double variance = natural_logarithm(1.0 + variation * variation);
            value = mean * exponential(std::sqrt(variance) * normal_quantile(probability) - variance / 2.0);
            break;
        }
        case Shape::listed: {
            double total = 0.0;
            for (const Listed& entry : listed) total += entry.weight;
            double below = 0.0;
            for (const Listed& entry : listed) {
                below += entry.weight;
                value = entry.tokens;
                if (probability * total < below) break;
            }
            break;
        }
    }
    return std::clamp(std::floor(value + 0.5), 1.0, longest);
}

double Lengths::mean_between(double low_probability, double high_probability) const {
    const double middle = (low_probability + high_probability) / 2.0;
    if (shape != Shape::lognormal || variation <= 0.0) return quantile(middle);
    // Of tails as long as these the middle would miss too much. exp(s z) of a normal z weighs as one shifted by s.
    const double deviation = std::sqrt(natural_logarithm(1.0 + variation * variation));
    const auto below = [&](double probability) {
        if (probability <= 0.0) return 0.0;
        return probability >= 1.0 ? 1.0 : normal_below(normal_quantile(probability) - deviation);
    };
    const double value =
        mean * (below(high_probability) - below(low_probability)) / (high_probability - low_probability);
    return std::clamp(std::floor(value + 0.5), 1.0, longest);
}

Result<Lengths> parse_lengths(std::string_view text, std::string_view name) {
    for (const auto& [word, shape] : {std::pair{std::string_view("normal:"), Lengths::Shape::normal},
                                      std::pair{std::string_view("lognormal:"), Lengths::Shape::lognormal}}) {
        if (!text.starts_with(word)) continue;
        const std::string_view rest = text.substr(word.size());
        const std::size_t comma = rest.find(',');
        if (comma == std::string_view::npos) return not_understood(name, text, rest);
        const auto mean = number_in(rest.substr(0, comma));
        if (!mean || *mean < 1.0 || *mean > longest) return not_understood(name, text, rest.substr(0, comma));
        const auto variation = number_in(rest.substr(comma + 1));
        if (!variation || *variation > 100.0) return not_understood(name, text, rest.substr(comma + 1));
        return Lengths{.shape = shape, .mean = *mean, .variation = *variation, .listed = {}};
    }
    if (text.find('*') != std::string_view::npos) {
        Lengths result;
        result.shape = Lengths::Shape::listed;
        for (std::string_view rest = text; !rest.empty();) {
            const std::string_view entry = rest.substr(0, rest.find(','));
            const std::size_t star = entry.find('*');
            const auto tokens = tokens_in(entry.substr(0, star));
            const auto weight =
                star == std::string_view::npos ? std::optional<double>(1.0) : number_in(entry.substr(star + 1));
            if (!tokens || !weight || *weight <= 0.0) return not_understood(name, text, entry);
            result.listed.push_back({*tokens, *weight});
            if (entry.size() == rest.size()) break;
            rest.remove_prefix(entry.size() + 1);
            if (rest.empty()) return not_understood(name, text, text);
        }
        sort_stably(result.listed,
                    [](const Lengths::Listed& a, const Lengths::Listed& b) { return a.tokens < b.tokens; });
        return result;
    }
    const std::size_t dash = text.find('-');
    if (dash != std::string_view::npos) {
        const auto low = tokens_in(text.substr(0, dash));
        const auto high = tokens_in(text.substr(dash + 1));
        if (!low || !high || *low > *high) return not_understood(name, text, text);
        return *low == *high ? Lengths::fixed(*low) : Lengths::uniform(*low, *high);
    }
    const auto tokens = tokens_in(text);
    if (!tokens) return not_understood(name, text, text);
    return Lengths::fixed(*tokens);
}

}  // namespace roofline::serving
