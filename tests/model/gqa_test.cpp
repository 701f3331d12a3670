#include "roofline/model/attention/gqa.hpp"

#include <gtest/gtest.h>

#include "model/scenarios.hpp"

namespace roofline::model {
namespace {

using testing::lowered;
using testing::one;

// One layer of hidden 64 with 8 heads of 16 (wider than hidden / heads = 8) and 2 KV heads.
GqaShape small() {
    return {.heads = 8, .kv_heads = 2, .head_dim = 16, .reach = Reach::full()};
}

Lowered lower_one(const GqaShape& shape, const LoweringOptions& options = {}) {
    return lowered(testing::stack(64, 100, testing::layer(testing::gqa(shape), testing::dense({.width = 96}))),
                   options);
}

double parameters(const GqaShape& shape) {
    return count_parameters(lower_one(shape)).total;
}

TEST(Gqa, ProjectsToHeadsTimesHeadDimAndBack) {
    const Lowered model = lower_one(small());
    // 64 x (8 x 16 + 2 x 16 + 2 x 16) and 128 x 64
    EXPECT_EQ(testing::op_of(model, "layers.attention.qkv").parameters, 64.0 * 192.0);
    EXPECT_EQ(testing::op_of(model, "layers.attention.out").parameters, 128.0 * 64.0);
}

TEST(Gqa, KvBytesShrinkByTheGroupFactor) {
    GqaShape mha = small();
    mha.kv_heads = mha.heads;
    const Step step = decode_step(3, 1000);
    // 8 heads share 2 KV heads: a quarter of the cache and of its traffic; the same flops in the core.
    EXPECT_EQ(kv_bytes_per_token(lower_one(mha)), 4.0 * kv_bytes_per_token(lower_one(small())));
    EXPECT_EQ(one(lower_one(mha), "layers.attention.core", step).cache,
              4.0 * one(lower_one(small()), "layers.attention.core", step).cache);
    EXPECT_EQ(one(lower_one(mha), "layers.attention.core", step).flops,
              one(lower_one(small()), "layers.attention.core", step).flops);
    // 2 KV heads x (16 + 16) x 2 B
    EXPECT_EQ(kv_bytes_per_token(lower_one(small())), 128.0);
}

TEST(Gqa, MqaHasOneKeyAndValueForAllHeads) {
    GqaShape mqa = small();
    mqa.kv_heads = 1;
    EXPECT_EQ(kv_bytes_per_token(lower_one(mqa)), 64.0);
}

TEST(Gqa, ValuesMayBeNarrowerThanKeys) {
    GqaShape shape = small();
    shape.value_dim = 8;
    const Lowered model = lower_one(shape);
    EXPECT_EQ(testing::op_of(model, "layers.attention.qkv").parameters, 64.0 * (128.0 + 32.0 + 16.0));
    EXPECT_EQ(testing::op_of(model, "layers.attention.out").parameters, 64.0 * 64.0);
    EXPECT_EQ(kv_bytes_per_token(model), 2.0 * (16.0 + 8.0) * 2.0);
    // 2 x 8 heads x (16 + 8) x 10 pairs
    EXPECT_EQ(one(model, "layers.attention.core", decode_step(1, 10)).flops, 3840.0);
}

TEST(Gqa, BiasesCountOncePerColumn) {
    GqaShape shape = small();
    shape.qkv_bias = true;
    EXPECT_EQ(parameters(shape) - parameters(small()), 128.0 + 32.0 + 32.0);
    shape = small();
    shape.out_bias = true;
    EXPECT_EQ(parameters(shape) - parameters(small()), 64.0);
}

TEST(Gqa, QkNormHasOneGainPerHeadElementOrPerColumn) {
    GqaShape shape = small();
    shape.qk_norm = QkNorm::per_head;
    EXPECT_EQ(parameters(shape) - parameters(small()), 16.0 + 16.0);  // shared by all heads: Qwen3
    shape.qk_norm = QkNorm::full_width;
    EXPECT_EQ(parameters(shape) - parameters(small()), 128.0 + 32.0);  // OLMo 2
}

TEST(Gqa, SinksAreOneParameterAHead) {
    GqaShape shape = small();
    shape.sinks = true;
    EXPECT_EQ(parameters(shape) - parameters(small()), 8.0);
}

TEST(Gqa, ParametersDoNotDependOnHowAttentionIsComputed) {
    GqaShape shape = small();
    shape.sinks = true;
    const LoweringOptions unfused{.scores = AttentionScores::in_memory};
    EXPECT_EQ(count_parameters(lower_one(shape, unfused)).total, count_parameters(lower_one(shape)).total);
}

TEST(Gqa, GatesWidenTheInputProjection) {
    GqaShape shape = small();
    shape.gate = true;
    EXPECT_EQ(parameters(shape) - parameters(small()), 64.0 * 128.0);  // as wide as the queries
    shape = small();
    shape.head_gate = true;
    EXPECT_EQ(parameters(shape) - parameters(small()), 64.0 * 8.0);  // one a head
}

TEST(Gqa, ValuesThatAreKeysNeedNoProjectionButAreCached) {
    GqaShape shape = small();
    shape.value_is_key = true;
    EXPECT_EQ(parameters(small()) - parameters(shape), 64.0 * 32.0);
    EXPECT_EQ(kv_bytes_per_token(lower_one(shape)), kv_bytes_per_token(lower_one(small())));
}

TEST(SlidingWindow, CapsWhatIsReadAndWhatIsKept) {
    GqaShape shape = small();
    shape.reach = Reach::window(512);
    const Lowered model = lower_one(shape);
    // 128 B an entry
    EXPECT_EQ(one(model, "layers.attention.core", decode_step(1, 100)).cache, 100.0 * 128.0);
    EXPECT_EQ(one(model, "layers.attention.core", decode_step(1, 512)).cache, 512.0 * 128.0);
    EXPECT_EQ(one(model, "layers.attention.core", decode_step(1, 100000)).cache, 512.0 * 128.0);
    EXPECT_EQ(one(model, "layers.attention.core", decode_step(1, 100000)).flops, 512.0 * 2.0 * 8.0 * 32.0);
    EXPECT_EQ(cache_bytes(model, 100), 100.0 * 128.0);
    EXPECT_EQ(cache_bytes(model, 100000), 512.0 * 128.0);
    EXPECT_EQ(kv_bytes_per_token(model), 128.0);
    EXPECT_EQ(kv_bytes_per_token_beyond_windows(model), 0.0);
}

TEST(SlidingWindow, LayersBesideFullOnesAreCountedApart) {
    // Two sliding and one full layer, as in Gemma: at 10,000 tokens 2 x 512 + 10,000 entries of 128 B are kept.
    GqaShape sliding = small();
    sliding.reach = Reach::window(512);
    Architecture model =
        testing::stack(64, 100, testing::layer(testing::gqa(sliding), testing::dense({.width = 96}), "sliding"));
    model.kinds.push_back(testing::layer(testing::gqa(small()), testing::dense({.width = 96}), "full"));
    model.layers = {0, 0, 1};
    const Lowered both = lowered(model);
    EXPECT_EQ(cache_bytes(both, 10000), (2.0 * 512.0 + 10000.0) * 128.0);
    EXPECT_EQ(kv_bytes_per_token(both), 3.0 * 128.0);
    EXPECT_EQ(kv_bytes_per_token_beyond_windows(both), 128.0);
    EXPECT_EQ(testing::op_of(both, "layers[sliding].attention.core").count, 2.0);
    EXPECT_EQ(testing::op_of(both, "layers[full].attention.core").count, 1.0);
}

TEST(ChunkedAttention, StartsOverAtEveryChunk) {
    GqaShape shape = small();
    shape.reach = Reach::chunked(512);
    const Lowered model = lower_one(shape);
    EXPECT_EQ(one(model, "layers.attention.core", decode_step(1, 512)).cache, 512.0 * 128.0);
    EXPECT_EQ(one(model, "layers.attention.core", decode_step(1, 513)).cache, 128.0);
    EXPECT_EQ(cache_bytes(model, 100000), 512.0 * 128.0);
}

TEST(UnfusedAttention, MaterialisesAFullRectangleOfScores) {
    const Lowered model = lower_one(small(), {.scores = AttentionScores::in_memory});
    EXPECT_EQ(testing::find(model, "layers.attention.core"), nullptr);
    // 100 tokens: 8 heads x 100 x 100 scores of 2 B = 160,000 B; queries 100 x 128 x 2 B = 25,600 B.
    const Step step = prefill_step(1, 100);
    EXPECT_EQ(one(model, "layers.attention.scores", step).activations, 160000.0 + 25600.0);
    EXPECT_EQ(one(model, "layers.attention.softmax", step).activations, 320000.0);
    EXPECT_EQ(one(model, "layers.attention.values", step).activations, 160000.0 + 25600.0);
    // masked pairs are computed too: 2 x 8 x 16 x 100 x 100
    EXPECT_EQ(one(model, "layers.attention.scores", step).flops, 2560000.0);
    EXPECT_EQ(one(model, "layers.attention.values", step).flops, 2560000.0);
}

TEST(UnfusedAttention, ASlidingWindowNeedsNoScoresOutsideIt) {
    GqaShape shape = small();
    shape.reach = Reach::window(64);
    const Lowered model = lower_one(shape, {.scores = AttentionScores::in_memory});
    // decode at 1000: 8 heads x 64 scores of 2 B, and the query
    EXPECT_EQ(one(model, "layers.attention.scores", decode_step(1, 1000)).activations, 1024.0 + 256.0);
    EXPECT_EQ(one(model, "layers.attention.scores", decode_step(1, 1000)).flops, 2.0 * 8.0 * 16.0 * 64.0);
}

TEST(UnfusedAttention, ReadsTheSameCacheAndNeverMovesFewerBytesThanFlash) {
    for (const Reach& reach : {Reach::full(), Reach::window(64), Reach::chunked(64)}) {
        GqaShape shape = small();
        shape.reach = reach;
        const Lowered flash = lower_one(shape);
        const Lowered unfused = lower_one(shape, {.scores = AttentionScores::in_memory});
        for (const Step& step : {decode_step(1, 1), decode_step(5, 1000), prefill_step(1, 1), prefill_step(2, 300),
                                 prefill_step(1, 10, 500), mixed_step(3, 100, 64, 10, true)}) {
            EXPECT_EQ(testing::totals(unfused, step).cache, testing::totals(flash, step).cache);
            EXPECT_GT(testing::totals(unfused, step).bytes(), testing::totals(flash, step).bytes());
            EXPECT_GE(testing::totals(unfused, step).flops, testing::totals(flash, step).flops);
        }
    }
}

TEST(Gqa, DescribesHowHeadsAreShared) {
    GqaShape shape = small();
    EXPECT_TRUE(Gqa(shape).describe().starts_with("GQA"));
    shape.kv_heads = 8;
    EXPECT_TRUE(Gqa(shape).describe().starts_with("MHA"));
    shape.kv_heads = 1;
    EXPECT_TRUE(Gqa(shape).describe().starts_with("MQA"));
}

}  // namespace
}  // namespace roofline::model
