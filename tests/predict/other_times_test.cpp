// Times of scans, streams and whole steps by hand.
#include <gtest/gtest.h>

#include "predict/kernel_times.hpp"

namespace roofline::predict {
namespace {

using namespace kernel_times;

TEST(Scan, ChainsItsChunksByHand) {
    const KernelClass& known = class_named("scan");
    // 640 tokens are 10 chunks of 2 us each; nothing else is known. Start-up 18 us.
    EXPECT_NEAR(known.seconds(scan(1, 640), {}, values_of(known, {{"startup", 18.0}, {"step", 2.0}})), 38e-6, 1e-12);
    // One token more is another chunk.
    EXPECT_NEAR(known.seconds(scan(1, 641), {}, values_of(known, {{"startup", 18.0}, {"step", 2.0}})), 40e-6, 1e-12);
}

TEST(Elementwise, BoundByMemoryByHand) {
    const KernelClass& known = class_named("elementwise");
    // 2 MB in, 1 MB out, 1 MB of weights, no cache: 4 MB at half of 1 GB/s, 8 ms; start-up 2 us.
    Kernel kernel;
    kernel.input_bytes = 2e6;
    kernel.output_bytes = 1e6;
    kernel.weight_bytes = 1e6;
    EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e9}, values_of(known, {{"startup", 2.0}, {"memory", 0.5}})),
                8.002e-3, 1e-12);
}

TEST(Elementwise, FindsInTheCacheWhatFitsByHand) {
    const KernelClass& known = class_named("elementwise");
    // A cache of 4 MB of which half may be filled, 4 MB of activations: room 1/2, of which the square is found: 3/4 of
    // 4 MB are missed and come at 1 GB/s, 3 ms. With 2 MB nothing is missed, and only the start-up is left.
    const Values values = values_of(known, {{"startup", 2.0}, {"memory", 1.0}, {"share", 0.5}});
    Kernel kernel;
    kernel.input_bytes = 3e6;
    kernel.output_bytes = 1e6;
    EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e9, .cache = 4e6}, values), 3.002e-3, 1e-12);
    kernel.input_bytes = 1e6;
    EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e9, .cache = 4e6}, values), 2e-6, 1e-12);
}

TEST(Elementwise, FewRowsKeepFewMultiprocessorsBusyByHand) {
    const KernelClass& known = class_named("elementwise");
    // 10 rows on at most 4 multiprocessors each: 40 of 100 are busy. 4 MB at 40 x 10 GB/s: 10 us. Row costs: 10 x 1 us
    // over 100 multiprocessors, 0.1 us. Start-up 2 us. With 1000 rows all 100 are: 4 us for the bytes, 10 us for the
    // rows, which then hold it back.
    const Values values = values_of(
        known, {{"startup", 2.0}, {"unit_rate", 10.0}, {"row_cost", 1.0}, {"row_units", 4.0}, {"memory", 1.0}});
    Kernel kernel;
    kernel.input_bytes = kernel.output_bytes = 2e6;
    kernel.rows = 10.0;
    EXPECT_NEAR(known.seconds(kernel, {.units = 100}, values), 12e-6, 1e-12);
    kernel.rows = 1000.0;
    EXPECT_NEAR(known.seconds(kernel, {.units = 100}, values), 12e-6, 1e-12);
    kernel.rows = 2000.0;
    EXPECT_NEAR(known.seconds(kernel, {.units = 100}, values), 22e-6, 1e-12);
}

TEST(Selection, GivesOnlyLongRowsToSeveralBlocksByHand) {
    const KernelClass& known = class_named("selection");
    const Values values =
        values_of(known, {{"startup", 2.0}, {"value", 0.1}, {"cold", 1.5}, {"issue", 0.05}, {"join", 4.0}});
    const Machine machine = {.cache = 1e9, .units = 100};
    const auto microseconds = [&](double rows, double width) {
        Kernel kernel;
        kernel.rows = rows;
        kernel.input_bytes = 2.0 * rows * width;
        return 1e6 * known.seconds(kernel, machine, values);
    };
    // 512 threads have 250 numbers each, 0.1 us a number: 25 us, and 2 us to start. Four blocks on every
    // multiprocessor: 4 x 0.05 us a number.
    EXPECT_NEAR(microseconds(1.0, 128000.0), 27.0, 1e-9);
    EXPECT_NEAR(microseconds(100.0, 128000.0), 27.0, 1e-9);
    EXPECT_NEAR(microseconds(400.0, 128000.0), 52.0, 1e-9);
    // 300 numbers each are cut among 19 blocks (300 / 16, rounded up), which join in 4 us. 100 rows have 400 places: 4
    // blocks each, all at once: 75 numbers at 0.2 us. 401 rows are more than there are places for: a wave of 400 whole
    // ones, and one more.
    EXPECT_NEAR(microseconds(1.0, 153600.0), 6.0 + 300.0 / 19.0 * 0.1, 1e-9);
    EXPECT_NEAR(microseconds(100.0, 153600.0), 21.0, 1e-9);
    EXPECT_NEAR(microseconds(401.0, 153600.0), 2.0 + 60.0 + 30.0, 1e-9);
    // A row of 128 numbers, as many as there are experts, keeps 128 threads busy with one each.
    EXPECT_NEAR(microseconds(1.0, 128.0), 2.1, 1e-9);
    // What the cache does not hold takes longer.
    Kernel kernel;
    kernel.rows = 1.0;
    kernel.input_bytes = 256000.0;
    EXPECT_NEAR(known.seconds(kernel, {.units = 100}, values), 39.5e-6, 1e-15);
}

TEST(GraphStep, ByHand) {
    const KernelClass& known = class_named("graph_step");
    const Values values =
        values_of(known, {{"per_step", 10.0}, {"per_launch", 0.5}, {"sustained", 0.2}, {"onset", 5.0}, {"scale", 1.1}});
    // 100 launches: 10 us + 50 us. Kernels of 10 ms, of which the matrix units are busy for half: 5 ms is the onset, so
    // the loss is 0.2 x 0.5 x 1/2 = 5 %: 10 ms x 1.1 x 1.05 = 11.55 ms.
    Kernel kernel = step(10e-3, 100.0);
    kernel.flops = 5e-3;
    const Machine machine = {.peak = 1.0, .bandwidth = 1.0};
    EXPECT_NEAR(known.seconds(kernel, machine, values), 11.61e-3, 1e-12);
    // Never busier than all the time, though flops at a low peak may say so: 0.2 x 1 x 10 / 15.
    kernel.flops = 1.0;
    EXPECT_NEAR(known.seconds(kernel, machine, values), 60e-6 + 11e-3 * (1.0 + 0.4 / 3.0), 1e-12);
}

TEST(EagerStep, WaitsForTheSlowerOfHostAndDeviceByHand) {
    const KernelClass& known = class_named("eager_step");
    const Values values = values_of(known, {{"per_step", 300.0}, {"per_launch", 6.0}});
    // The host needs 300 us and 6 us for each of 200 launches: 1.5 ms.
    EXPECT_NEAR(known.seconds(step(1e-3, 200.0), {}, values), 1.5e-3, 1e-12);
    // 3% for kernels in a row: 2.06 ms of the device are longer than that.
    EXPECT_NEAR(known.seconds(step(2e-3, 200.0), {}, values), 2.06e-3, 1e-12);
}

}  // namespace
}  // namespace roofline::predict
