// Times of decode attention by hand.
#include <gtest/gtest.h>

#include "predict/kernel_times.hpp"

namespace roofline::predict {
namespace {

using namespace kernel_times;

TEST(AttentionDecode, StreamsItsCacheByHand) {
    const KernelClass& known = class_named("attention_decode");
    // 64 MB of keys and values at half of 1 TB/s: 128 us; half of the ramp of 6 us; start-up 7 us. Blocks just fill the
    // machine where the multiprocessors are unknown: nothing to combine. Queries and results, 2 MB at full speed: 2 us.
    Kernel kernel = attention({.sequences = 4, .heads = 32, .kv_heads = 8});
    kernel.weight_bytes = 64e6;
    kernel.input_bytes = kernel.output_bytes = 1e6;
    const Values values = values_of(known, {{"startup", 7.0}, {"efficiency", 0.5}, {"ramp", 6.0}});
    EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e12}, values), 140e-6, 1e-12);
}

TEST(AttentionDecode, ABlockDrawsNoMoreThanItCanByHand) {
    const KernelClass& known = class_named("attention_decode");
    // One block of 1,000 keys of 512 bytes, too short to be cut: 512,000 bytes at twice its share of 1 TB/s over 100
    // multiprocessors, 20 GB/s, 25.6 us; its softmax 1,000 x 1 ns. All of the bandwidth would take half a microsecond.
    Kernel kernel = attention({.sequences = 1, .keys = 1000, .heads = 8, .kv_heads = 1, .dim = 128});
    kernel.input_bytes = kernel.output_bytes = 0.0;
    const Machine machine = {.bandwidth = 1e12, .units = 100};
    for (const double pairs : {0.0, 1.0}) {
        const Values values = values_of(
            known, {{"startup", 5.0}, {"ramp", 0.0}, {"chunk", 2000.0}, {"key", 1.0}, {"lone", 2.0}, {"pairs", pairs}});
        EXPECT_NEAR(known.seconds(kernel, machine, values), 31.6e-6, 1e-12) << pairs;
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
    // 12 whole contexts on 4 multiprocessors with two places each: a wave of 8 and one of 4. Narrow keys (256 bytes)
    // are no faster in it, so two full waves are paid: 3.072 MB at 1 TB/s, 3.072 us x 16 / 12 = 4.096 us. Wide ones
    // (512 bytes) are 1.4 times as fast: 6.144 us x (8 + 4 / 0.7) / 12. Start-up 5 us.
    const Values values = values_of(known, {{"startup", 5.0},
                                            {"ramp", 0.0},
                                            {"efficiency", 1.0},
                                            {"direct", 1.0},
                                            {"key", 0.0},
                                            {"lone", 8.0},
                                            {"pairs", 1.0}});
    const Machine machine = {.bandwidth = 1e12, .units = 4};
    Kernel narrow = attention({.sequences = 12, .keys = 1000, .heads = 8, .kv_heads = 1, .dim = 64});
    narrow.input_bytes = narrow.output_bytes = 0.0;
    EXPECT_NEAR(known.seconds(narrow, machine, values), 9.096e-6, 1e-12);
    Kernel wide = attention({.sequences = 12, .keys = 1000, .heads = 8, .kv_heads = 1, .dim = 128});
    wide.input_bytes = wide.output_bytes = 0.0;
    EXPECT_NEAR(known.seconds(wide, machine, values), (5.0 + 6.144 * (8.0 + 4.0 / 0.7) / 12.0) * 1e-6, 1e-12);
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
