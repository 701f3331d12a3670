// DeepSeek-V3's attention on paper: hidden 7168, 128 heads, query rank 1536, KV rank 512, head parts 128 + 64 (rotary),
// values of 128.
#include "roofline/model/attention/mla.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "model/scenarios.hpp"

namespace roofline::model {
namespace {

using testing::lowered;
using testing::one;

MlaShape deepseek_v3() {
    return {.heads = 128,
            .query_rank = 1536,
            .kv_rank = 512,
            .nope_dim = 128,
            .rope_dim = 64,
            .value_dim = 128,
            .bias = false,
            .indexer = {},
            .chosen = 0.0};
}

// V3.2: 64 index heads of 128, keys of 128 B and a 4 B scale, the best 2048 read.
MlaShape deepseek_v3_2() {
    MlaShape shape = deepseek_v3();
    shape.indexer = Indexer{.heads = 64,
                            .dim = 128,
                            .query_inner = 1536,
                            .key_bytes = 132,
                            .norm_parameters = 256,
                            .key_cols = 0,
                            .waiting_bytes = 0,
                            .weighs_heads = true,
                            .scored = Reach::full()};
    shape.chosen = 2048;
    return shape;
}

Lowered lower_one(const MlaShape& shape, LatentMode mode = LatentMode::automatic, std::string_view kv = "bf16") {
    LayerKind kind;
    kind.label = "only";
    kind.mixer = testing::block<Mla>(shape);
    kind.norm_before_mixer = false;
    Architecture model = testing::stack(7168, 100, kind);
    model.final_norm = false;
    return lowered(model, {.latent = mode}, "bf16", DType::bf16, kv);
}

double attention_parameters(const Lowered& model) {
    double sum = 0.0;
    for (const Operator& op : model.operators) {
        if (op.name.starts_with("layers.attention")) sum += op.count * op.parameters;
    }
    return sum;
}

constexpr double up_flops = 33554432;      // per token or entry: 2 x 512 x 128 x (128 + 128)
constexpr double absorbed_flops = 278528;  // per pair: 2 x 128 x (512 + 64 + 512)
constexpr double expanded_flops = 81920;   // per pair: 2 x 128 x (128 + 64 + 128)
constexpr double entry_bytes = 1152;       // (512 + 64) x 2 B

TEST(Mla, ALayerHas187107328Parameters) {
    // q_down   7168 x 1536          =  11,010,048
    // q_norm                              1,536
    // q_up     1536 x 128 x 192     =  37,748,736
    // kv_down  7168 x (512 + 64)    =   4,128,768
    // kv_norm                               512
    // kv_up    512 x 128 x 256      =  16,777,216
    // out      128 x 128 x 7168     = 117,440,512
    for (const LatentMode mode : {LatentMode::automatic, LatentMode::absorbed, LatentMode::expanded}) {
        EXPECT_EQ(attention_parameters(lower_one(deepseek_v3(), mode)), 187107328.0);
    }
}

TEST(Mla, CachesOneLatentOf576NumbersForAllHeads) {
    EXPECT_EQ(kv_bytes_per_token(lower_one(deepseek_v3())), entry_bytes);
    EXPECT_EQ(kv_bytes_per_token(lower_one(deepseek_v3(), LatentMode::automatic, "fp8")), 576.0);
    EXPECT_EQ(cache_bytes(lower_one(deepseek_v3()), 1000), 1000.0 * entry_bytes);
}

TEST(Mla, DecodeIsAbsorbed) {
    const Lowered model = lower_one(deepseek_v3());
    const Step step = decode_step(1, 4096);
    EXPECT_EQ(one(model, "layers.attention.kv_up", step).flops, up_flops);
    EXPECT_EQ(one(model, "layers.attention.kv_up", step).weights, 33554432.0);          // 16,777,216 x 2 B
    EXPECT_EQ(one(model, "layers.attention.core_absorbed", step).flops, 1140850688.0);  // 278,528 x 4096
    EXPECT_EQ(one(model, "layers.attention.core_absorbed", step).cache, 4718592.0);     // 1152 x 4096
    EXPECT_EQ(one(model, "layers.attention.core_expanded", step).flops, 0.0);
    EXPECT_EQ(one(model, "layers.attention.core_expanded", step).bytes(), 0.0);
}

TEST(Mla, PrefillIsExpanded) {
    const Lowered model = lower_one(deepseek_v3());
    const Step step = prefill_step(1, 512);
    EXPECT_EQ(one(model, "layers.attention.kv_up", step).flops, 17179869184.0);          // 33,554,432 x 512
    EXPECT_EQ(one(model, "layers.attention.core_expanded", step).flops, 10758389760.0);  // 81,920 x 131,328 pairs
    EXPECT_EQ(one(model, "layers.attention.core_absorbed", step).flops, 0.0);
    // The latent is read once, by the up-projection: 512 x 1152.
    EXPECT_EQ(one(model, "layers.attention.kv_up", step).cache, 589824.0);
    EXPECT_EQ(one(model, "layers.attention.core_expanded", step).cache, 0.0);
    // Expanded keys and values, 512 x 32768 x 2 B, are written by one and read by the other.
    EXPECT_EQ(one(model, "layers.attention.kv_up", step).activations, 33554432.0);
    // and queries of 192 and results of 128 a head: 512 x 128 x 320 x 2 B = 41,943,040
    EXPECT_EQ(one(model, "layers.attention.core_expanded", step).activations, 41943040.0 + 33554432.0);
}

TEST(Mla, EitherWayCanBeForced) {
    const Lowered absorbed = lower_one(deepseek_v3(), LatentMode::absorbed);
    EXPECT_EQ(one(absorbed, "layers.attention.core", prefill_step(1, 512)).flops, 36578525184.0);  // 278,528 x 131,328
    EXPECT_EQ(one(absorbed, "layers.attention.kv_up", prefill_step(1, 512)).flops, 512.0 * up_flops);
    const Lowered expanded = lower_one(deepseek_v3(), LatentMode::expanded);
    EXPECT_EQ(one(expanded, "layers.attention.kv_up", decode_step(1, 4096)).flops, 137438953472.0);  // every entry
    EXPECT_EQ(one(expanded, "layers.attention.core", decode_step(1, 4096)).flops, 335544320.0);      // 81,920 x 4096
}

TEST(Mla, ALongPrefixIsExpandedAgainOnlyIfEnoughNewTokensRepayIt) {
    // Expanding 1000 cached entries costs 1000 x 33,554,432 flops and saves 278,528 - 81,920 = 196,608 on each pair: it
    // pays from 170,666.7 pairs on. 158 new tokens have 158 x 1000 + 158 x 159 / 2 = 170,561, 159 have 171,720.
    const Lowered model = lower_one(deepseek_v3());
    EXPECT_EQ(one(model, "layers.attention.core_absorbed", prefill_step(1, 158, 1000)).flops,
              170561.0 * absorbed_flops);
    EXPECT_EQ(one(model, "layers.attention.core_expanded", prefill_step(1, 158, 1000)).flops, 0.0);
    EXPECT_EQ(one(model, "layers.attention.kv_up", prefill_step(1, 158, 1000)).flops, 158.0 * up_flops);
    EXPECT_EQ(one(model, "layers.attention.core_absorbed", prefill_step(1, 159, 1000)).flops, 0.0);
    EXPECT_EQ(one(model, "layers.attention.core_expanded", prefill_step(1, 159, 1000)).flops,
              171720.0 * expanded_flops);
    EXPECT_EQ(one(model, "layers.attention.kv_up", prefill_step(1, 159, 1000)).flops, 1159.0 * up_flops);
    // The same for many sequences alike.
    EXPECT_EQ(one(model, "layers.attention.core_expanded", prefill_step(7, 158, 1000)).flops, 0.0);
    EXPECT_EQ(one(model, "layers.attention.core_absorbed", prefill_step(7, 159, 1000)).flops, 0.0);
}

TEST(Mla, AutomaticPrefillNeverHasMoreFlopsThanEitherForcedWay) {
    for (const double rank : {32.0, 128.0, 512.0}) {  // a rank of 32 is so narrow that absorbing always wins
        MlaShape shape = deepseek_v3();
        shape.kv_rank = rank;
        const Lowered automatic = lower_one(shape);
        const Lowered absorbed = lower_one(shape, LatentMode::absorbed);
        const Lowered expanded = lower_one(shape, LatentMode::expanded);
        for (const double past : {0.0, 100.0, 10000.0}) {
            for (const double fresh : {1.0, 50.0, 3000.0}) {
                const Step step = prefill_step(2, fresh, past);
                const double least =
                    std::min(testing::totals(absorbed, step).flops, testing::totals(expanded, step).flops);
                EXPECT_LE(testing::totals(automatic, step).flops, least * (1.0 + 1e-12))
                    << "rank " << rank << ", " << fresh << " tokens after " << past;
            }
        }
    }
}

TEST(Mla, AMixedStepGoesBothWaysAndReadsTheWeightOnce) {
    const Lowered model = lower_one(deepseek_v3());
    const Step step = mixed_step(10, 4096, 512, 0, true);
    EXPECT_EQ(one(model, "layers.attention.core_absorbed", step).flops, 10.0 * 4096.0 * absorbed_flops);
    EXPECT_EQ(one(model, "layers.attention.core_expanded", step).flops, 131328.0 * expanded_flops);
    EXPECT_EQ(one(model, "layers.attention.kv_up", step).flops, 522.0 * up_flops);
    EXPECT_EQ(one(model, "layers.attention.kv_up", step).weights, 33554432.0);
}

TEST(Mla, WithoutAQueryRankQueriesAreProjectedDirectly) {
    // V2-Lite: 2048 -> 16 heads of 192
    MlaShape shape = deepseek_v3();
    shape.query_rank = 0;
    const Lowered model = lower_one(shape);
    EXPECT_EQ(testing::op_of(model, "layers.attention.q").parameters, 7168.0 * 128.0 * 192.0);
    EXPECT_EQ(testing::find(model, "layers.attention.q_down"), nullptr);
}

TEST(SparseMla, ReadsTheBestButScoresAll) {
    const Lowered model = lower_one(deepseek_v3_2());
    const Step step = decode_step(1, 8192);
    EXPECT_EQ(one(model, "layers.attention.core_absorbed", step).flops, 2048.0 * absorbed_flops);
    EXPECT_EQ(one(model, "layers.attention.core_absorbed", step).cache, 2048.0 * entry_bytes);
    // 64 heads x (128 multiply-adds and one for the weighted sum) x 8192 keys of 132 B
    EXPECT_EQ(one(model, "layers.attention.index_scores", step).flops, 2.0 * 64.0 * 129.0 * 8192.0);
    EXPECT_EQ(one(model, "layers.attention.index_scores", step).cache, 8192.0 * 132.0);
    // all latents stay, and so do all index keys
    EXPECT_EQ(cache_bytes(model, 8192), 8192.0 * (entry_bytes + 132.0));
}

TEST(SparseMla, ShortPromptsLeaveNothingOutAndAreExpanded) {
    const Lowered model = lower_one(deepseek_v3_2());
    EXPECT_EQ(one(model, "layers.attention.core_expanded", prefill_step(1, 2048)).flops,
              2048.0 * 2049.0 / 2.0 * expanded_flops);
    EXPECT_EQ(one(model, "layers.attention.core_absorbed", prefill_step(1, 2048)).flops, 0.0);
    EXPECT_EQ(one(model, "layers.attention.core_expanded", prefill_step(1, 2049)).flops, 0.0);
    EXPECT_EQ(one(model, "layers.attention.core_absorbed", prefill_step(1, 2049)).flops,
              (2048.0 * 2049.0 / 2.0 + 2048.0) * absorbed_flops);
}

TEST(SparseMla, TheIndexerAddsItsOwnParameters) {
    // queries 1536 x 64 x 128 = 12,582,912; keys and head weights 7168 x (128 + 64) = 1,376,256; key norm 256
    EXPECT_EQ(attention_parameters(lower_one(deepseek_v3_2())), 187107328.0 + 12582912.0 + 1376256.0 + 256.0);
}

TEST(SparseMla, AnEightBitCacheKeepsTheRotaryKeyWide) {
    // 512 B, four fp32 scales for 128 numbers each, 64 rotary numbers in bf16: 512 + 16 + 128 = 656
    const Lowered model = lower_one(deepseek_v3_2(), LatentMode::automatic, "fp8");
    EXPECT_EQ(kv_bytes_per_token(model), 656.0 + 132.0);
}

}  // namespace
}  // namespace roofline::model
