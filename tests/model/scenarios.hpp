// Models built by hand for tests: shapes from the published configs, no JSON in between.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "roofline/model/architecture.hpp"
#include "roofline/model/attention/gqa.hpp"
#include "roofline/model/ffn/dense.hpp"
#include "roofline/model/ffn/moe.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/model/types.hpp"

namespace roofline::testing {

using model::Architecture;
using model::BlockPtr;
using model::DenseShape;
using model::FeatureValues;
using model::GqaShape;
using model::LayerKind;
using model::Lowered;
using model::LoweringOptions;
using model::MoeShape;
using model::Operator;
using model::Reach;
using model::Step;
using model::TypePlan;

template <class Kind, class Shape>
BlockPtr block(const Shape& shape) {
    return std::make_shared<Kind>(shape);
}
inline BlockPtr gqa(const GqaShape& shape) {
    return block<model::Gqa>(shape);
}
inline BlockPtr dense(const DenseShape& shape) {
    return block<model::Dense>(shape);
}
inline BlockPtr moe(const MoeShape& shape) {
    return block<model::Moe>(shape);
}

inline LayerKind layer(BlockPtr mixer, BlockPtr ffn, std::string label = "only") {
    LayerKind kind;
    kind.label = std::move(label);
    kind.mixer = std::move(mixer);
    kind.ffn = std::move(ffn);
    return kind;
}

/// A stack of `count` layers of one kind.
inline Architecture stack(double hidden, double vocabulary, LayerKind kind, int count = 1) {
    Architecture architecture;
    architecture.name = "test";
    architecture.hidden = hidden;
    architecture.vocabulary = vocabulary;
    architecture.kinds = {std::move(kind)};
    architecture.layers.assign(static_cast<std::size_t>(count), 0);
    return architecture;
}

/// meta-llama/Meta-Llama-3-8B: 32 layers, 32 heads and 8 KV heads of 128, hidden 4096, FFN 14336, 128256 tokens,
/// untied.
inline Architecture llama_3_8b() {
    return stack(
        4096, 128256,
        layer(gqa({.heads = 32, .kv_heads = 8, .head_dim = 128, .reach = Reach::full()}), dense({.width = 14336})), 32);
}

/// mistralai/Mixtral-8x7B: the same attention, 8 experts of 14336 of which 2 are used, 32000 tokens.
inline Architecture mixtral_8x7b() {
    return stack(4096, 32000,
                 layer(gqa({.heads = 32, .kv_heads = 8, .head_dim = 128, .reach = Reach::full()}),
                       moe({.experts = 8, .chosen = 2, .width = 14336})),
                 32);
}

inline const Format& format(std::string_view name) {
    const Format* found = find_format(name);
    EXPECT_NE(found, nullptr) << name;
    return found != nullptr ? *found : plain_format(DType::bf16);
}

inline TypePlan plan_for(const Architecture& architecture, std::string_view weights = "bf16",
                         DType activation = DType::bf16, std::string_view kv = "bf16") {
    return model::uniform_plan(architecture.layers.size(), format(weights), activation, format(kv));
}

inline Lowered lowered(const Architecture& architecture, const LoweringOptions& options = {},
                       std::string_view weights = "bf16", DType activation = DType::bf16,
                       std::string_view kv = "bf16") {
    const TypePlan plan = plan_for(architecture, weights, activation, kv);
    return model::lower(architecture, plan, options);
}

inline const Operator* find(const Lowered& lowered, std::string_view name) {
    for (const Operator& op : lowered.operators) {
        if (op.name == name) return &op;
    }
    return nullptr;
}

inline const Operator& op_of(const Lowered& lowered, std::string_view name) {
    const Operator* found = find(lowered, name);
    EXPECT_NE(found, nullptr) << "no operator " << name;
    static const Operator none;
    return found != nullptr ? *found : none;
}

inline FeatureValues features_of(const Lowered& lowered, const Step& step) {
    FeatureValues values{};
    for (std::size_t i = 0; i < lowered.features.size(); ++i) values[i] = evaluate(lowered.features[i], step);
    return values;
}

/// Sums over the operators of a lowered model in a step, over all layers.
struct Totals {
    double flops = 0.0;
    double weights = 0.0;
    double cache = 0.0;
    double activations = 0.0;

    double bytes() const { return weights + cache + activations; }
};

template <class Wanted>
Totals totals_where(const Lowered& lowered, const Step& step, Wanted wanted) {
    const FeatureValues values = features_of(lowered, step);
    Totals sum;
    for (const Operator& op : lowered.operators) {
        if (!wanted(op)) continue;
        sum.flops += op.count * op.flops(values);
        sum.weights += op.count * op.weight_bytes(values);
        sum.cache += op.count * op.cache_bytes(values);
        sum.activations += op.count * op.activation_bytes(values);
    }
    return sum;
}
inline Totals totals(const Lowered& lowered, const Step& step) {
    return totals_where(lowered, step, [](const Operator&) { return true; });
}
inline Totals matrix_totals(const Lowered& lowered, const Step& step) {
    return totals_where(lowered, step, [](const Operator& op) { return op.kind == Kind::gemm; });
}
/// One layer's worth of one operator.
inline Totals one(const Lowered& lowered, std::string_view name, const Step& step) {
    const Operator& op = op_of(lowered, name);
    const FeatureValues values = features_of(lowered, step);
    return {op.flops(values), op.weight_bytes(values), op.cache_bytes(values), op.activation_bytes(values)};
}

}  // namespace roofline::testing
