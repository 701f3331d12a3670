// Times of matrix products by hand.
#include <gtest/gtest.h>

#include "predict/kernel_times.hpp"
#include "roofline/predict/execution.hpp"

namespace roofline::predict {
namespace {

using namespace kernel_times;

TEST(Gemm, InWholeTilesBoundByComputeByHand) {
    const KernelClass& gemm = class_named("gemm");
    // One multiprocessor, so every number of tiles is whole waves; 256 x 256 is two of the largest tiles (128 x 256 =
    // 32768), which lose nothing to being small. 2 x 65536 x 1000 = 131,072,000 flop at half of 1 Tflop/s: 262.144 us.
    // The clock does not give way (sustained 1). Memory is unknown but for the walk along k: 1000 x 0.05 ns = 0.05 us,
    // of which 0.01 x 0.05^2 / 262.144 us shows: 1e-7 us.
    const Values values =
        values_of(gemm, {{"startup", 3.0}, {"compute", 0.5}, {"sustained", 1.0}, {"overlap", 0.01}, {"step", 0.05}});
    const Machine machine = {.peak = 1e12, .units = 1.0};
    EXPECT_NEAR(gemm.seconds(product({.rows = 256, .inner = 1000, .cols = 256}), machine, values), 265.144e-6, 1e-12);
}

TEST(Gemm, PaysHalfOfTheClocksWayDownAtTheHeatTime) {
    const KernelClass& gemm = class_named("gemm");
    // The same product at 262.144 us x 5.7220458984375 = 1.5 ms of full-speed work (131,072,000 flop at 87.381333
    // Gflop/s): half of the way to 0.5 of the speed is there, so 1.5 ms / (1 - 0.5 x 0.5) = 2 ms.
    const Values values =
        values_of(gemm, {{"startup", 0.3}, {"compute", 1.0}, {"sustained", 0.5}, {"overlap", 0.01}, {"step", 0.05}});
    const Machine machine = {.peak = 131072000.0 / 1.5e-3, .units = 1.0};
    EXPECT_NEAR(gemm.seconds(product({.rows = 256, .inner = 1000, .cols = 256}), machine, values), 2.0003e-3, 1e-9);
}

TEST(Gemm, BoundByMemoryByHand) {
    const KernelClass& gemm = class_named("gemm");
    // Nothing known but the bandwidth: 1000 x 1000 weights of 2 B, 2 x 1000 B in, 2 x 1000 B out: 2,004,000 B at half
    // of 1 GB/s, 4008 us; the input once more at full speed (input_passes 1), 2 us; start-up 3 us.
    const Values values = values_of(gemm, {{"startup", 3.0}, {"memory", 0.5}, {"input_passes", 1.0}});
    EXPECT_NEAR(gemm.seconds(product({.rows = 1, .inner = 1000, .cols = 1000}), {.bandwidth = 1e9}, values), 4013e-6,
                1e-12);
}

TEST(Gemm, IdleMultiprocessorsCostAShareOfTheWeights) {
    const KernelClass& gemm = class_named("gemm");
    // 64 columns over two multiprocessors: at a width of 64, one of two has columns (1 / 0.5 - 1 = 1); at 128, a
    // quarter of the wave is filled (1 / 0.25 - 1 = 3); on average 2. idle 0.25 x 2 = half of the 128,000 B of weights
    // again. (128,000 + 2000 + 128 + 64,000) B at 1 GB/s: 194.128 us, start-up 3 us, the input once more: 2 us.
    const Values values = values_of(gemm, {{"startup", 3.0}, {"memory", 1.0}, {"idle", 0.25}, {"input_passes", 1.0}});
    EXPECT_NEAR(gemm.seconds(product({.rows = 1, .inner = 1000, .cols = 64}), {.bandwidth = 1e9, .units = 2}, values),
                199.128e-6, 1e-12);
}

TEST(Gemm, WalksAlongKHoweverThin) {
    const KernelClass& gemm = class_named("gemm");
    // 10,000 elements of k at 2 ns each: 20 us and the start-up, though there are hardly any bytes.
    const Values values = values_of(gemm, {{"startup", 3.0}, {"step", 2.0}});
    EXPECT_NEAR(gemm.seconds(product({.rows = 1, .inner = 10000, .cols = 1}), {.units = 132}, values), 23e-6, 1e-12);
}

TEST(Gemm, SystolicArraysPadColumnsAndDepthToTheirSide) {
    const KernelClass& gemm = class_named("gemm");
    // No bandwidth: only compute counts.
    const Machine machine = {.peak = 1e12, .tile = 128.0};
    const auto seconds = [&](double rows, double inner, double cols) {
        return start_seconds(gemm, product({.rows = rows, .inner = inner, .cols = cols}), machine);
    };
    EXPECT_EQ(seconds(1024, 4096, 1), seconds(1024, 4096, 128));
    EXPECT_GT(seconds(1024, 4096, 129), 1.8 * seconds(1024, 4096, 128));
    // A deeper product also walks further along k, of which next to nothing shows: 46 ms against 3 us.
    EXPECT_NEAR(seconds(1024, 3969, 4096), seconds(1024, 4096, 4096), 1e-9);
    EXPECT_GT(seconds(1024, 4097, 4096), 1.03 * seconds(1024, 4096, 4096));
    EXPECT_EQ(seconds(1, 4096, 4096), seconds(8, 4096, 4096));  // rows stream through eight at a time
    EXPECT_GT(seconds(9, 4096, 4096), 1.8 * seconds(8, 4096, 4096));
}

TEST(Gemm, AProcessorPadsNothing) {
    const KernelClass& gemm = class_named("gemm");
    const Values values =
        values_of(gemm, {{"startup", 3.0}, {"compute", 1.0}, {"sustained", 1.0}, {"overlap", 0.01}, {"step", 0.05}});
    // One row of 4,096 x 4,096: 2 x 4,096 x 4,096 = 33,554,432 flop at 1 Tflop/s, 33.554 us, and the start-up of 3 us.
    // The walk along k, 0.205 us, shows by 0.01 x 0.205^2 / 33.554 us, nothing. A GPU pays for 64 rows.
    const Kernel row = product({.rows = 1, .inner = 4096, .cols = 4096});
    EXPECT_NEAR(gemm.seconds(row, {.peak = 1e12, .tile = 1}, values), 36.554e-6, 1e-9);
    EXPECT_GT(gemm.seconds(row, {.peak = 1e12}, values), 60.0 * 33.554e-6);
    Device device;
    device.kind = "cpu";
    EXPECT_EQ(machine_of(device, Engine::matrix, DType::bf16).tile, 1.0);
    device.kind = "gpu";
    EXPECT_EQ(machine_of(device, Engine::matrix, DType::bf16).tile, 0.0);
}

TEST(Gemm, SystolicPaddingByHand) {
    const KernelClass& gemm = class_named("gemm");
    // 1000 x 100 x 1: 2 x 1000 x 128 x 128 = 32,768,000 flop at 1 Tflop/s, 32.768 us; start-up 3 us; the walk along k
    // (100 x 0.05 ns = 0.005 us) shows by 0.01 x 0.005^2 / 32.768 us, nothing.
    const Values values =
        values_of(gemm, {{"startup", 3.0}, {"compute", 1.0}, {"sustained", 1.0}, {"overlap", 0.01}, {"step", 0.05}});
    EXPECT_NEAR(gemm.seconds(product({.rows = 1000, .inner = 100, .cols = 1}), {.peak = 1e12, .tile = 128}, values),
                35.768e-6, 1e-12);
}

TEST(BatchedGemm, OfOneTilePerHeadByHand) {
    const KernelClass& batched = class_named("batched_gemm");
    // 4 heads of 128 x 128 on 4 multiprocessors, one wave of tiles of 128 x 128; such a tile is slower by 4 x 256 /
    // 16384 = 1/16. One of 64 x 64 would be by 1/8 (four waves), one of 256 x 128 would be half empty.
    // k of 984 and a prologue of 40: 2 x 4 x 16384 x 17/16 x 1024 = 142,606,336 flop at half of 1 Tflop/s: 285.212672
    // us; start-up 4 us.
    const Values values = values_of(batched, {{"startup", 4.0}, {"compute", 0.5}, {"prologue", 40.0}});
    EXPECT_NEAR(batched.seconds(product({.rows = 128, .inner = 984, .cols = 128, .copies = 4}),
                                {.peak = 1e12, .units = 4}, values),
                289.212672e-6, 1e-12);
}

TEST(ExpertProduct, OfOneWaveByHand) {
    const KernelClass& known = class_named("expert_product");
    // 2 experts with 8 rows each, 128 columns: tiles of 8 rows, each expert 8 / 8 + 0.5 of them: 3 tiles on 3
    // multiprocessors, even 1, waves 1 + 1 / 2 = 1.5. No peak: an element of k costs 1 ns + 16 ns x 8 / 128 = 2 ns.
    // k of 872 and a lead of 128: 1.5 x 1000 x 2 ns = 3 us. No bandwidth. Start-up 10 us.
    const Values values =
        values_of(known, {{"startup", 10.0}, {"step", 1.0}, {"tile_step", 16.0}, {"lead", 128.0}, {"tile", 64.0}});
    Kernel kernel = product({.rows = 8, .inner = 872, .cols = 128, .copies = 2});
    kernel.pattern = Pattern::experts;
    EXPECT_NEAR(known.seconds(kernel, {.units = 3}, values), 13e-6, 1e-15);
}

}  // namespace
}  // namespace roofline::predict
