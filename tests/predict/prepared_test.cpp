#include "roofline/predict/prepared.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/devices.hpp"
#include "model/scenarios.hpp"

namespace roofline::predict {
namespace {

using namespace testing;
using model::decode_step;
using model::Form;

/// A model of one operator with the work it is given.
Lowered one_operator(double flops, double weights, double activations = 0.0, double count = 1.0) {
    Lowered lowered;
    lowered.features.push_back({.what = model::Feature::What::one, .who = {}, .reach = {}});
    Operator op;
    op.name = "work";
    op.kind = Kind::gemm;
    op.count = count;
    op.flops = Form(flops);
    op.weight_bytes = Form(weights);
    op.activation_bytes = Form(activations);
    lowered.operators.push_back(op);
    return lowered;
}

OperatorTime price_one(const Lowered& lowered, const Device& device, StageTime* stage = nullptr) {
    OperatorTime time;
    const Prepared prepared(lowered, device);
    const StageTime total = prepared.evaluate(decode_step(1, 1), {&time, 1});
    if (stage != nullptr) *stage = total;
    return time;
}

TEST(Prepared, TheBoundFlipsExactlyAtTheRidge) {
    // 1024 flop/s and 4 byte/s: 65536 flops and 256 bytes take 64 s each.
    EXPECT_EQ(price_one(one_operator(65536, 256), exact_device()).bound, Bound::compute);
    EXPECT_EQ(price_one(one_operator(65536, 256), exact_device()).limit, 64.0);
    EXPECT_EQ(price_one(one_operator(65535, 256), exact_device()).bound, Bound::memory);
    EXPECT_EQ(price_one(one_operator(65536, 257), exact_device()).bound, Bound::memory);
    StageTime stage;
    price_one(one_operator(65536, 256), exact_device(), &stage);
    EXPECT_EQ(stage.bound, Bound::compute);
    price_one(one_operator(65536, 257), exact_device(), &stage);
    EXPECT_EQ(stage.bound, Bound::memory);
    EXPECT_EQ(stage.limit, 64.25);
}

TEST(Prepared, TotalsAreOverAllLayers) {
    const OperatorTime time = price_one(one_operator(1024, 16, 0, 10), exact_device());
    EXPECT_EQ(time.flops, 10240.0);
    EXPECT_EQ(time.memory_bytes, 160.0);
    EXPECT_EQ(time.limit, 40.0);  // 160 / 4 against 10
    EXPECT_EQ(time.intensity, 64.0);
}

TEST(Prepared, ActivationsStayOnTheChipIfTheyFitTheCache) {
    Device device = exact_device();
    set_capacity(device, Level::cache, 100.0);
    const OperatorTime fits = price_one(one_operator(0, 40, 100), device);
    EXPECT_EQ(fits.memory_bytes, 40.0);
    EXPECT_EQ(fits.cache_bytes, 100.0);
    EXPECT_EQ(fits.limit, 10.0);
    const OperatorTime spills = price_one(one_operator(0, 40, 101), device);
    EXPECT_EQ(spills.memory_bytes, 141.0);
    EXPECT_EQ(spills.cache_bytes, 0.0);
    // A cache per layer: ten layers of 100 bytes still fit, one after another.
    EXPECT_EQ(price_one(one_operator(0, 40, 100, 10), device).cache_bytes, 1000.0);
}

TEST(Prepared, ASlowCacheCanBeTheBound) {
    Device device = exact_device();
    set_capacity(device, Level::cache, 1000.0);
    set_bandwidth(device, Level::cache, 8.0);
    const OperatorTime time = price_one(one_operator(0, 4, 80), device);
    EXPECT_EQ(time.limit, 10.0);  // 80 / 8 against 4 / 4
    EXPECT_EQ(time.bound, Bound::cache);
}

TEST(Prepared, ACacheOfUnknownSizeIsAssumedToBeLargeEnough) {
    // So that the limit stays a limit. A device that is known to have none sends everything through memory.
    EXPECT_EQ(price_one(one_operator(0, 40, 1e15), exact_device()).memory_bytes, 40.0);
    Device device = exact_device();
    set_capacity(device, Level::cache, 0.0);
    EXPECT_EQ(price_one(one_operator(0, 40, 8), device).memory_bytes, 48.0);
}

TEST(Prepared, WeightsNeverStayOnTheChip) {
    Device device = exact_device();
    set_capacity(device, Level::cache, 1e12);
    EXPECT_EQ(price_one(one_operator(0, 40, 0), device).memory_bytes, 40.0);
}

TEST(Prepared, IntensityHasNoNaN) {
    EXPECT_EQ(price_one(one_operator(0, 0), exact_device()).intensity, 0.0);
    EXPECT_EQ(price_one(one_operator(0, 8), exact_device()).intensity, 0.0);
    EXPECT_EQ(price_one(one_operator(8, 0), exact_device()).intensity, std::numeric_limits<double>::infinity());
}

TEST(Prepared, TypesADeviceLacksRunInTheirStandIn) {
    Lowered model = one_operator(1024, 0);
    model.operators[0].type = DType::fp8;
    const Prepared prepared(model, exact_device());
    EXPECT_EQ(prepared.type(0), DType::bf16);
    EXPECT_TRUE(prepared.priced(0));
    EXPECT_EQ(price_one(model, exact_device()).limit, 1.0);
}

TEST(Prepared, ADeviceWithoutRatesIsPricedByItsMemory) {
    Device device;
    set_bandwidth(device, Level::memory, 4.0);
    const Lowered model = one_operator(1e9, 8);
    EXPECT_FALSE(Prepared(model, device).priced(0));
    EXPECT_EQ(price_one(model, device).limit, 2.0);
}

TEST(Prepared, ElementWiseWorkRunsOnTheVectorEngine) {
    Lowered model = one_operator(1024, 0);
    model.operators[0].engine = Engine::vector;
    EXPECT_EQ(price_one(model, exact_device()).limit, 4.0);  // 256 flop/s
}

TEST(Prepared, MatrixAndVectorEnginesOverlapInTheLimitAndNotInAttainable) {
    Lowered model = one_operator(1024, 0);  // 1 s on the matrix engine
    model.operators.push_back(model.operators[0]);
    model.operators[1].engine = Engine::vector;  // 4 s on the vector engine
    std::vector<OperatorTime> times(2);
    const StageTime stage = Prepared(model, exact_device()).evaluate(decode_step(1, 1), times);
    EXPECT_EQ(stage.limit, 4.0);
    EXPECT_EQ(stage.attainable, 5.0);
}

TEST(Prepared, AMeasuredCeilingOfZeroDoesNotMakeTheWorkFree) {
    Device device = exact_device();
    device.ceilings["memory.bandwidth"] = Figure{0.0, "bench", ""};
    const OperatorTime time = price_one(one_operator(0, 8), device);
    EXPECT_EQ(time.limit, 2.0);
    EXPECT_EQ(time.attainable, 2.0);
}

TEST(Prepared, NothingKnownIsNotCalledComputeBound) {
    StageTime stage;
    const OperatorTime time = price_one(one_operator(1024, 8), Device{}, &stage);
    EXPECT_EQ(time.limit, 0.0);
    EXPECT_EQ(time.bound, Bound::memory);
    EXPECT_EQ(stage.limit, 0.0);
    EXPECT_EQ(stage.bound, Bound::memory) << "the same default as time_under and as each operator";
}

}  // namespace
}  // namespace roofline::predict
