#include "roofline/predict/pages.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "predict/random_scenarios.hpp"

namespace roofline::predict {
namespace {

using namespace testing;
using Keeps = PageTable::Keeps;

/// Caches alone: paging looks at nothing else.
model::Cache cache(std::string name, double layers, double entry, Reach reach, double state = 0.0) {
    model::Cache result;
    result.name = std::move(name);
    result.layers = layers;
    result.bytes_per_entry = entry;
    result.reach = reach;
    result.bytes_per_sequence = state;
    return result;
}

Lowered keeping(std::vector<model::Cache> caches) {
    Lowered lowered;
    lowered.caches = std::move(caches);
    return lowered;
}

EngineRules tables(double slack = 1.5) {
    EngineRules rules;
    rules.layout = EngineRules::Layout::tables;
    rules.group_slack.value = slack;
    return rules;
}

EngineRules pools() {
    EngineRules rules;
    rules.layout = EngineRules::Layout::pools;
    return rules;
}

TEST(Pages, AContextIsRoundedUpToWholeBlocks) {
    // Llama 3 8B: 32 layers x 8 heads x 128 x 2 x 2 B = 131,072 B a token; blocks of 16: 2,097,152 B.
    const Lowered llama = lowered(llama_3_8b());
    const PagedCache paging = paged(llama, tables(), 16.0);
    ASSERT_EQ(paging.pools.size(), 1U);
    ASSERT_EQ(paging.pools[0].tables.size(), 1U);
    EXPECT_EQ(paging.pools[0].block_bytes, 2097152.0);
    EXPECT_EQ(paging.bytes(1.0), 2097152.0);
    EXPECT_EQ(paging.bytes(16.0), 2097152.0);
    EXPECT_EQ(paging.bytes(17.0), 2.0 * 2097152.0);
    EXPECT_EQ(paging.bytes(8192.0), 512.0 * 2097152.0);
}

TEST(Pages, HalfWindowsAreTwoTablesOfOnePool) {
    // gpt-oss-20b: 12 layers keep all, 12 a window of 128; 8 heads x 64 x 2 x 2 B = 2,048 B a token and layer. A page
    // is 16 x 2,048 = 32,768 B, a group 12 layers: 393,216 B a block. At 8,192 tokens 512 blocks for the full layers;
    // a window of 128 tokens may begin inside a block: ceil(127 / 16) + 1 = 9.
    const Lowered model = keeping({cache("layers[full].attention.kv", 12, 2048, Reach::full()),
                                   cache("layers[sliding].attention.kv", 12, 2048, Reach::window(128))});
    const PagedCache paging = paged(model, tables(), 16.0);
    ASSERT_EQ(paging.pools.size(), 1U);
    ASSERT_EQ(paging.tables(), 2.0);
    EXPECT_EQ(paging.pools[0].block_bytes, 393216.0);
    EXPECT_EQ(paging.pools[0].held(8192.0), 512.0 + 9.0);
    EXPECT_EQ(paging.pools[0].held(100.0), 7.0 + 7.0) << "below the window nothing is given back";
    EXPECT_EQ(paging.pools[0].held(129.0), 9.0 + 9.0) << "never more than all of it";
    // Admission: min(127 + 8,192, 8,192) / 16 + 1 = 513.
    EXPECT_EQ(paging.pools[0].admitted(8192.0, 8192.0), 512.0 + 513.0);
    // min(127 + 8,192, 131,072) = 8,319 -> 520 + 1.
    EXPECT_EQ(paging.pools[0].admitted(131072.0, 8192.0), 8192.0 + 521.0);
}

TEST(Pages, UnevenKindsBecomeGroupsOfTheSmallerKindWithPadding) {
    // Gemma 3 27B: 10 full and 52 windowed layers; 16 heads x 128 x 2 x 2 B = 8,192 B. Groups of 10: 1 full, 6 windowed
    // (52 = 4 x 9 + 2 x 8: 8 layers of padding). A block is 10 x 16 x 8,192 = 1,310,720 B.
    const Lowered model = keeping({cache("layers[full].attention.kv", 10, 8192, Reach::full()),
                                   cache("layers[sliding].attention.kv", 52, 8192, Reach::window(1024))});
    const PagedCache paging = paged(model, tables(), 16.0);
    EXPECT_EQ(paging.tables(), 7.0);
    EXPECT_EQ(paging.pools[0].block_bytes, 1310720.0);
    double layers = 0.0;
    double padding = 0.0;
    for (const PageTable& table : paging.pools[0].tables) {
        layers += table.layers;
        padding += table.padding;
        EXPECT_EQ(table.layers + table.padding, 10.0);
    }
    EXPECT_EQ(layers, 62.0) << "no layer is lost";
    EXPECT_EQ(padding, 8.0);
}

TEST(Pages, KindsOfNearlyEqualNumberBecomeOneGroupEach) {
    // 13 and 12 layers: 13 < 12 x 1.5, so both are groups of 13 instead of 12 and 2 x 12.
    const Lowered model =
        keeping({cache("a.kv", 13, 2048, Reach::full()), cache("b.kv", 12, 2048, Reach::window(128))});
    EXPECT_EQ(paged(model, tables(), 16.0).tables(), 2.0);
    EXPECT_EQ(paged(model, tables(), 16.0).pools[0].block_bytes, 13.0 * 16.0 * 2048.0);
    EXPECT_EQ(paged(model, tables(1.0), 16.0).tables(), 3.0);
}

TEST(Pages, AStateIsAPageAndAttentionsBlocksGrowUntilTheirsCanHoldIt) {
    // Qwen3.5 27B: 16 attention layers of 4 heads x 256 x 2 x 2 B = 4,096 B a token; 48 layers with a state of 48 x 128
    // x 128 x 4 B = 3,145,728 B and a convolution of 10,240 channels x 3 x 2 B = 61,440 B, together 3,207,168 B.
    // ceil(3,207,168 / (16 x 4,096)) = 49 -> blocks of 784 tokens; a page 784 x 4,096 = 3,211,264 B. Groups of 16: one
    // of attention, three of states. A sequence of 32,768 tokens: ceil(32,768 / 784) = 42, and 3 states.
    const Lowered model = keeping({cache("layers[full].attention.kv", 16, 4096, Reach::full()),
                                   cache("layers[linear].attention.state", 48, 0, Reach::full(), 3145728),
                                   cache("layers[linear].attention.convolution", 48, 0, Reach::full(), 61440)});
    const PagedCache paging = paged(model, tables(), 16.0);
    EXPECT_EQ(paging.block_tokens, 784.0);
    EXPECT_EQ(paging.tables(), 4.0);
    EXPECT_EQ(paging.pools[0].block_bytes, 16.0 * 3211264.0);
    EXPECT_EQ(paging.pools[0].held(32768.0), 45.0);
    EXPECT_EQ(paging.pools[0].held(1.0), 4.0) << "the first token takes a whole block and all states";
    // A log of this model prints 290,864 tokens and 33.04 sequences of 32,768: 1,487 blocks / 45 = 33.04, and
    // floor(1,487 / 4) x 784 = 290,864.
    EXPECT_EQ(std::floor(1487.0 / paging.tables()) * paging.block_tokens, 290864.0);
    EXPECT_NEAR(1487.0 / paging.pools[0].held(32768.0), 33.04, 0.005);
}

TEST(Pages, NarrowLayersHoldMoreTokensInAPageOfTheCommonSize) {
    const Lowered model = keeping({cache("a.kv", 4, 4096, Reach::full()), cache("b.kv", 4, 1024, Reach::window(64))});
    const PagedCache paging = paged(model, tables(), 16.0);
    ASSERT_EQ(paging.tables(), 2.0);
    EXPECT_EQ(paging.pools[0].tables[0].block_tokens, 16.0);
    EXPECT_EQ(paging.pools[0].tables[1].block_tokens, 64.0);
    // 1,536 does not divide 4,096: the page is padded and its block stays at 16.
    const Lowered odd = keeping({cache("a.kv", 4, 4096, Reach::full()), cache("b.kv", 4, 1536, Reach::window(64))});
    EXPECT_EQ(paged(odd, tables(), 16.0).pools[0].tables[1].block_tokens, 16.0);
}

TEST(Pages, ALatentEntryAndItsIndexShareOneTable) {
    const Lowered model = keeping({cache("layers.attention.kv", 61, 1152, Reach::full()),
                                   cache("layers.attention.index", 61, 132, Reach::best(2048))});
    const PagedCache paging = paged(model, tables(), 64.0);
    EXPECT_EQ(paging.tables(), 1.0);
    EXPECT_EQ(paging.pools[0].block_bytes, 61.0 * 64.0 * (1152.0 + 132.0));
}

TEST(Pages, PoolsOfTheirOwnAreSplitOnceByARatio) {
    // 4 full layers of 1,000 B and 4 windowed of 1,000 B a token, 0.8 windowed tokens for each full one: shares 1 :
    // 0.8.
    EngineRules rules = pools();
    rules.window_ratio = Figure{0.8, "", ""};
    const Lowered model = keeping({cache("a.kv", 4, 1000, Reach::full()), cache("b.kv", 4, 1000, Reach::window(100))});
    const PagedCache paging = paged(model, rules, 1.0);
    ASSERT_EQ(paging.pools.size(), 2U);
    EXPECT_NEAR(paging.pools[0].share, 1.0 / 1.8, 1e-12);
    EXPECT_NEAR(paging.pools[1].share, 0.8 / 1.8, 1e-12);
    // Without a ratio, as a sequence needs: 8,192 against 100 tokens.
    const PagedCache even = paged(model, pools(), 1.0);
    EXPECT_NEAR(even.share(even.pools[1], 8192.0), 100.0 / 8292.0, 1e-12);
    EXPECT_NEAR(even.share(even.pools[1], 50.0), 0.5, 1e-12);
    // States get 0.9 bytes for each byte of the others.
    rules.state_ratio = Figure{0.9, "", ""};
    const Lowered hybrid =
        keeping({cache("a.kv", 4, 1000, Reach::full()), cache("b.state", 12, 0, Reach::full(), 50000)});
    const PagedCache split = paged(hybrid, rules, 1.0);
    EXPECT_NEAR(split.pools[1].share, 0.9 / 1.9, 1e-12);
    EXPECT_NEAR(split.pools[0].share + split.pools[1].share, 1.0, 1e-12);
}

TEST(Pages, NeverHoldLessThanTheIdealCache) {
    Random random(77);
    for (int i = 0; i < 300; ++i) {
        const Lowered model = random_lowered(random, random_architecture(random));
        const double context = std::floor(random.scale(1.0, 1e6));
        const double ideal = model::cache_bytes(model, context);
        for (const EngineRules& rules : {tables(), pools()}) {
            const double block = random.pick({1.0, 16.0, 64.0});
            const PagedCache paging = paged(model, rules, block);
            // Parts that wait to be pooled, a few entries of a layer, are not paged.
            double waiting = 0.0;
            for (const model::Cache& kept : model.caches)
                if (kept.bytes_per_entry > 0.0) waiting += kept.layers * kept.bytes_per_sequence;
            EXPECT_GE(paging.bytes(context) * (1.0 + 1e-12), ideal - waiting) << i;
            EXPECT_GE(paging.bytes(context + 1.0), paging.bytes(context)) << i;
            double shares = 0.0;
            for (const PagePool& pool : paging.pools) shares += paging.share(pool, context);
            if (!paging.pools.empty()) {
                EXPECT_NEAR(shares, 1.0, 1e-9) << i;
            }
        }
    }
}

TEST(Pages, AModelThatKeepsNothingHasNoPools) {
    EXPECT_TRUE(paged(Lowered{}, tables(), 16.0).pools.empty());
    EXPECT_EQ(paged(Lowered{}, tables(), 16.0).bytes(1000.0), 0.0);
}

}  // namespace
}  // namespace roofline::predict
