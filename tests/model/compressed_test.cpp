// DeepSeek V4 Pro on paper: hidden 7168, 128 heads of 512 (64 rotary) over one key-value vector, query rank 1536,
// output rank 1024 in 16 groups, window 128; layers pool 4 tokens (the best 1024 read) or 128 (all read).
#include "roofline/model/attention/compressed.hpp"

#include <gtest/gtest.h>

#include "model/scenarios.hpp"

namespace roofline::model {
namespace {

using testing::lowered;
using testing::one;

CompressedShape pool_128() {
    CompressedShape shape;
    shape.heads = 128;
    shape.head_dim = 512;
    shape.rope_dim = 64;
    shape.query_rank = 1536;
    shape.out_rank = 1024;
    shape.out_groups = 16;
    shape.window = 128;
    shape.ratio = 128;
    return shape;
}

CompressedShape pool_4() {
    CompressedShape shape = pool_128();
    shape.ratio = 4;
    shape.series = 2;  // overlapping windows
    shape.chosen = 1024;
    shape.indexer = Indexer{.heads = 64,
                            .dim = 128,
                            .query_inner = 1536,
                            .key_bytes = 132,
                            .norm_parameters = 4 * 2 * 128 + 128,
                            .key_cols = 512,
                            .waiting_bytes = 0,
                            .weighs_heads = true,
                            .scored = Reach::pooled(4)};
    return shape;
}

CompressedShape window_only() {
    CompressedShape shape = pool_128();
    shape.ratio = 0;
    return shape;
}

Lowered lower_one(const CompressedShape& shape, std::string_view kv = "bf16") {
    LayerKind kind;
    kind.label = "only";
    kind.mixer = testing::block<Compressed>(shape);
    kind.norm_before_mixer = false;
    Architecture model = testing::stack(7168, 100, kind);
    model.final_norm = false;
    return lowered(model, {}, "bf16", DType::bf16, kv);
}

double parameters(const CompressedShape& shape) {
    double sum = 0.0;
    for (const Operator& op : lower_one(shape).operators) {
        if (op.name.starts_with("layers.attention")) sum += op.parameters;
    }
    return sum;
}

// What every layer has:
//   q_down  7168 x 1536 = 11,010,048; q_norm 1,536; q_up 1536 x 65536 = 100,663,296
//   kv      7168 x 512  =  3,670,016; kv_norm 512
//   sinks   128
//   out     16 x (4096 x 1024) = 67,108,864, then 16384 x 7168 = 117,440,512
constexpr double common_parameters = 299894912;
// compressor of ratio 128: 7168 x 2 x 512 = 7,340,032, positions 128 x 512 = 65,536, norm 512
constexpr double pool_128_parameters = common_parameters + 7406080;
// of ratio 4, two series: 7168 x 2 x 1024 = 14,680,064, positions 4 x 1024 = 4,096, norm 512
// indexer: 1536 x 8192 = 12,582,912; 7168 x (512 + 64) = 4,128,768; its own positions and norm 1,152
constexpr double pool_4_parameters = common_parameters + 14684672 + 16712832;

TEST(Compressed, ParametersOfTheThreeKindsOfLayer) {
    EXPECT_EQ(parameters(window_only()), common_parameters);
    EXPECT_EQ(parameters(pool_128()), pool_128_parameters);
    EXPECT_EQ(parameters(pool_4()), pool_4_parameters);
}

TEST(Compressed, TheWholeOfV4ProAddsUpToItsCheckpoint) {
    // 61 layers: 31 of ratio 128 and 30 of ratio 4; 384 experts of 3072 and a shared one, 6 chosen; the first 3 layers
    // pick experts by hash and have no correction bias; 4 residual streams. Built here as four kinds of layer.
    const auto experts = [](bool hashed) {
        return testing::moe({.experts = 384,
                             .chosen = 6,
                             .width = 3072,
                             .router_parameters = hashed ? 0.0 : 384.0,
                             .shared_width = 3072});
    };
    Architecture model;
    model.hidden = 7168;
    model.vocabulary = 129280;
    model.streams = 4;
    for (const bool hashed : {true, false}) {
        model.kinds.push_back(testing::layer(testing::block<Compressed>(pool_128()), experts(hashed), "pool128"));
        model.kinds.push_back(testing::layer(testing::block<Compressed>(pool_4()), experts(hashed), "pool4"));
    }
    model.layers = {0, 0, 1};  // ratios 128, 128, 4, then 128, 4, 128, 4 ...
    for (int i = 3; i < 61; ++i) model.layers.push_back(i % 2 == 1 ? 2 : 3);
    // attention 31 x 307,300,992 + 30 x 331,292,416                          =    19,465,103,232
    // experts   61 x (385 x 66,060,288 + 7168 x 384) + 58 x 384              = 1,551,593,789,184
    // streams   2 x 61 x (28672 x 24 + 27) and a head of 28672 x 4 + 5       =        84,069,603
    // norms     (2 x 61 + 1) x 7168                                          =           881,664
    // tables    2 x 129280 x 7168                                            =     1,853,358,080
    // The sum is the safetensors total without the MTP layer and the hash tables.
    EXPECT_EQ(count_parameters(lowered(model)).total, 1572997201763.0);
}

TEST(Compressed, KeepsAWindowAndOneEntryPerRatio) {
    // 1024 B an entry in bf16. Ratio 128: window 128, floor(10000/128) = 78 pooled, and what waits to be pooled:
    // 128 tokens x 2 x 512 fp32 = 524,288 B
    EXPECT_EQ(cache_bytes(lower_one(pool_128()), 10000), 128.0 * 1024.0 + 78.0 * 1024.0 + 524288.0);
    EXPECT_EQ(cache_bytes(lower_one(window_only()), 10000), 128.0 * 1024.0);
    // Ratio 4: window, 2500 pooled, 2 x 4 x 2 x 1024 x 4 B = 65,536 waiting, 2500 index keys of 132 B
    EXPECT_EQ(cache_bytes(lower_one(pool_4()), 10000), 128.0 * 1024.0 + 2500.0 * 1024.0 + 65536.0 + 2500.0 * 132.0);
}

TEST(Compressed, AnEightBitCacheKeepsTheRotaryPartWide) {
    // 448 B + 64 x 2 B + 8 B of scales
    EXPECT_EQ(cache_bytes(lower_one(window_only(), "fp8"), 10000), 128.0 * 584.0);
}

TEST(Compressed, ReadsTheWindowAndThePooledEntries) {
    // 2 x 128 x (512 + 512) = 262,144 flops a pair
    const auto all = one(lower_one(pool_128()), "layers.attention.core", decode_step(1, 10000));
    EXPECT_EQ(all.flops, (128.0 + 78.0) * 262144.0);
    EXPECT_EQ(all.cache, (128.0 + 78.0) * 1024.0);
    const auto best = one(lower_one(pool_4()), "layers.attention.core", decode_step(1, 10000));
    EXPECT_EQ(best.flops, (128.0 + 1024.0) * 262144.0);
    EXPECT_EQ(best.cache, (128.0 + 1024.0) * 1024.0);
    const auto local = one(lower_one(window_only()), "layers.attention.core", decode_step(1, 10000));
    EXPECT_EQ(local.flops, 128.0 * 262144.0);
}

TEST(Compressed, TheIndexerScoresPooledEntriesOnly) {
    EXPECT_EQ(one(lower_one(pool_4()), "layers.attention.index_scores", decode_step(1, 10000)).flops,
              2500.0 * 2.0 * 64.0 * 129.0);
}

}  // namespace
}  // namespace roofline::model
