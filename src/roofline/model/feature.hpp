// The few numbers of a step that operators depend on. Every operator's flops and bytes are linear in them (a Form), so
// a model is lowered once and then priced for any batch, prompt and context with a handful of multiply-adds.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "roofline/model/reach.hpp"
#include "roofline/model/step.hpp"

namespace roofline::model {

/// Which sequences of a step count. Sparse attention takes another path for prompts so short that every key would be
/// chosen anyway; `short_prefill` are those, `not_short` all the others.
struct Who {
    enum class Which { all, prefill, decode, short_prefill, not_short };
    Which which = Which::all;
    double threshold = 0.0;

    static constexpr Who all() { return {}; }
    static constexpr Who prefill() { return {Which::prefill, 0.0}; }
    static constexpr Who decode() { return {Which::decode, 0.0}; }
    static constexpr Who short_prefill(double longest) { return {Which::short_prefill, longest}; }
    static constexpr Who not_short(double longest) { return {Which::not_short, longest}; }
    bool operator==(const Who&) const = default;
};

struct Feature {
    enum class What {
        one,     // constants
        tokens,  // new tokens
        sequences,
        logits,     // positions that need logits
        pairs,      // (query, key) products within `reach`
        keys,       // cached entries read within `reach`
        rectangle,  // new tokens x all positions: what unfused attention materialises
        entries,    // pooled entries that are completed and written
        experts,    // expected number of distinct experts
    };
    What what = What::one;
    Who who = {};
    Reach reach = {};
    double total = 0.0;   // experts: how many there are
    double chosen = 0.0;  // experts: how many a token uses

    bool operator==(const Feature&) const = default;
};

/// F22: with n tokens that each use k of E experts, E (1 - (1 - k/E)^n) distinct experts are expected, for tokens that
/// choose independently and evenly.
double distinct_experts(double total, double chosen, double tokens);

double evaluate(const Feature& feature, std::span<const Sequences> step);

std::string describe(const Feature& feature);

inline constexpr int max_features = 32;
using FeatureValues = std::array<double, max_features>;

/// A linear form over features: constant + sum of factor x feature. Three terms have been enough for every operator.
struct Form {
    struct Term {
        int feature = 0;
        double factor = 0.0;
    };
    static constexpr int capacity = 3;

    double constant = 0.0;
    std::array<Term, capacity> terms{};
    int size = 0;

    Form() = default;
    explicit Form(double value) : constant(value) {}
    Form(double factor, int feature) { add(factor, feature); }

    Form& add(double factor, int feature);
    Form& operator+=(const Form& other);

    double operator()(const FeatureValues& values) const {
        double sum = constant;
        for (int i = 0; i < size; ++i) {
            sum += terms[static_cast<std::size_t>(i)].factor *
                   values[static_cast<std::size_t>(terms[static_cast<std::size_t>(i)].feature)];
        }
        return sum;
    }
};

}  // namespace roofline::model
