// From figures to a device, and a whole measurement in small.
#include "roofline/measure/cpu_device.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "roofline/core/roof.hpp"
#include "roofline/io/device_file.hpp"
#include "roofline/io/report_json.hpp"

namespace roofline::measure {
namespace {

Found found(const std::string& name, double value, Unit unit = Unit::bytes_per_second) {
    Found figure;
    figure.name = name;
    figure.value = value;
    figure.unit = unit;
    figure.windows = 10;
    figure.settled = true;
    return figure;
}

Machine machine() {
    Machine result;
    result.cpu = "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz";
    result.vendor = "Intel";
    result.memory_bytes = 64e9;
    result.processors = {0, 1, 2, 3};
    return result;
}

std::vector<Plateau> levels() {
    return {{200e9, 8192.0, 49152.0}, {100e9, 65536.0, 2097152.0}, {40e9, 4e6, 52428800.0}, {12e9, 1e8, 5e8}};
}

TEST(CpuDevice, MeasuredFiguresBecomeADevice) {
    const std::vector<Found> figures = {found("vector.fp32", 1e12, Unit::flops_per_second),
                                        found("matrix.bf16", 8e12, Unit::flops_per_second), found("memory.read", 50e9),
                                        found("memory.copy", 70e9), found("l3.read", 300e9)};
    const Device device = cpu_device(machine(), 4, figures, levels(), "2026-01-02");
    EXPECT_EQ(device.name, "intel-xeon-platinum-8481c-4");
    EXPECT_EQ(device.kind, "cpu");
    EXPECT_EQ(device.rate(Engine::vector, DType::fp32)->value, 1e12);
    EXPECT_EQ(device.rate(Engine::matrix, DType::bf16)->value, 8e12);
    EXPECT_FALSE(device.rate(Engine::vector, DType::fp64));
    EXPECT_EQ(device.bandwidth(Level::memory)->value, 50e9);  // reading: what weights do
    EXPECT_EQ(device.capacity(Level::memory)->value, 64e9);
    EXPECT_EQ(device.capacity(Level::cache)->value, 52428800.0);
    EXPECT_EQ(device.bandwidth(Level::cache)->value, 300e9);
    EXPECT_EQ(device.sources.at("measured").kind, SourceKind::measured);
    EXPECT_EQ(device.ceilings.at("memory.bandwidth").value, 50e9);
}

TEST(CpuDevice, ItsFileIsReadBackWithTheSameFigures) {
    Measured measured;
    const std::vector<Found> figures = {found("vector.fp32", 1e12, Unit::flops_per_second), found("memory.read", 50e9)};
    measured.device = cpu_device(machine(), 4, figures, levels(), "2026-01-02");
    measured.found = figures;
    measured.busy = true;
    const auto json = measured_json(measured);
    EXPECT_EQ(json["context"]["busy"], true);
    EXPECT_EQ(json["context"]["figures"].size(), 2U);
    const auto back = io::read_device(io::dump(json), "this.json");
    ASSERT_TRUE(back) << back.error().text;
    EXPECT_EQ(back->bandwidth(Level::memory)->value, 50e9);
    EXPECT_TRUE(has_measured_ceilings(*back));
}

TEST(CpuDevice, OneThreadOfItIsMadeOfWhatOneThreadReached) {
    Measured measured;
    measured.found = {found("vector.fp32", 4e12, Unit::flops_per_second),
                      found("matrix.bf16", 8e12, Unit::flops_per_second), found("memory.read", 50e9),
                      found("l3.read", 300e9)};
    measured.found[0].one_thread = 1e12;  // nobody tried matrix.bf16 on one thread
    measured.found[2].one_thread = 20e9;
    measured.found[3].one_thread = 90e9;
    measured.device = cpu_device(machine(), 4, measured.found, levels(), "2026-01-02");
    const std::string text = io::dump(measured_json(measured));
    const auto whole = io::read_device(text, "this.json");
    ASSERT_TRUE(whole) << whole.error().text;
    const auto alone = on_one_thread(*whole, io::Json::parse(text));
    ASSERT_TRUE(alone);
    EXPECT_EQ(alone->multiprocessors->value, 1.0);
    EXPECT_EQ(alone->rate(Engine::vector, DType::fp32)->value, 1e12);
    EXPECT_FALSE(alone->rate(Engine::matrix, DType::bf16));
    EXPECT_FALSE(alone->ceilings.contains("matrix.bf16"));
    EXPECT_EQ(alone->bandwidth(Level::memory)->value, 20e9);
    EXPECT_EQ(alone->ceilings.at("memory.bandwidth").value, 20e9);
    EXPECT_EQ(alone->bandwidth(Level::cache)->value, 90e9);
    EXPECT_EQ(alone->capacity(Level::cache)->value, 52428800.0);
    EXPECT_TRUE(io::read_device(io::dump(io::write_device(*alone)), "alone.json"));
}

TEST(CpuDevice, NothingIsMadeUpOfOneThreadWhereAFileSaysNothingOfIt) {
    const std::vector<Found> figures = {found("memory.read", 50e9)};
    const Device device = cpu_device(machine(), 4, figures, levels(), "");
    for (const char* file : {R"({})", R"([])", R"({"context": 3})", R"({"context": {"figures": {}}})",
                             R"({"context": {"figures": [1, {"name": 2}, {"name": "memory.read"}]}})",
                             R"({"context": {"figures": [{"name": "memory.read", "one_thread": "fast"}]}})",
                             R"({"context": {"figures": [{"name": "memory.read", "one_thread": 0}]}})",
                             R"({"context": {"figures": [{"name": "vector.fp32", "one_thread": 1e12}]}})"})
        EXPECT_FALSE(on_one_thread(device, io::Json::parse(file))) << file;
}

TEST(CpuDevice, ACacheThatSeemsSlowerThanMemoryHasNoBandwidth) {
    const std::vector<Found> figures = {found("memory.read", 50e9), found("l3.read", 20e9)};
    const Device device = cpu_device(machine(), 4, figures, levels(), "");
    EXPECT_EQ(device.bandwidth(Level::cache), nullptr);
    EXPECT_NE(device.capacity(Level::cache), nullptr);
}

TEST(CpuDevice, ARefusedFigureIsAbsent) {
    std::vector<Found> figures = {found("vector.fp32", 1e12, Unit::flops_per_second), found("memory.read", 50e9)};
    figures[0].problem = "every variant gave a wrong answer";
    EXPECT_FALSE(cpu_device(machine(), 4, figures, levels(), "").rate(Engine::vector, DType::fp32));
}

TEST(CpuDevice, AProcessorIsKnownByItsWholeName) {
    std::vector<Device> devices(1);
    devices[0].kind = "cpu";
    devices[0].aliases = {"Intel Xeon Platinum 8480+", "platinum-8480"};
    EXPECT_NE(known_cpu("Intel(R) Xeon(R) Platinum 8480+", devices), nullptr);
    EXPECT_NE(known_cpu("Intel(R) Xeon(R) Platinum 8480 CPU @ 2.00GHz", devices), nullptr);
    EXPECT_EQ(known_cpu("Intel(R) Xeon(R) Platinum 8480C", devices), nullptr);
    EXPECT_EQ(known_cpu("Arm Neoverse-V1", devices), nullptr);
    devices[0].kind = "gpu";
    EXPECT_EQ(known_cpu("Intel(R) Xeon(R) Platinum 8480+", devices), nullptr);
}

TEST(CpuDevice, AFigureIsNamedByItselfOrByItsKind) {
    EXPECT_TRUE(named_by("memory.read", ""));
    EXPECT_TRUE(named_by("memory.read", "memory.read"));
    EXPECT_TRUE(named_by("memory.read", "memory"));
    EXPECT_TRUE(named_by("memory.read", "read"));
    EXPECT_TRUE(named_by("matrix.bf16 with tile loads", "bf16"));
    EXPECT_FALSE(named_by("memory.read", "memory.copy"));
    EXPECT_FALSE(named_by("memory.read", "mem"));
    EXPECT_FALSE(named_by("clock", "memory"));
}

TEST(CpuDevice, AQuietMachineIsNotBusyAndABusyOneSaysWhy) {
    const std::vector<Found> figures = {found("memory.read", 50e9)};
    EXPECT_TRUE(disturbances({0.05, 0.0}, figures).empty());
    EXPECT_EQ(disturbances({0.5, 0.0}, figures).size(), 1U);
    EXPECT_EQ(disturbances({0.0, 0.02}, figures).size(), 1U);
    std::vector<Found> loose = figures;
    loose[0].spread = 0.1;
    EXPECT_EQ(disturbances({0.0, 0.0}, loose).size(), 1U);
}

TEST(CpuDevice, WhatUsesTheSameCoresIsSeenByWhatItSlowsDown) {
    std::vector<Found> figures = {found("clock", 2.5e9, Unit::hertz), found("memory.read", 30e9),
                                  found("matrix.bf16", 2e12, Unit::flops_per_second)};
    for (Found& figure : figures) figure.windows = 40;
    // Fewer cores may run at a higher clock, and one may have all the bandwidth there is.
    figures[0].one_thread = 3e9;
    figures[1].one_thread = 31e9;
    figures[2].one_thread = 2.05e12;  // noise
    EXPECT_TRUE(disturbances({}, figures).empty());
    figures[2].one_thread = 2.2e12;
    ASSERT_EQ(disturbances({}, figures).size(), 1U);
    EXPECT_EQ(disturbances({}, figures)[0], "one thread alone was faster than all together at matrix.bf16");
    figures[2].one_thread = 1e12;
    figures[1].slow_windows = 40;  // memory varies anyway
    figures[2].slow_windows = 10;
    EXPECT_TRUE(disturbances({}, figures).empty());
    figures[2].slow_windows = 11;
    ASSERT_EQ(disturbances({}, figures).size(), 1U);
    EXPECT_TRUE(disturbances({}, figures)[0].starts_with("11 of 40 windows of arithmetic"))
        << disturbances({}, figures)[0];
}

// ---- a whole measurement, on little memory and in no time: what comes out must be whole, not fast ----

CpuOptions in_small() {
    CpuOptions options;
    options.seconds = 0.05;
    options.quick = true;
    options.threads = 1;
    options.most_bytes = std::size_t{2} << 20U;
    return options;
}

TEST(MeasureCpu, GivesEveryFigureAndADeviceThatReadsBack) {
    const auto measured = measure_cpu(in_small());
    ASSERT_TRUE(measured) << measured.error().text;
    const auto has = [&](const std::string& name) {
        return std::any_of(measured->found.begin(), measured->found.end(),
                           [&](const Found& figure) { return figure.name == name && figure.problem.empty(); });
    };
    for (const char* name :
         {"clock", "vector.fp32", "vector.fp64", "memory.read", "memory.copy", "memory.triad", "memory.write"})
        EXPECT_TRUE(has(name)) << name;
    for (const Found& figure : measured->found) EXPECT_EQ(figure.problem, "") << figure.name;
    const auto back = io::read_device(io::dump(measured_json(*measured)), "this.json");
    ASSERT_TRUE(back) << back.error().text;
    EXPECT_TRUE(back->rate(Engine::vector, DType::fp32));
    EXPECT_GT(measured->context["windows"].get<double>(), 0.0);
}

TEST(MeasureCpu, OnlyWhatWasAskedForIsMeasured) {
    CpuOptions options = in_small();
    options.only = {"fp32", "vector.fp64"};
    const auto measured = measure_cpu(options);
    ASSERT_TRUE(measured) << measured.error().text;
    ASSERT_EQ(measured->found.size(), 2U);
    EXPECT_EQ(measured->found[0].name, "vector.fp64");
    EXPECT_EQ(measured->found[1].name, "vector.fp32");
    EXPECT_EQ(measured->device.bandwidth(Level::memory), nullptr);
}

TEST(MeasureCpu, AskedToStopItGivesNothing) {
    CpuOptions options = in_small();
    options.stop = [] { return true; };
    const auto measured = measure_cpu(options);
    ASSERT_FALSE(measured);
    EXPECT_EQ(measured.error().text, "stopped");
}

TEST(MeasureCpu, ProgressIsTold) {
    CpuOptions options = in_small();
    options.only = {"clock"};
    int told = 0;
    options.progress = [&](std::string_view) { ++told; };
    ASSERT_TRUE(measure_cpu(options));
    EXPECT_GT(told, 0);
}

}  // namespace
}  // namespace roofline::measure
