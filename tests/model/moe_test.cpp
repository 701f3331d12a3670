#include "roofline/model/ffn/moe.hpp"

#include <gtest/gtest.h>

#include "model/scenarios.hpp"

namespace roofline::model {
namespace {

using testing::lowered;
using testing::one;

// Mixtral 8x7B: an expert is 4096 x 2 x 14336 and 14336 x 4096 = 117,440,512 + 58,720,256 parameters.
constexpr double gate_up_bytes = 234881024;  // of one expert, bf16
constexpr double down_bytes = 117440512;

TEST(Moe, BytesFollowTheDistinctExperts) {
    const Lowered model = lowered(testing::mixtral_8x7b());
    // 8 (1 - (3/4)^n) experts: 2, 3.5, 5.46875 for n = 1, 2, 4
    for (const auto& [batch, experts] : {std::pair{1.0, 2.0}, {2.0, 3.5}, {4.0, 5.46875}}) {
        EXPECT_EQ(one(model, "layers.ffn.experts.gate_up", decode_step(batch, 100)).weights, experts * gate_up_bytes);
        EXPECT_EQ(one(model, "layers.ffn.experts.down", decode_step(batch, 100)).weights, experts * down_bytes);
    }
    // 0.75^4096 is nothing: all eight
    EXPECT_EQ(one(model, "layers.ffn.experts.down", prefill_step(1, 4096)).weights, 8.0 * down_bytes);
}

TEST(Moe, FlopsFollowTheChosenExpertsOfEachToken) {
    const Lowered model = lowered(testing::mixtral_8x7b());
    for (const double batch : {1.0, 2.0, 100.0}) {
        // 2 flops x 2 experts x parameters, a token
        EXPECT_EQ(one(model, "layers.ffn.experts.gate_up", decode_step(batch, 100)).flops,
                  batch * 2.0 * 2.0 * 117440512.0);
        EXPECT_EQ(one(model, "layers.ffn.experts.down", decode_step(batch, 100)).flops, batch * 2.0 * 2.0 * 58720256.0);
    }
}

TEST(Moe, MixtralHas46702792704Parameters) {
    // a layer: attention 41,943,040; 8 x 176,160,768 = 1,409,286,144 in experts; router 4096 x 8 = 32,768; norms 8,192
    //          together 1,451,270,144; x 32 = 46,440,644,608
    // embedding and head 2 x 32000 x 4096 = 262,144,000; last norm 4,096
    const ParameterCount count = count_parameters(lowered(testing::mixtral_8x7b()));
    EXPECT_EQ(count.total, 46702792704.0);
    // active: 2 of 8 experts, the head, no embedding:
    //   32 x (41,943,040 + 352,321,536 + 32,768 + 8,192) + 131,072,000 + 4,096
    EXPECT_EQ(count.active, 12748853248.0);
    EXPECT_EQ(count.stored_bytes, 2.0 * 46702792704.0) << "every expert needs memory";
}

TEST(Moe, TheRouterLooksAtEveryExpert) {
    const Lowered model = lowered(testing::mixtral_8x7b());
    EXPECT_EQ(one(model, "layers.ffn.router", decode_step(3, 10)).flops, 3.0 * 2.0 * 4096.0 * 8.0);
    EXPECT_EQ(one(model, "layers.ffn.router", decode_step(3, 10)).weights, 65536.0);
}

// DeepSeek-V3's experts: hidden 7168, 8 of 256 experts of 2048, one shared expert, a correction bias per expert.
Lowered deepseek_experts(const MoeShape& shape) {
    LayerKind kind;
    kind.label = "only";
    kind.ffn = testing::moe(shape);
    kind.norm_before_ffn = false;
    Architecture model = testing::stack(7168, 100, kind);
    model.final_norm = false;
    return lowered(model);
}
MoeShape deepseek_shape() {
    return {.experts = 256, .chosen = 8, .width = 2048, .router_parameters = 256, .shared_width = 2048};
}
double ffn_parameters(const Lowered& model, bool active) {
    double sum = 0.0;
    for (const Operator& op : model.operators) {
        if (op.name.starts_with("layers.ffn")) sum += active ? op.active_parameters : op.parameters;
    }
    return sum;
}

TEST(Moe, DeepSeekLayerHasRoutedSharedAndRouter) {
    // expert 3 x 7168 x 2048 = 44,040,192; x 256 = 11,274,289,152; shared 44,040,192; router 7168 x 256 + 256 =
    // 1,835,264
    const Lowered model = deepseek_experts(deepseek_shape());
    EXPECT_EQ(ffn_parameters(model, false), 11320164608.0);
    // 8 x 44,040,192 + 44,040,192 + 1,835,264
    EXPECT_EQ(ffn_parameters(model, true), 398196992.0);
}

TEST(Moe, SharedExpertsAreReadOnceAndComputedForEveryToken) {
    const Lowered model = deepseek_experts(deepseek_shape());
    for (const double batch : {1.0, 50.0}) {
        const auto gate_up = one(model, "layers.ffn.shared.gate_up", decode_step(batch, 10));
        EXPECT_EQ(gate_up.weights, 2.0 * 7168.0 * 4096.0);
        EXPECT_EQ(gate_up.flops, batch * 2.0 * 7168.0 * 4096.0);
        EXPECT_EQ(one(model, "layers.ffn.shared.down", decode_step(batch, 10)).flops, batch * 2.0 * 7168.0 * 2048.0);
    }
}

TEST(Moe, ASharedGateIsOneColumn) {
    MoeShape shape = deepseek_shape();
    shape.shared_gate = true;
    EXPECT_EQ(
        ffn_parameters(deepseek_experts(shape), false) - ffn_parameters(deepseek_experts(deepseek_shape()), false),
        7168.0);
}

TEST(Moe, BiasesBelongToEveryExpertAndTheRouter) {
    MoeShape shape = deepseek_shape();
    shape.shared_width = 0;
    const double without = ffn_parameters(deepseek_experts(shape), false);
    shape.bias = true;
    // 256 x (2 x 2048 + 7168) and 256
    EXPECT_EQ(ffn_parameters(deepseek_experts(shape), false) - without, 256.0 * 11264.0 + 256.0);
}

TEST(Moe, LatentExpertsWorkInTheNarrowerSpace) {
    MoeShape shape = deepseek_shape();
    shape.shared_width = 0;
    shape.router_parameters = 0;
    shape.latent = 1024;
    // 7168 x 1024 down and up; experts 3 x 1024 x 2048; router 7168 x 256
    EXPECT_EQ(ffn_parameters(deepseek_experts(shape), false),
              2.0 * 7168.0 * 1024.0 + 256.0 * 3.0 * 1024.0 * 2048.0 + 7168.0 * 256.0);
}

TEST(Moe, PlainExpertsHaveTwoMatrices) {
    MoeShape shape = deepseek_shape();
    shape.gated = false;
    shape.shared_width = 0;
    shape.router_parameters = 0;
    EXPECT_EQ(ffn_parameters(deepseek_experts(shape), false), 256.0 * 2.0 * 7168.0 * 2048.0 + 7168.0 * 256.0);
}

TEST(Moe, ADenseFfnMayStandBesideTheExperts) {
    MoeShape shape = deepseek_shape();
    const double without = ffn_parameters(deepseek_experts(shape), false);
    shape.dense_width = 1000;
    shape.extra_norms = 2;
    EXPECT_EQ(ffn_parameters(deepseek_experts(shape), false) - without, 3.0 * 7168.0 * 1000.0 + 2.0 * 7168.0);
}

TEST(Moe, ActivationsArePerTokenAndChosenExpert) {
    const Lowered model = deepseek_experts(deepseek_shape());
    // gate_up: the token's row once, 8 results of 4096; down: 8 rows of 2048, 8 results of 7168
    EXPECT_EQ(one(model, "layers.ffn.experts.gate_up", decode_step(1, 10)).activations, 2.0 * (7168.0 + 8.0 * 4096.0));
    EXPECT_EQ(one(model, "layers.ffn.experts.down", decode_step(1, 10)).activations,
              2.0 * (8.0 * 2048.0 + 8.0 * 7168.0));
}

}  // namespace
}  // namespace roofline::model
