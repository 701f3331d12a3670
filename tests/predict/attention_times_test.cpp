// Times of decode attention by hand.
#include <gtest/gtest.h>

#include "predict/kernel_times.hpp"

namespace roofline::predict {
namespace {

using namespace kernel_times;

TEST(AttentionDecode, StreamsItsCacheByHand) {
    const KernelClass& known = class_named("attention_decode");
    // 64 MB of keys and values at half of 1 TB/s: 128 us; half of the ramp of 6 us, as the cache holds as much;
    // start-up 7 us. Blocks just fill the machine where the multiprocessors are unknown: nothing to combine. Queries
    // and results, 2 MB at full speed: 2 us.
    Kernel kernel = attention({.sequences = 4, .heads = 32, .kv_heads = 8});
    kernel.weight_bytes = 64e6;
    kernel.input_bytes = kernel.output_bytes = 1e6;
    const Values values = values_of(known, {{"startup", 7.0}, {"efficiency", 0.5}, {"ramp", 6.0}, {"ragged", 0.0}});
    EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e12, .cache = 64e6}, values), 140e-6, 1e-12);
}

TEST(AttentionDecode, ABlockDrawsNoMoreThanItCanByHand) {
    const KernelClass& known = class_named("attention_decode");
    // One block of 1,000 keys of 512 bytes, too short to be cut: 512,000 bytes at twice its share of 1 TB/s over 100
    // multiprocessors, 20 GB/s, 25.6 us; its softmax 1,000 x 1 ns. All of the bandwidth would take half a microsecond.
    // Where two blocks share a multiprocessor, its share is half of that: 51.2 us. 1,000 keys are masked: 1 us.
    Kernel kernel = attention({.sequences = 1, .keys = 1000, .heads = 8, .kv_heads = 1, .dim = 128});
    kernel.input_bytes = kernel.output_bytes = 0.0;
    const Machine machine = {.bandwidth = 1e12, .units = 100};
    for (const auto& [pairs, expected] : {std::pair{0.0, 31.6e-6}, std::pair{1.0, 57.2e-6}}) {
        const Values values = values_of(known, {{"startup", 4.0},
                                                {"ragged", 1.0},
                                                {"ramp", 0.0},
                                                {"chunk", 2000.0},
                                                {"key", 1.0},
                                                {"lone", 2.0},
                                                {"pairs", pairs}});
        EXPECT_NEAR(known.seconds(kernel, machine, values), expected, 1e-12) << pairs;
    }
}

TEST(AttentionDecode, PaysForEachPartOfAContextByHand) {
    const KernelClass& known = class_named("attention_decode");
    // One block of 12,800 keys on 100 multiprocessors: 100 parts of 128 keys are possible, 50 allowed. 6,553,600 bytes
    // at 1 TB/s: 6.5536 us. A part by itself is quicker: 256 keys of 512 bytes at 10 x 10 GB/s, 1.31072 us. Start-up 5
    // us, joining 2 us and 49 x 0.1 us.
    Kernel kernel = attention({.sequences = 1, .keys = 12800, .heads = 8, .kv_heads = 1, .dim = 128});
    kernel.input_bytes = kernel.output_bytes = 0.0;
    const Values values = values_of(known, {{"startup", 5.0},
                                            {"ramp", 0.0},
                                            {"efficiency", 1.0},
                                            {"splits", 50.0},
                                            {"chunk", 128.0},
                                            {"key", 0.0},
                                            {"lone", 10.0},
                                            {"combine", 2.0},
                                            {"merge", 0.1},
                                            {"pairs", 0.0}});
    EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e12, .units = 100}, values), 18.4536e-6, 1e-12);
}

TEST(AttentionDecode, WaitsForALastWaveThatIsPartEmptyByHand) {
    const KernelClass& known = class_named("attention_decode");
    // 12 whole contexts on 4 multiprocessors with two places each: a wave of 8 and one of 4. 3.145728 MB at 1 TB/s:
    // 2.097152 us for the first, and 1.048576 us for the rest if a block alone draws twice its share; else as long as
    // the first. Start-up 5 us.
    Kernel kernel = attention({.sequences = 12, .keys = 1024, .heads = 8, .kv_heads = 1, .dim = 64});
    kernel.input_bytes = kernel.output_bytes = 0.0;
    for (const auto& [lone, expected] : {std::pair{2.0, 8.145728e-6}, std::pair{1.0, 9.194304e-6}}) {
        const Values values = values_of(known, {{"startup", 5.0},
                                                {"ramp", 0.0},
                                                {"efficiency", 1.0},
                                                {"ragged", 0.0},
                                                {"key", 0.0},
                                                {"lone", lone},
                                                {"pairs", 1.0}});
        EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e12, .units = 4}, values), expected, 1e-12) << lone;
    }
}

TEST(AttentionDecode, PaysForTilesThatArePartEmptyByHand) {
    const KernelClass& known = class_named("attention_decode");
    // 64 MB of keys and values at 1 TB/s: 64 us. 192 keys lie in two tiles of 128, a quarter of which is empty and
    // takes 0.6 of its time: as long as 0.4 x 192 + 0.6 x 256 = 230.4 keys, 76.8 us. Start-up 5 us.
    const Values values = values_of(known, {{"startup", 5.0}, {"efficiency", 1.0}, {"ramp", 0.0}, {"ragged", 0.0}});
    for (const auto& [keys, expected] : {std::pair{256.0, 69e-6}, std::pair{192.0, 81.8e-6}}) {
        Kernel kernel = attention({.sequences = 4, .keys = keys, .heads = 32, .kv_heads = 8});
        kernel.weight_bytes = 64e6;
        kernel.input_bytes = kernel.output_bytes = 0.0;
        EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e12}, values), expected, 1e-12) << keys;
    }
}

TEST(AttentionDecode, ManyHeadsOnOneKeyAreHeldBackByArithmeticByHand) {
    const KernelClass& known = class_named("attention_decode");
    // 71 heads of 64 on one KV head, padded to 80: 4 x 80 x 64 flop for each of 8 x 1,024 keys, 0.16777216 Gflop, at
    // 0.15 of 10 Tflop/s: 111.848107 us. On a processor, whose loops end with the heads: 0.148897792 Gflop at half of
    // it, 29.779558 us. Keys and values take 2 us. Start-up 5 us.
    Kernel kernel = attention({.sequences = 8, .keys = 1024, .heads = 71, .kv_heads = 1, .dim = 64});
    kernel.input_bytes = kernel.output_bytes = 0.0;
    const Values values = values_of(known, {{"startup", 5.0}, {"ramp", 0.0}, {"ragged", 0.0}, {"efficiency", 1.0}});
    EXPECT_NEAR(known.seconds(kernel, {.peak = 1e13, .bandwidth = 1e12}, values), 116.848107e-6, 1e-11);
    EXPECT_NEAR(known.seconds(kernel, {.peak = 1e13, .bandwidth = 1e12, .tile = 1.0}, values), 34.779558e-6, 1e-11);
}

// ---- FlashAttention 2

TEST(FlashDecode, WholeContextsAreHeldBackByArithmeticByHand) {
    const KernelClass& known = class_named("flash_decode");
    // Eight contexts on four multiprocessors with two places each: one wave of whole ones. 1,000 keys are 16 tiles of
    // 64 keys and 128 rows. A tile takes 4 x 64 x 128 x 128 flop on a quarter of 16.777216 Tflop/s, 1 us, and 2 us in
    // company; its 32,768 bytes an eighth of 1 TB/s, 0.262144 us, which shows once. 5 + 16 x 2 + 0.262144 us.
    Kernel kernel = attention({.sequences = 8, .keys = 1000, .heads = 8, .kv_heads = 1, .dim = 128});
    kernel.input_bytes = kernel.output_bytes = 0.0;
    const Values values = values_of(
        known, {{"startup", 5.0}, {"ramp", 0.0}, {"efficiency", 1.0}, {"compute", 1.0}, {"row", 0.0}, {"lone", 2.0}});
    const Machine machine = {.peak = 16.777216e12, .bandwidth = 1e12, .units = 4};
    EXPECT_NEAR(known.seconds(kernel, machine, values), 37.262144e-6, 1e-12);
    // Up to 128 heads that share keys fit one block of that kernel, as the padding has room for them.
    kernel.heads = 71.0;
    EXPECT_NEAR(known.seconds(kernel, machine, values), 37.262144e-6, 1e-12);
}

TEST(FlashDecode, PartsAreJoinedByHand) {
    const KernelClass& known = class_named("flash_decode");
    // One context of 1,024 keys is 8 tiles of 128 keys and 64 rows; eight places take one each. The softmax of a tile:
    // 128 x 64 x 0.1 ns = 0.8192 us, and 65,536 bytes at an eighth of 1 TB/s, 0.524288 us, which shows too as there is
    // no second tile. Joining: 2 us, 8 x 0.1 us, and 8 parts of 8 heads of 128 numbers of 4 bytes, written and read:
    // 0.065536 us. Start-up 5 us.
    Kernel kernel = attention({.sequences = 1, .keys = 1024, .heads = 8, .kv_heads = 1, .dim = 128});
    kernel.input_bytes = kernel.output_bytes = 0.0;
    const Values values = values_of(known, {{"startup", 5.0},
                                            {"ramp", 0.0},
                                            {"efficiency", 1.0},
                                            {"row", 0.1},
                                            {"lone", 2.0},
                                            {"combine", 2.0},
                                            {"merge", 0.1}});
    EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e12, .units = 4}, values), 9.209024e-6, 1e-12);
}

TEST(FlashDecode, CutsContextsByTheKernelsOwnRule) {
    const KernelClass& known = class_named("flash_decode");
    const auto parts = [&](double sequences, double keys, double dim) {
        const Kernel kernel = attention({.sequences = sequences, .keys = keys, .heads = 32, .kv_heads = 8, .dim = dim});
        const auto with = [&](double merge) {
            return known.seconds(kernel, large, values_of(known, {{"merge", merge}}));
        };
        return 1e6 * (with(1.0) - with(0.0));
    };
    // 264 places. 8 contexts of 64 tiles: 32 parts of 2 tiles fill 256 of them; 22 parts of 3 would fill 176, 67%, less
    // than 85% of that. Of 256 tiles: 29 parts of 9 fill 232, 88%, which is enough; 26 of 10 fill 208, 79%, and are
    // not.
    EXPECT_NEAR(parts(1.0, 8192.0, 128.0), 32.0, 1e-6);
    EXPECT_NEAR(parts(1.0, 32768.0, 128.0), 29.0, 1e-6);
    // 32 contexts: 7 parts fill 224, 85%; eight 97%, and 85% of that is 82%.
    EXPECT_NEAR(parts(4.0, 8192.0, 128.0), 7.0, 1e-6);
    EXPECT_NEAR(parts(16.0, 8192.0, 128.0), 2.0, 1e-6);
    // From four fifths of the places on, 212 contexts, none are cut.
    EXPECT_GT(parts(26.0, 8192.0, 128.0), 1.0);
    EXPECT_NEAR(parts(27.0, 8192.0, 128.0), 0.0, 1e-6);
    // Narrow heads have tiles of 256 keys, wide ones of 64: no more parts than tiles.
    EXPECT_NEAR(parts(1.0, 2048.0, 64.0), 8.0, 1e-6);
    EXPECT_NEAR(parts(1.0, 2048.0, 256.0), 32.0, 1e-6);
}

// ---- vLLM on Intel

TEST(XeDecode, CutsOnlyLongContextsByHand) {
    const KernelClass& known = class_named("xe_decode");
    const Values values = values_of(
        known,
        {{"launch", 30.0}, {"startup", 20.0}, {"combine", 5.0}, {"efficiency", 1.0}, {"key", 10.0}, {"overlap", 0.5}});
    const Machine machine = {.bandwidth = 1e12, .units = 20};
    const auto microseconds = [&](double sequences, double keys) {
        Kernel kernel = attention({.sequences = sequences, .keys = keys, .heads = 8, .kv_heads = 1, .dim = 128});
        kernel.input_bytes = kernel.output_bytes = 0.0;
        return 1e6 * known.seconds(kernel, machine, values);
    };
    // 10 ns a key in one block, and half of the 0.524288 us that 1,024 x 512 bytes take at 1 TB/s. 20 + 10.24 +
    // 0.262144 us.
    EXPECT_NEAR(microseconds(1.0, 1024.0), 30.502144, 1e-6);
    // Below that the host holds it back.
    EXPECT_NEAR(microseconds(1.0, 64.0), 30.0, 1e-6);
    // 127 pages are not cut: 20 + 81.28 + 2.080768 us. 128 may be, into four parts of 32 pages, joined in 5 us: 25 +
    // 20.48 + 2.097152 us. 1,024 pages into eight: 25 + 81.92 + 16.777216 us.
    EXPECT_NEAR(microseconds(1.0, 8128.0), 103.360768, 1e-6);
    EXPECT_NEAR(microseconds(1.0, 8192.0), 47.577152, 1e-6);
    EXPECT_NEAR(microseconds(1.0, 65536.0), 123.697216, 1e-6);
    // Of 256 pages: 8 blocks on 20 cores are cut into 3 parts, 20 and 40 blocks into none, 64 into 2 (as 8 x 20 / 64
    // is 2.5), 160 into none. 8.388608 us of stream a block: the longer of both and half the shorter.
    EXPECT_NEAR(microseconds(8.0, 16384.0), 25.0 + 67.108864 + 0.5 * 163.84 / 3.0, 1e-6);
    EXPECT_NEAR(microseconds(20.0, 16384.0), 20.0 + 167.77216 + 0.5 * 163.84, 1e-6);
    EXPECT_NEAR(microseconds(40.0, 16384.0), 20.0 + 335.54432 + 0.5 * 163.84, 1e-6);
    EXPECT_NEAR(microseconds(64.0, 16384.0), 25.0 + 536.870912 + 0.5 * 81.92, 1e-6);
    EXPECT_NEAR(microseconds(160.0, 16384.0), 20.0 + 1342.17728 + 0.5 * 163.84, 1e-6);
}

TEST(MlaDecode, TakesTheFasterOfNarrowAndWideTilesByHand) {
    const KernelClass& known = class_named("mla_decode");
    // Nothing is known but a peak of 1 Tflop/s, of which narrow tiles reach a tenth and wide ones half. 100 Mflop of
    // 128 heads: 1,000 us or 200 us. Of 8 heads, padded to 16 or 64: 2,000 us or 1,600 us. Of one head, padded to 16 or
    // 64: 16,000 us or 12,800 us; where narrow tiles reach 0.4 instead, 4,000 us. Start-up 9 us, no host.
    Kernel kernel;
    kernel.pattern = Pattern::latent;
    kernel.sequences = kernel.queries = 1.0;
    kernel.flops = 1e8;
    const auto seconds = [&](double heads, double compute) {
        kernel.heads = heads;
        return known.seconds(kernel, {.peak = 1e12},
                             values_of(known, {{"startup", 9.0}, {"host", 0.0}, {"compute", compute}, {"wide", 0.5}}));
    };
    EXPECT_NEAR(seconds(128.0, 0.1), 209e-6, 1e-12);
    EXPECT_NEAR(seconds(8.0, 0.1), 1609e-6, 1e-12);
    EXPECT_NEAR(seconds(1.0, 0.1), 12809e-6, 1e-12);
    EXPECT_NEAR(seconds(1.0, 0.4), 4009e-6, 1e-12);
}

}  // namespace
}  // namespace roofline::predict
