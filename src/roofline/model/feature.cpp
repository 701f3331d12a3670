#include "roofline/model/feature.hpp"

#include <cassert>
#include <cmath>
#include <cstdint>

namespace roofline::model {
namespace {

bool counts(const Who& who, const Sequences& group) {
    using Which = Who::Which;
    const bool prefill = group.phase == Phase::prefill;
    const bool brief = prefill && group.past + group.new_tokens <= who.threshold;
    const bool expands = prefill && group.past * who.threshold * group.count <= pairs(Reach::full(), group);
    switch (who.which) {
        case Which::all:
            return true;
        case Which::prefill:
            return prefill;
        case Which::decode:
            return !prefill;
        case Which::short_prefill:
            return brief;
        case Which::not_short:
            return !brief;
        case Which::expanding:
            return expands;
        case Which::absorbing:
            return !expands;
    }
    return true;
}

/// By repeated squaring: only multiplications, so that every C library gives the same last digit (libm's pow does not).
double power(double base, std::uint64_t exponent) {
    double result = 1.0;
    while (exponent != 0) {
        if (exponent & 1U) result *= base;
        base *= base;
        exponent >>= 1U;
    }
    return result;
}

double of_one_group(const Feature& feature, const Sequences& group) {
    using What = Feature::What;
    switch (feature.what) {
        case What::one:
        case What::rows:
        case What::experts:
            return 0.0;
        case What::tokens:
            return group.count * group.new_tokens;
        case What::sequences:
            return group.count;
        case What::logits:
            return group.count * group.logits;
        case What::pairs:
            return pairs(feature.reach, group);
        case What::keys:
            return keys(feature.reach, group);
        case What::rectangle:
            return group.new_tokens * keys(feature.reach, group);
        case What::entries:
            return group.count * (std::floor((group.past + group.new_tokens) / feature.reach.ratio) -
                                  std::floor(group.past / feature.reach.ratio));
    }
    return 0.0;
}

}  // namespace

double distinct_experts(double total, double chosen, double tokens) {
    if (tokens <= 0.0) return 0.0;
    if (chosen >= total) return total;
    return total * (1.0 - power(1.0 - chosen / total, static_cast<std::uint64_t>(tokens)));
}

double evaluate(const Feature& feature, std::span<const Sequences> step) {
    if (feature.what == Feature::What::one) return 1.0;
    double sum = 0.0;
    const auto share = [&](const Sequences& group) {
        return group.phase == Phase::prefill ? feature.in_prefill : feature.in_decode;
    };
    if (feature.what == Feature::What::experts || feature.what == Feature::What::rows) {
        for (const Sequences& group : step) sum += share(group) * group.count * group.new_tokens;
        if (feature.what == Feature::What::rows) return sum < feature.total ? sum : feature.total;
        const double here = feature.held > 0.0 ? feature.held / feature.total : 1.0;
        return here * distinct_experts(feature.total, feature.chosen, sum);
    }
    for (const Sequences& group : step) {
        if (counts(feature.who, group)) sum += share(group) * of_one_group(feature, group);
    }
    return sum;
}

std::string describe(const Feature& feature) {
    using What = Feature::What;
    static constexpr std::array<const char*, 7> names = {"",        "prefill ",  "decode ",  "short prefill ",
                                                         "sparse ", "expanded ", "absorbed "};
    const std::string who = names[static_cast<std::size_t>(feature.who.which)];
    switch (feature.what) {
        case What::one:
            return "1";
        case What::tokens:
            return who + "tokens";
        case What::sequences:
            return who + "sequences";
        case What::logits:
            return "tokens with logits";
        case What::pairs:
            return who + "query-key pairs (" + describe(feature.reach) + ")";
        case What::keys:
            return who + "cached entries read (" + describe(feature.reach) + ")";
        case What::rectangle:
            return who + "tokens x positions";
        case What::entries:
            return who + "pooled entries written";
        case What::rows:
            return "rows";
        case What::experts:
            return "distinct experts";
    }
    return "";
}

Form& Form::add(double factor, int feature) {
    for (int i = 0; i < size; ++i) {
        Term& term = terms[static_cast<std::size_t>(i)];
        if (term.feature == feature) {
            term.factor += factor;
            return *this;
        }
    }
    assert(size < capacity && "an operator depends on more features than a Form holds");
    terms[static_cast<std::size_t>(size++)] = {feature, factor};
    return *this;
}

Form& Form::operator+=(const Form& other) {
    constant += other.constant;
    for (int i = 0; i < other.size; ++i) {
        add(other.terms[static_cast<std::size_t>(i)].factor, other.terms[static_cast<std::size_t>(i)].feature);
    }
    return *this;
}

}  // namespace roofline::model
