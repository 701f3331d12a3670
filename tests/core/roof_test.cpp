#include "roofline/core/roof.hpp"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "core/devices.hpp"
#include "roofline/core/record.hpp"

namespace roofline {
namespace {

using testing::exact_device;
using testing::set_bandwidth;
using testing::set_rate;

Work work_of(double flops, double memory, double cache = 0.0) {
    Work work;
    work.flops = Flops(flops);
    work.at(Level::memory) = Bytes(memory);
    work.at(Level::cache) = Bytes(cache);
    return work;
}

TEST(TimeUnder, IsThatOfTheSlowestResource) {
    const Roofs roofs = limit_roofs(exact_device());                 // 1024 flop/s, 4 byte/s
    EXPECT_EQ(time_under(work_of(4096, 8), roofs).time.value, 4.0);  // 4096/1024 = 4 s against 8/4 = 2 s
    EXPECT_EQ(time_under(work_of(4096, 8), roofs).bound, Bound::compute);
    EXPECT_EQ(time_under(work_of(1024, 8), roofs).time.value, 2.0);  // 1 s against 2 s
    EXPECT_EQ(time_under(work_of(1024, 8), roofs).bound, Bound::memory);
}

TEST(TimeUnder, EveryLevelCanBeTheSlowest) {
    Device device = exact_device();
    set_bandwidth(device, Level::cache, 16.0);
    set_bandwidth(device, Level::host, 0.5);
    set_bandwidth(device, Level::peer, 0.25);
    const Roofs roofs = limit_roofs(device);
    EXPECT_EQ(time_under(work_of(1024, 8, 64), roofs).bound, Bound::cache);  // 1, 2, 4 s
    EXPECT_EQ(time_under(work_of(1024, 8, 64), roofs).time.value, 4.0);
    Work work = work_of(1024, 8);
    work.at(Level::host) = Bytes(4.0);  // 8 s
    EXPECT_EQ(time_under(work, roofs).bound, Bound::link);
    EXPECT_EQ(time_under(work, roofs).time.value, 8.0);
    work.at(Level::peer) = Bytes(4.0);  // 16 s
    EXPECT_EQ(time_under(work, roofs).time.value, 16.0);
}

TEST(TimeUnder, TheBoundFlipsExactlyAtTheRidge) {
    const Roofs roofs = limit_roofs(exact_device());
    // Ridge 256 flop/byte: 256 bytes and 65536 flops take 64 s each. One flop or one byte decides.
    EXPECT_EQ(time_under(work_of(65536, 256), roofs).bound, Bound::compute) << "a tie counts as compute";
    EXPECT_EQ(time_under(work_of(65535, 256), roofs).bound, Bound::memory);
    EXPECT_EQ(time_under(work_of(65537, 256), roofs).bound, Bound::compute);
    EXPECT_EQ(time_under(work_of(65536, 257), roofs).bound, Bound::memory);
    EXPECT_EQ(time_under(work_of(65536, 255), roofs).bound, Bound::compute);
}

TEST(TimeUnder, UsesTheRateOfItsOwnEngineAndType) {
    const Roofs roofs = limit_roofs(exact_device());
    Work work = work_of(1024, 0);
    EXPECT_EQ(time_under(work, roofs).time.value, 1.0);
    work.engine = Engine::vector;
    work.type = DType::fp32;
    EXPECT_EQ(time_under(work, roofs).time.value, 4.0);  // 1024 / 256
}

TEST(TimeUnder, NothingTakesNoTime) {
    const RoofTime nothing = time_under(Work{}, limit_roofs(exact_device()));
    EXPECT_EQ(nothing.time.value, 0.0);
    EXPECT_EQ(nothing.bound, Bound::memory);
}

TEST(TimeUnder, AnUnknownBandwidthCostsNothing) {
    Device device = exact_device();
    device.levels[index(Level::memory)].reset();
    const RoofTime time = time_under(work_of(1024, 1e12), limit_roofs(device));
    EXPECT_EQ(time.time.value, 1.0);
    EXPECT_EQ(time.bound, Bound::compute);
}

TEST(TimeUnder, AnUnknownRateCostsNothing) {
    Device device;
    set_bandwidth(device, Level::memory, 4.0);
    const RoofTime time = time_under(work_of(1e12, 8), limit_roofs(device));
    EXPECT_EQ(time.time.value, 2.0);
    EXPECT_EQ(time.bound, Bound::memory);
}

TEST(TimeUnder, AFasterCeilingNeverSlows) {
    std::mt19937_64 random(20240607);
    std::uniform_real_distribution<double> exponent(0.0, 15.0);
    const auto draw = [&] { return std::pow(10.0, exponent(random)); };
    for (int i = 0; i < 500; ++i) {
        Device slow;
        set_rate(slow, Engine::matrix, DType::bf16, draw());
        for (const Level level : all_levels) set_bandwidth(slow, level, draw());
        Work work = work_of(draw(), draw(), draw());
        work.at(Level::host) = Bytes(draw());
        work.at(Level::peer) = Bytes(draw());
        const Seconds before = time_under(work, limit_roofs(slow)).time;
        EXPECT_TRUE(std::isfinite(before.value));
        for (int which = 0; which <= static_cast<int>(level_count); ++which) {
            Device fast = slow;
            if (which == 0) {
                fast.rates[index(Engine::matrix)][index(DType::bf16)]->value *= 2.0;
            } else {
                fast.levels[static_cast<std::size_t>(which - 1)]->bandwidth->value *= 2.0;
            }
            const Seconds after = time_under(work, limit_roofs(fast)).time;
            EXPECT_LE(after.value, before.value);
            EXPECT_GE(after.value, before.value / 2.0 * (1.0 - 1e-12)) << "twice one ceiling is at most twice as fast";
        }
    }
}

TEST(Intensity, OfNoFlopsIsZeroAndOfNoBytesInfinite) {
    EXPECT_EQ(intensity(Flops(0.0), Bytes(8.0)).value, 0.0);
    EXPECT_EQ(intensity(Flops(0.0), Bytes(0.0)).value, 0.0) << "0/0 must not be NaN";
    EXPECT_EQ(intensity(Flops(8.0), Bytes(0.0)).value, std::numeric_limits<double>::infinity());
    EXPECT_EQ(intensity(Flops(8.0), Bytes(2.0)).value, 4.0);
}

TEST(RoofAt, IsTheSmallerOfPeakAndSlope) {
    const Roofs roofs = limit_roofs(exact_device());
    const auto roof = [&](double at) { return roof_at(roofs, Engine::matrix, DType::bf16, FlopsPerByte(at)).value; };
    EXPECT_EQ(roof(0.0), 0.0);
    EXPECT_EQ(roof(1.0), 4.0);       // 1 flop/byte x 4 byte/s
    EXPECT_EQ(roof(128.0), 512.0);   // half way up
    EXPECT_EQ(roof(256.0), 1024.0);  // the ridge
    EXPECT_EQ(roof(512.0), 1024.0);
    EXPECT_EQ(roof(std::numeric_limits<double>::infinity()), 1024.0);
}

TEST(RoofAt, AgreesWithTimeUnder) {
    const Roofs roofs = limit_roofs(exact_device());
    for (const double flops : {1.0, 300.0, 2048.0, 65536.0, 1e9}) {
        const Work work = work_of(flops, 8.0);
        const double rate = flops / time_under(work, roofs).time.value;
        EXPECT_DOUBLE_EQ(rate, roof_at(roofs, Engine::matrix, DType::bf16, intensity(work.flops, Bytes(8.0))).value);
    }
}

TEST(AttainableRoofs, UseTheMeasuredCeilingWhereThereIsOne) {
    Device device = exact_device();
    device.ceilings["memory.bandwidth"] = Figure{2.0, "bench", ""};
    const Roofs roofs = attainable_roofs(device);
    EXPECT_EQ(roofs.seconds_per_byte[index(Level::memory)], 0.5);
    EXPECT_EQ(roofs.flop_cost(Engine::matrix, DType::bf16), 1.0 / 1024.0) << "not measured: the datasheet's";
    EXPECT_EQ(limit_roofs(device).seconds_per_byte[index(Level::memory)], 0.25) << "the limit stays the datasheet's";
    EXPECT_TRUE(has_measured_ceilings(device));
    EXPECT_FALSE(has_measured_ceilings(exact_device()));
}

TEST(AttainableRoofs, UseACeilingOfARelativeWithoutCallingItMeasured) {
    Device device = exact_device();
    device.sources["relative"] = {SourceKind::assumed, "measured on a relative", "2026"};
    device.ceilings["memory.bandwidth"] = Figure{2.0, "relative", ""};
    EXPECT_EQ(attainable_roofs(device).seconds_per_byte[index(Level::memory)], 0.5);
    EXPECT_FALSE(has_measured_ceilings(device));
    device.sources["bench"] = {SourceKind::measured, "measured here", "2026"};
    device.ceilings["matrix.bf16"] = Figure{512.0, "bench", ""};
    EXPECT_TRUE(has_measured_ceilings(device));
}

TEST(AttainableRoofs, AreNeverAboveTheDatasheet) {
    Device device = exact_device();
    device.ceilings["memory.bandwidth"] = Figure{8.0, "bench", ""};
    device.ceilings["matrix.bf16"] = Figure{4096.0, "bench", ""};
    device.ceilings["vector.fp32"] = Figure{128.0, "bench", ""};
    const Roofs roofs = attainable_roofs(device);
    EXPECT_EQ(roofs.seconds_per_byte[index(Level::memory)], 0.25);
    EXPECT_EQ(roofs.flop_cost(Engine::matrix, DType::bf16), 1.0 / 1024.0);
    EXPECT_EQ(roofs.flop_cost(Engine::vector, DType::fp32), 1.0 / 128.0);
}

TEST(AttainableRoofs, AMeasurementStandsInForABandwidthNobodyPublishes) {
    Device device = exact_device();
    device.ceilings["cache.bandwidth"] = Figure{16.0, "bench", ""};
    EXPECT_EQ(attainable_roofs(device).seconds_per_byte[index(Level::cache)], 1.0 / 16.0);
    EXPECT_EQ(limit_roofs(device).seconds_per_byte[index(Level::cache)], 0.0);
}

TEST(Judge, DerivesIntensityRidgeBoundAndShares) {
    const Roofs roofs = limit_roofs(exact_device());
    const Verdict low = judge(work_of(1024, 16), roofs);  // 1 s of compute, 4 s of memory
    EXPECT_EQ(low.intensity.value, 64.0);
    EXPECT_EQ(low.ridge.value, 256.0);
    EXPECT_EQ(low.bound, Bound::memory);
    EXPECT_EQ(low.fraction_of_peak, 0.25);
    EXPECT_EQ(low.fraction_of_bandwidth, 1.0);
    const Verdict high = judge(work_of(8192, 16), roofs);  // 8 s and 4 s
    EXPECT_EQ(high.bound, Bound::compute);
    EXPECT_EQ(high.fraction_of_peak, 1.0);
    EXPECT_EQ(high.fraction_of_bandwidth, 0.5);
}

TEST(Judge, SaysNothingAboutNothingAndDividesByNothing) {
    const Verdict none = judge(Work{}, limit_roofs(exact_device()));
    EXPECT_EQ(none.intensity.value, 0.0);
    EXPECT_EQ(none.fraction_of_peak, 0.0);
    EXPECT_EQ(none.fraction_of_bandwidth, 0.0);
    EXPECT_EQ(none.bound, Bound::memory);
    const Verdict unknown = judge(work_of(1024, 16), limit_roofs(Device{}));
    EXPECT_EQ(unknown.ridge.value, 0.0);
    EXPECT_EQ(unknown.fraction_of_peak, 0.0);
    const Verdict on_chip = judge(work_of(1024, 0), limit_roofs(exact_device()));
    EXPECT_EQ(on_chip.bound, Bound::compute);
    EXPECT_EQ(on_chip.intensity.value, std::numeric_limits<double>::infinity());
    EXPECT_EQ(on_chip.fraction_of_bandwidth, 0.0);
}

TEST(Names, OfGroupsKindsBoundsAndLevelsAreDistinctWords) {
    EXPECT_EQ(name(Group::attention), "attention");
    EXPECT_EQ(name(Group::other), "other");
    EXPECT_EQ(name(Kind::gemm), "gemm");
    EXPECT_EQ(name(Kind::copy), "copy");
    EXPECT_EQ(name(Kind::other), "other");
    EXPECT_EQ(name(Origin::traced), "traced");
    EXPECT_EQ(name(Bound::compute), "compute");
    EXPECT_EQ(name(Bound::latency), "latency");
    EXPECT_EQ(name(Level::memory), "memory");
    EXPECT_EQ(name(Level::peer), "peer");
    EXPECT_EQ(name(SourceKind::assumed), "assumed");
}

}  // namespace
}  // namespace roofline
