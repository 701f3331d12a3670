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

/// Which sequences of a step count. Two paths split by more than the phase:
///   short_prefill  prompts so short that sparse attention would choose every key anyway; `not_short` are all others
///   expanding      prefills whose new tokens repay the projection of all cached latents up to keys and values (F24);
///                  `absorbing` are all others
struct Who {
    enum class Which { all, prefill, decode, short_prefill, not_short, expanding, absorbing };
    Which which = Which::all;
    double threshold = 0.0;

    static constexpr Who all() { return {}; }
    static constexpr Who prefill() { return {Which::prefill, 0.0}; }
    static constexpr Who decode() { return {Which::decode, 0.0}; }
    static constexpr Who short_prefill(double longest) { return {Which::short_prefill, longest}; }
    static constexpr Who not_short(double longest) { return {Which::not_short, longest}; }
    static constexpr Who expanding(double pairs_per_past) { return {Which::expanding, pairs_per_past}; }
    static constexpr Who absorbing(double pairs_per_past) { return {Which::absorbing, pairs_per_past}; }
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
        rectangle,  // new tokens x entries read: what unfused attention materialises
        entries,    // pooled entries that are completed and written
        rows,       // distinct rows of a table that are gathered: new tokens, but no more than there are rows
        experts,    // expected number of distinct experts
    };
    What what = What::one;
    Who who = {};
    Reach reach = {};
    double total = 0.0;   // experts, rows: how many there are
    double chosen = 0.0;  // experts: how many a token uses
    double held = 0.0;    // experts: how many of them are on this device; 0: all
    // What a deployment makes of the step on one device: its share of the sequences' work, or the work of several.
    double in_prefill = 1.0;
    double in_decode = 1.0;

    bool operator==(const Feature&) const = default;
};

/// F22: with n tokens that each use k of E experts, E (1 - (1 - k/E)^n) distinct experts are expected, for tokens that
/// choose independently and evenly.
double distinct_experts(double total, double chosen, double tokens);

double evaluate(const Feature& feature, std::span<const Sequences> step);

std::string describe(const Feature& feature);

inline constexpr std::size_t max_features = 64;
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
