// State-space and linear attention on paper: parameters, states, flops.
#include <gtest/gtest.h>

#include "model/scenarios.hpp"
#include "roofline/model/attention/gated_delta.hpp"
#include "roofline/model/attention/mamba1.hpp"
#include "roofline/model/attention/mamba2.hpp"

namespace roofline::model {
namespace {

using testing::lowered;
using testing::one;

Architecture mixer_only(double hidden, double vocabulary, BlockPtr mixer, int count) {
    LayerKind kind;
    kind.label = "only";
    kind.mixer = std::move(mixer);
    return testing::stack(hidden, vocabulary, kind, count);
}

double mixer_parameters(const Lowered& model) {
    double sum = 0.0;
    for (const Operator& op : model.operators) {
        if (op.name.starts_with("layers.attention") && op.name != "layers.attention.norm") sum += op.parameters;
    }
    return sum;
}

// Qwen3-Next: hidden 2048, 16 key heads and 32 value heads of 128.
Lowered delta() {
    return lowered(mixer_only(2048, 100,
                              testing::block<GatedDelta>(GatedDeltaShape{
                                  .key_heads = 16, .value_heads = 32, .key_dim = 128, .value_dim = 128}),
                              1));
}

TEST(GatedDelta, ALayerHas33718464Parameters) {
    // in    2048 x (2 x 2048 (q, k) + 2 x 4096 (v, gate) + 2 x 32 (beta, alpha)) = 2048 x 12352 = 25,296,896
    // conv  (2 x 2048 + 4096) x 4 = 32,768; A and dt 2 x 32 = 64; norm 128
    // out   4096 x 2048 = 8,388,608
    EXPECT_EQ(mixer_parameters(delta()), 33718464.0);
}

TEST(GatedDelta, KeepsAMatrixPerValueHeadAndNoKeys) {
    // 32 x 128 x 128 x 4 B, and three inputs of 8192 channels x 2 B
    EXPECT_EQ(state_bytes_per_sequence(delta()), 2097152.0 + 49152.0);
    EXPECT_EQ(kv_bytes_per_token(delta()), 0.0);
    EXPECT_EQ(cache_bytes(delta(), 10), cache_bytes(delta(), 1e6));
}

TEST(GatedDelta, DecodeTouchesTheStateTwiceWhateverTheContext) {
    for (const double context : {10.0, 100000.0}) {
        const auto core = one(delta(), "layers.attention.core_recurrent", decode_step(3, context));
        EXPECT_EQ(core.flops, 3.0 * 7.0 * 524288.0);   // 7 per state element, 32 x 128 x 128 of them
        EXPECT_EQ(core.cache, 3.0 * 2.0 * 2097152.0);  // read and written
        EXPECT_EQ(one(delta(), "layers.attention.core_chunked", decode_step(3, context)).bytes(), 0.0);
    }
}

TEST(GatedDelta, PrefillIsChunkedIntoMatrixProducts) {
    // 512 tokens in chunks of 64: 8 x 64 x 65 / 2 = 16,640 pairs.
    // 6 x 524,288 x 512 + 32 x (6 x 128 + 4 x 128) x 16,640 = 1,610,612,736 + 681,574,400
    const auto core = one(delta(), "layers.attention.core_chunked", prefill_step(1, 512));
    EXPECT_EQ(core.flops, 2292187136.0);
    EXPECT_EQ(core.cache, 4194304.0) << "the state once in and once out, not once a token";
    EXPECT_EQ(one(delta(), "layers.attention.core_recurrent", prefill_step(1, 512)).flops, 0.0);
}

// state-spaces/mamba2-2.7b: hidden 2560, 80 heads of 64, one group, 128 states, 64 layers, 50288 tokens, tied.
Lowered mamba2() {
    Architecture model = mixer_only(
        2560, 50288, testing::block<Mamba2>(Mamba2Shape{.heads = 80, .head_dim = 64, .groups = 1, .state_size = 128}),
        64);
    model.tied = true;
    return lowered(model);
}

TEST(Mamba2, ALayerHas40214000Parameters) {
    // in    2560 x (2 x 5120 (x, z) + 2 x 128 (B, C) + 80 (dt)) = 2560 x 10576 = 27,074,560
    // conv  (5120 + 256) x (4 + 1 bias) = 26,880; A, D, dt 3 x 80 = 240; norm 5,120
    // out   5120 x 2560 = 13,107,200
    EXPECT_EQ(mixer_parameters(mamba2()), 40214000.0);
}

TEST(Mamba2, TheModelHas2702599680Parameters) {
    // 64 x (40,214,000 + 2,560) + 50288 x 2560 + 2,560 = 2,573,859,840 + 128,737,280 + 2,560
    EXPECT_EQ(count_parameters(mamba2()).total, 2702599680.0);
}

TEST(Mamba2, KeepsOneStatePerHead) {
    // a layer: 5120 x 128 x 4 B = 2,621,440 and 3 x 5376 x 2 B = 32,256
    EXPECT_EQ(state_bytes_per_sequence(mamba2()), 64.0 * (2621440.0 + 32256.0));
    EXPECT_EQ(cache_bytes(mamba2(), 1), cache_bytes(mamba2(), 1e6));
}

TEST(Mamba2, DecodeAndPrefillCores) {
    // decode: 5 x 655,360 + 2 x 5120 = 3,287,040 a token
    EXPECT_EQ(one(mamba2(), "layers.attention.core_recurrent", decode_step(2, 99)).flops, 2.0 * 3287040.0);
    EXPECT_EQ(one(mamba2(), "layers.attention.core_recurrent", decode_step(2, 99)).cache, 2.0 * 2.0 * 2621440.0);
    // prefill of 300 in chunks of 256: 256 x 257 / 2 + 44 x 45 / 2 = 32,896 + 990 = 33,886 pairs;
    // 4 x 655,360 x 300 + (2 x 128 + 2 x 5120) x 33,886 = 786,432,000 + 355,667,456
    EXPECT_EQ(one(mamba2(), "layers.attention.core_chunked", prefill_step(1, 300)).flops, 1142099456.0);
}

TEST(Mamba1, CountsItsSelectionAndItsState) {
    // Jamba v0.1: hidden 4096, inner 8192, 16 states, step rank 256, norms inside.
    // in      4096 x 16384 = 67,108,864
    // conv    8192 x (4 + 1) = 40,960; A 8192 x 16 = 131,072; D 8192
    // select  8192 x (256 + 32) = 2,359,296; norms 288
    // step    256 x 8192 + 8192 = 2,105,344
    // out     8192 x 4096 = 33,554,432
    const Lowered model = lowered(mixer_only(4096, 100,
                                             testing::block<Mamba1>(Mamba1Shape{.inner = 8192,
                                                                                .state_size = 16,
                                                                                .step_rank = 256,
                                                                                .convolution = 4.0,
                                                                                .projection_bias = false,
                                                                                .convolution_bias = true,
                                                                                .inner_norms = true}),
                                             1));
    EXPECT_EQ(mixer_parameters(model), 105308448.0);
    EXPECT_EQ(state_bytes_per_sequence(model), 8192.0 * 16.0 * 4.0 + 3.0 * 8192.0 * 2.0);
}

}  // namespace
}  // namespace roofline::model
