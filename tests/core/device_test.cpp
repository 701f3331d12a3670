#include "roofline/core/device.hpp"

#include <gtest/gtest.h>

#include "core/devices.hpp"

namespace roofline {
namespace {

using testing::set_bandwidth;
using testing::set_rate;

// Figures of the kind, not of the product: what matters is which engines exist.
Device like_a100() {
    Device device;
    set_rate(device, Engine::matrix, DType::tf32, 156e12);
    set_rate(device, Engine::matrix, DType::bf16, 312e12);
    set_rate(device, Engine::matrix, DType::fp16, 312e12);
    set_rate(device, Engine::matrix, DType::int8, 624e12);
    set_rate(device, Engine::vector, DType::fp32, 19.5e12);
    return device;
}

Device like_v100() {
    Device device;
    set_rate(device, Engine::matrix, DType::fp16, 125e12);
    set_rate(device, Engine::vector, DType::fp32, 15.7e12);
    return device;
}

void expect_choice(const Device& device, DType asked, Engine engine, DType type, bool exact) {
    const auto choice = choose_engine(device, asked);
    ASSERT_TRUE(choice.has_value()) << name(asked);
    EXPECT_EQ(choice->engine, engine) << name(asked);
    EXPECT_EQ(choice->type, type) << name(asked) << " ran as " << name(choice->type);
    EXPECT_EQ(choice->exact, exact) << name(asked);
}

TEST(ChooseEngine, TakesTheMatrixEngineOfTheTypeItself) {
    Device device = like_a100();
    set_rate(device, Engine::vector, DType::bf16, 39e12);
    expect_choice(device, DType::bf16, Engine::matrix, DType::bf16, true);
    expect_choice(device, DType::int8, Engine::matrix, DType::int8, true);
}

TEST(ChooseEngine, Fp8OnAnA100RunsInBf16) {
    expect_choice(like_a100(), DType::fp8, Engine::matrix, DType::bf16, false);
}

TEST(ChooseEngine, Bf16OnAV100RunsInFp16) {
    expect_choice(like_v100(), DType::bf16, Engine::matrix, DType::fp16, false);
}

TEST(ChooseEngine, Fp8OnAV100RunsInFp16) {
    expect_choice(like_v100(), DType::fp8, Engine::matrix, DType::fp16, false);
}

TEST(ChooseEngine, Fp4WithoutAnFp4EngineRunsInFp8ThenBf16) {
    Device hopper = like_a100();
    set_rate(hopper, Engine::matrix, DType::fp8, 1978.9e12);
    expect_choice(hopper, DType::fp4, Engine::matrix, DType::fp8, false);
    expect_choice(like_a100(), DType::fp4, Engine::matrix, DType::bf16, false);
}

TEST(ChooseEngine, Int4IsNotFasterThanWhatTheDeviceHas) {
    // An int4 product without an int4 engine runs at most at the int8 rate: twice bf16 here, never four times.
    const Device device = like_a100();
    const auto choice = choose_engine(device, DType::int4);
    ASSERT_TRUE(choice.has_value());
    EXPECT_EQ(device.rate(choice->engine, choice->type)->value, 624e12);
    EXPECT_FALSE(choice->exact);
    expect_choice(like_v100(), DType::int4, Engine::matrix, DType::fp16, false);
}

TEST(ChooseEngine, FallsBackToTheVectorEngineOfTheSameType) {
    Device cpu;
    set_rate(cpu, Engine::vector, DType::fp32, 4e12);
    set_rate(cpu, Engine::vector, DType::bf16, 8e12);
    expect_choice(cpu, DType::bf16, Engine::vector, DType::bf16, true);
}

TEST(ChooseEngine, AProcessorsFp16StandsInForNothingElse) {
    // A Neoverse N1: fp16 instructions twice as fast as fp32, which add up in fp16, and none for bf16.
    Device cpu;
    cpu.kind = "cpu";
    set_rate(cpu, Engine::vector, DType::fp32, 80e9);
    set_rate(cpu, Engine::vector, DType::fp16, 160e9);
    expect_choice(cpu, DType::bf16, Engine::vector, DType::fp32, false);
    expect_choice(cpu, DType::int8, Engine::vector, DType::fp32, false);
    expect_choice(cpu, DType::fp16, Engine::vector, DType::fp16, true);
    // Matrix engines add up in fp32 wherever they are.
    set_rate(cpu, Engine::matrix, DType::fp16, 320e9);
    expect_choice(cpu, DType::bf16, Engine::matrix, DType::fp16, false);
}

TEST(ChooseEngine, FallsBackToFp32VectorsAtLast) {
    Device plain;
    set_rate(plain, Engine::vector, DType::fp32, 4e12);
    for (const DType type :
         {DType::fp64, DType::tf32, DType::bf16, DType::fp16, DType::fp8, DType::fp4, DType::int8, DType::int4}) {
        expect_choice(plain, type, Engine::vector, DType::fp32, false);
    }
    expect_choice(plain, DType::fp32, Engine::vector, DType::fp32, true);
}

TEST(ChooseEngine, IsEmptyWhereNoRateIsPublished) {
    for (const DType type : all_dtypes) EXPECT_FALSE(choose_engine(Device{}, type).has_value()) << name(type);
}

TEST(Ridge, IsPeakOverBandwidth) {
    const auto found = ridge(testing::exact_device(), DType::bf16);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->value, 256.0);  // 1024 / 4
    // H100: 989.4e12 / 3.35e12 = 295.34
    EXPECT_NEAR(ridge(testing::h100(), DType::bf16)->value, 295.34, 0.01);
}

TEST(Ridge, OfATypeTheDeviceLacksIsThatOfItsStandIn) {
    Device device = like_a100();
    set_bandwidth(device, Level::memory, 2e12);
    EXPECT_EQ(ridge(device, DType::fp8)->value, 156.0);  // 312e12 / 2e12: bf16's
}

TEST(Ridge, IsUnknownWithoutARateOrABandwidth) {
    EXPECT_FALSE(ridge(like_a100(), DType::bf16).has_value());
    Device memory_only;
    set_bandwidth(memory_only, Level::memory, 1e12);
    EXPECT_FALSE(ridge(memory_only, DType::bf16).has_value());
}

TEST(Device, AbsentFiguresAreAbsentAndNotZero) {
    Device device;
    EXPECT_EQ(device.bandwidth(Level::memory), nullptr);
    EXPECT_EQ(device.capacity(Level::memory), nullptr);
    testing::set_capacity(device, Level::cache, 50e6);
    EXPECT_EQ(device.bandwidth(Level::cache), nullptr);
    ASSERT_NE(device.capacity(Level::cache), nullptr);
    EXPECT_EQ(device.capacity(Level::cache)->value, 50e6);
}

}  // namespace
}  // namespace roofline
