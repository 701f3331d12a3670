#include "roofline/model/types.hpp"

#include <gtest/gtest.h>

#include "model/scenarios.hpp"

namespace roofline::model {
namespace {

using testing::format;

const WeightType& layer_type(const TypePlan& plan, Role role) {
    return plan.of(0, role);
}

TEST(WeightType, PackedWeightsComputeInTheActivationType) {
    for (const char* name : {"awq", "gptq", "int4", "q4_k", "q8_0"}) {
        WeightType type{.format = format(name), .activation = DType::bf16, .file_bits = {}};
        EXPECT_EQ(type.compute(), DType::bf16) << name;
        type.activation = DType::fp16;
        EXPECT_EQ(type.compute(), DType::fp16) << name;
    }
}

TEST(WeightType, NarrowWeightsComputeNarrowOnlyWithNarrowActivations) {
    EXPECT_EQ((WeightType{format("fp8"), DType::fp8, {}}.compute()), DType::fp8);
    EXPECT_EQ((WeightType{format("fp8"), DType::bf16, {}}.compute()), DType::bf16);
    EXPECT_EQ((WeightType{format("nvfp4"), DType::fp4, {}}.compute()), DType::fp4);
    EXPECT_EQ((WeightType{format("nvfp4"), DType::fp8, {}}.compute()), DType::fp8);
    EXPECT_EQ((WeightType{format("nvfp4"), DType::bf16, {}}.compute()), DType::bf16);
}

TEST(WeightType, AFileKnowsItsBitsBest) {
    const WeightType type{format("q4_k"), DType::bf16, 5.0};
    EXPECT_EQ(type.bytes(256, 8).value, 256.0 * 8.0 * 5.0 / 8.0);
}

TEST(UniformPlan, QuantisersLeaveTheEmbeddingHeadNormsAndRouterAlone) {
    const TypePlan plan = uniform_plan(2, format("fp8"), DType::fp8, format("bf16"));
    EXPECT_EQ(plan.layers.size(), 2U);
    EXPECT_EQ(layer_type(plan, Role::attention_qkv).format.name, "fp8");
    EXPECT_EQ(layer_type(plan, Role::expert_down).format.name, "fp8");
    for (const Role role : {Role::embedding, Role::head, Role::norm, Role::router, Role::mixer_state, Role::indexer}) {
        EXPECT_EQ(layer_type(plan, role).format.name, "bf16") << name(role);
        EXPECT_EQ(plan.outside_layers(role).format.name, "bf16") << name(role);
        EXPECT_EQ(layer_type(plan, role).compute(), DType::bf16) << name(role);
    }
}

TEST(UniformPlan, GgufPacksTheEmbeddingAndTheHeadToo) {
    const TypePlan plan = uniform_plan(1, format("q4_k_m"), DType::fp16, format("fp16"));
    EXPECT_EQ(plan.outside_layers(Role::embedding).format.name, "q4_k_m");
    EXPECT_EQ(plan.outside_layers(Role::head).format.name, "q4_k_m");
    EXPECT_EQ(plan.outside_layers(Role::norm).format.name, "fp16");
    const TypePlan awq = uniform_plan(1, format("awq"), DType::fp16, format("fp16"));
    EXPECT_EQ(awq.outside_layers(Role::head).format.name, "fp16");
}

TEST(UniformPlan, PlainWeightsAreTheSameEverywhere) {
    const TypePlan plan = uniform_plan(1, format("fp32"), DType::fp32, format("fp32"));
    for (std::size_t i = 0; i < role_count; ++i) {
        EXPECT_EQ(layer_type(plan, static_cast<Role>(i)).format.name, "fp32") << role_names[i];
    }
    EXPECT_EQ(plan.stream, DType::fp32);
}

TEST(UniformPlan, TheResidualStreamStaysIn16Bits) {
    EXPECT_EQ(uniform_plan(1, format("fp8"), DType::fp8, format("fp8")).stream, DType::bf16);
    EXPECT_EQ(uniform_plan(1, format("nvfp4"), DType::fp4, format("fp8")).stream, DType::bf16);
    EXPECT_EQ(uniform_plan(1, format("fp16"), DType::fp16, format("fp16")).stream, DType::fp16);
}

TEST(UniformPlan, AttentionIsIn8BitsOnlyIfQueriesAndCacheAre) {
    EXPECT_EQ(uniform_plan(1, format("fp8"), DType::fp8, format("fp8")).attention, DType::fp8);
    EXPECT_EQ(uniform_plan(1, format("fp8"), DType::fp8, format("bf16")).attention, DType::bf16);
    EXPECT_EQ(uniform_plan(1, format("bf16"), DType::bf16, format("fp8")).attention, DType::bf16);
}

TEST(UniformPlan, KvBytesFollowTheCacheFormat) {
    EXPECT_EQ(uniform_plan(1, format("bf16"), DType::bf16, format("bf16")).kv_bytes(100), 200.0);
    EXPECT_EQ(uniform_plan(1, format("bf16"), DType::bf16, format("fp8")).kv_bytes(100), 100.0);
    EXPECT_EQ(uniform_plan(1, format("bf16"), DType::bf16, format("nvfp4")).kv_bytes(128), 72.0);  // 128 x 4.5 / 8
}

}  // namespace
}  // namespace roofline::model
